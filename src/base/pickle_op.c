/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/pickle_op.h"

#include "base/pickle.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <string.h>

enum {
    PROTOCOL = 0x80, /**< the first operation */
    MIN_PROTOCOL = 2,
    MAX_PROTOCOL = 5
};

/** What follows an operation's byte. */
typedef enum argument {
    NO_ARGUMENT,
    FIXED,   /**< a number of `bytes`, little-endian */
    SIGNED,  /**< likewise, of two's complement */
    COUNTED, /**< its length in `bytes`, and as many bytes of a number */
    TEXT,    /**< the same, of a text */
    FLOAT    /**< eight bytes, big-endian */
} argument;

/** An operation that is known. */
typedef struct row {
    bool is_known;
    unsigned char kind; /**< me_pickle_kind */
    unsigned char argument;
    unsigned char bytes;
    const char *literal; /**< NULL: its number */
    uint64_t number;     /**< of one without argument */
} row;

/** By their code, see pickletools.opcodes; the names stand there. */
static const row rows[UCHAR_MAX + 1] = {
    [PROTOCOL] = {true, ME_PICKLE_NOTHING, FIXED, 1, NULL, 0},
    [0x95] = {true, ME_PICKLE_NOTHING, FIXED, 8, NULL, 0},
    ['.'] = {true, ME_PICKLE_STOP, NO_ARGUMENT, 0, NULL, 0},
    ['('] = {true, ME_PICKLE_MARK, NO_ARGUMENT, 0, NULL, 0},
    ['N'] = {true, ME_PICKLE_LITERAL, NO_ARGUMENT, 0, "null", 0},
    [0x88] = {true, ME_PICKLE_LITERAL, NO_ARGUMENT, 0, "true", 0},
    [0x89] = {true, ME_PICKLE_LITERAL, NO_ARGUMENT, 0, "false", 0},
    ['J'] = {true, ME_PICKLE_LITERAL, SIGNED, 4, NULL, 0},
    ['K'] = {true, ME_PICKLE_LITERAL, FIXED, 1, NULL, 0},
    ['M'] = {true, ME_PICKLE_LITERAL, FIXED, 2, NULL, 0},
    [0x8a] = {true, ME_PICKLE_LITERAL, COUNTED, 1, NULL, 0},
    [0x8b] = {true, ME_PICKLE_LITERAL, COUNTED, 4, NULL, 0},
    ['G'] = {true, ME_PICKLE_LITERAL, FLOAT, 8, NULL, 0},
    ['X'] = {true, ME_PICKLE_STRING, TEXT, 4, NULL, 0},
    [0x8c] = {true, ME_PICKLE_STRING, TEXT, 1, NULL, 0},
    [0x8d] = {true, ME_PICKLE_STRING, TEXT, 8, NULL, 0},
    ['T'] = {true, ME_PICKLE_STRING, TEXT, 4, NULL, 0},
    ['U'] = {true, ME_PICKLE_STRING, TEXT, 1, NULL, 0},
    [']'] = {true, ME_PICKLE_LIST, NO_ARGUMENT, 0, NULL, 0},
    ['}'] = {true, ME_PICKLE_DICT, NO_ARGUMENT, 0, NULL, 0},
    ['t'] = {true, ME_PICKLE_TUPLE, NO_ARGUMENT, 0, NULL, 0},
    [')'] = {true, ME_PICKLE_TUPLE_N, NO_ARGUMENT, 0, NULL, 0},
    [0x85] = {true, ME_PICKLE_TUPLE_N, NO_ARGUMENT, 0, NULL, 1},
    [0x86] = {true, ME_PICKLE_TUPLE_N, NO_ARGUMENT, 0, NULL, 2},
    [0x87] = {true, ME_PICKLE_TUPLE_N, NO_ARGUMENT, 0, NULL, 3},
    ['a'] = {true, ME_PICKLE_APPEND, NO_ARGUMENT, 0, NULL, 0},
    ['e'] = {true, ME_PICKLE_APPENDS, NO_ARGUMENT, 0, NULL, 0},
    ['s'] = {true, ME_PICKLE_SETITEM, NO_ARGUMENT, 0, NULL, 0},
    ['u'] = {true, ME_PICKLE_SETITEMS, NO_ARGUMENT, 0, NULL, 0},
    ['h'] = {true, ME_PICKLE_GET, FIXED, 1, NULL, 0},
    ['j'] = {true, ME_PICKLE_GET, FIXED, 4, NULL, 0},
    ['q'] = {true, ME_PICKLE_PUT, FIXED, 1, NULL, 0},
    ['r'] = {true, ME_PICKLE_PUT, FIXED, 4, NULL, 0},
    [0x94] = {true, ME_PICKLE_MEMOIZE, NO_ARGUMENT, 0, NULL, 0},
};

/** Those that look up or call something of Python's, for the message. */
static const struct {
    unsigned char code;
    const char *name;
} refused[] = {
    {'c', "GLOBAL"},        {'R', "REDUCE"},       {'b', "BUILD"},
    {'i', "INST"},          {'o', "OBJ"},          {'P', "PERSID"},
    {'Q', "BINPERSID"},     {0x81, "NEWOBJ"},      {0x82, "EXT1"},
    {0x83, "EXT2"},         {0x84, "EXT4"},        {0x92, "NEWOBJ_EX"},
    {0x93, "STACK_GLOBAL"}, {0x97, "NEXT_BUFFER"},
};

me_status me_pickle_bad(const me_pickle_reader *reader, me_diag *diag,
                        const char *what)
{
    return me_fail_at(diag, ME_ERR_SYNTAX, reader->name, 0,
                      "not a pickle of a memory snapshot: byte %" PRIu64 ": %s",
                      reader->at, what);
}

static me_status refuse(const me_pickle_reader *r, me_diag *diag, int code)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        if (refused[i].code == code) {
            return me_fail_at(diag, ME_ERR_SYNTAX, r->name, 0,
                              "refused: byte %" PRIu64 " of the pickle (%s) "
                              "would have Python run code, and a memory "
                              "snapshot is plain data",
                              r->at, refused[i].name);
        }
    }
    return me_fail_at(diag, ME_ERR_SYNTAX, r->name, 0,
                      "not a pickle of a memory snapshot: byte %" PRIu64
                      " (0x%02x) is no operation of plain data",
                      r->at, (unsigned)code);
}

static me_status cut_off(const me_pickle_reader *r, me_diag *diag)
{
    return ferror(r->file)
               ? me_fail_at(diag, ME_ERR_IO, r->name, 0, "cannot be read")
               : me_fail_at(diag, ME_ERR_SYNTAX, r->name, 0,
                            "the pickle ends too early, after %" PRIu64
                            " bytes",
                            r->offset);
}

/** More of the file. @return false: there is none */
static bool refill(me_pickle_reader *r)
{
    r->next = 0;
    r->n_buffered = fread(r->buffer, 1, sizeof r->buffer, r->file);
    me_progress_reach(r->part, r->before + r->offset + r->n_buffered);
    return r->n_buffered > 0;
}

static me_status read_bytes(me_pickle_reader *r, me_diag *diag, void *bytes,
                            size_t count)
{
    char *to = bytes;
    while (count > 0) {
        if (r->next == r->n_buffered && !refill(r)) {
            return cut_off(r, diag);
        }
        const size_t left = r->n_buffered - r->next;
        const size_t n = count < left ? count : left;
        memcpy(to, r->buffer + r->next, n);
        r->next += n;
        r->offset += n;
        to += n;
        count -= n;
    }
    return ME_OK;
}

me_status me_pickle_begin_again(me_pickle_reader *reader, long first)
{
    reader->before += reader->offset;
    reader->offset = 0;
    reader->next = 0;
    reader->n_buffered = 0;
    return fseek(reader->file, first, SEEK_SET) == 0 ? ME_OK : ME_ERR_IO;
}

static me_status skip_bytes(me_pickle_reader *r, me_diag *diag, uint64_t count)
{
    char unused[BUFSIZ];
    me_status status = ME_OK;
    while (status == ME_OK && count > 0) {
        const size_t n = count < sizeof unused ? (size_t)count : sizeof unused;
        status = read_bytes(r, diag, unused, n);
        count -= n;
    }
    return status;
}

/** @param count  of bytes, 8 at most */
static me_status read_number(me_pickle_reader *r, me_diag *diag, size_t count,
                             uint64_t *number_out)
{
    unsigned char bytes[sizeof(uint64_t)] = {0};
    const me_status status = read_bytes(r, diag, bytes, count);
    uint64_t number = 0;
    for (size_t i = count; i > 0; i--) {
        number = number << 8U | bytes[i - 1];
    }
    *number_out = number;
    return status;
}

static uint64_t extend_sign(uint64_t number, size_t bytes)
{
    const unsigned bits = (unsigned)bytes * 8;
    const bool is_negative =
        bits > 0 && (number >> (bits - 1) & UINT64_C(1)) != 0;
    return is_negative && bits < 64 ? number | UINT64_MAX << bits : number;
}

/** A number of two's complement in digits: half of what a snapshot has is one. */
static void set_digits(me_pickle_op *op, uint64_t number)
{
    char digits[24];
    const bool is_negative = number >> 63 != 0;
    uint64_t left = is_negative ? 0 - number : number;
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (is_negative) {
        digits[--at] = '-';
    }
    op->length = sizeof digits - at;
    memcpy(op->text, digits + at, op->length);
    op->text[op->length] = '\0';
}

static me_status read_float(me_pickle_reader *r, me_diag *diag,
                            me_pickle_op *op)
{
    unsigned char bytes[sizeof(double)] = {0};
    uint64_t bits = 0;
    double number = 0;
    const me_status status = read_bytes(r, diag, bytes, sizeof bytes);
    if (status != ME_OK) {
        return status;
    }
    for (size_t i = 0; i < sizeof bytes; i++) {
        bits = bits << 8U | bytes[i];
    }
    memcpy(&number, &bits, sizeof number);
    op->length = (size_t)snprintf(op->text, sizeof op->text,
                                  isfinite(number) ? "%.17g" : "null", number);
    return ME_OK;
}

static me_status read_long(me_pickle_reader *r, me_diag *diag, uint64_t length,
                           me_pickle_op *op)
{
    if (length > sizeof(uint64_t)) {
        return me_pickle_bad(r, diag, "a number has more than 64 bits");
    }
    uint64_t number = 0;
    const me_status status = read_number(r, diag, (size_t)length, &number);
    set_digits(op, extend_sign(number, (size_t)length));
    return status;
}

static me_status read_text(me_pickle_reader *r, me_diag *diag, uint64_t length,
                           me_pickle_op *op)
{
    op->is_cut = length >= sizeof op->text;
    op->length = op->is_cut ? sizeof op->text - 1 : (size_t)length;
    me_status status = read_bytes(r, diag, op->text, op->length);
    if (status == ME_OK) {
        op->text[op->length] = '\0';
        status = skip_bytes(r, diag, length - op->length);
    }
    return status;
}

static me_status read_argument(me_pickle_reader *r, me_diag *diag,
                               const row *known, me_pickle_op *op)
{
    uint64_t number = known->number;
    me_status status = ME_OK;
    if (known->argument == FLOAT) {
        return read_float(r, diag, op);
    }
    if (known->argument != NO_ARGUMENT) {
        status = read_number(r, diag, known->bytes, &number);
    }
    if (status != ME_OK) {
        return status;
    }
    if (known->argument == COUNTED) {
        return read_long(r, diag, number, op);
    }
    if (known->argument == TEXT) {
        return read_text(r, diag, number, op);
    }
    op->number = number;
    if (known->literal != NULL) {
        op->length = strlen(known->literal);
        memcpy(op->text, known->literal, op->length + 1);
    } else if (known->kind == ME_PICKLE_LITERAL) {
        set_digits(op, known->argument == SIGNED
                           ? extend_sign(number, known->bytes)
                           : number);
    }
    return ME_OK;
}

me_status me_pickle_refuse_old(const char *head, size_t length,
                               const char *name, me_diag *diag)
{
    static const char *const beginnings[] = {"(dp0\n", "(lp0\n", "}q\0",
                                             "]q\0"};
    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++) {
        const size_t n = i < 2 ? 5 : 3; // a NUL is one of them
        if (length >= n && memcmp(head, beginnings[i], n) == 0) {
            return me_fail_at(diag, ME_ERR_SYNTAX, name, 0,
                              "a pickle of protocol %d: 2 to 5 are read, which "
                              "torch.cuda.memory._dump_snapshot() and "
                              "pickle.dump(snapshot, file) write",
                              i < 2 ? 0 : 1);
        }
    }
    return ME_OK;
}

/** A pickle begins with its protocol, which stands nowhere else. */
static me_status check_protocol(const me_pickle_reader *r, me_diag *diag,
                                bool is_protocol, const me_pickle_op *op)
{
    if ((r->at == 0) != is_protocol) {
        return me_pickle_bad(r, diag, "the protocol stands at byte 0 alone");
    }
    return !is_protocol ||
                   (op->number >= MIN_PROTOCOL && op->number <= MAX_PROTOCOL)
               ? ME_OK
               : me_pickle_bad(r, diag, "its protocol is not 2 to 5");
}

me_status me_pickle_next(me_pickle_reader *reader, me_diag *diag,
                         me_pickle_op *op_out)
{
    unsigned char code = 0;
    reader->at = reader->offset;
    me_status status = read_bytes(reader, diag, &code, 1);
    if (status != ME_OK) {
        return status;
    }
    const row *known = &rows[code];
    if (!known->is_known) {
        return refuse(reader, diag, code);
    }
    op_out->kind = (me_pickle_kind)known->kind;
    op_out->number = 0;
    op_out->text[0] = '\0';
    op_out->length = 0;
    op_out->is_cut = false;
    status = read_argument(reader, diag, known, op_out);
    return status == ME_OK
               ? check_protocol(reader, diag, code == PROTOCOL, op_out)
               : status;
}

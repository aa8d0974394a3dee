/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/pickle_op.h"

#include "base/pickle.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
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
    unsigned char code;
    unsigned char kind; /**< me_pickle_kind */
    unsigned char argument;
    unsigned char bytes;
    const char *literal; /**< NULL: its number */
    uint64_t number;     /**< of one without argument */
} row;

/** See pickletools.opcodes; the names stand there. */
static const row rows[] = {
    {0x80, ME_PICKLE_NOTHING, FIXED, 1, NULL, 0},
    {0x95, ME_PICKLE_NOTHING, FIXED, 8, NULL, 0},
    {'.', ME_PICKLE_STOP, NO_ARGUMENT, 0, NULL, 0},
    {'(', ME_PICKLE_MARK, NO_ARGUMENT, 0, NULL, 0},
    {'N', ME_PICKLE_LITERAL, NO_ARGUMENT, 0, "null", 0},
    {0x88, ME_PICKLE_LITERAL, NO_ARGUMENT, 0, "true", 0},
    {0x89, ME_PICKLE_LITERAL, NO_ARGUMENT, 0, "false", 0},
    {'J', ME_PICKLE_LITERAL, SIGNED, 4, NULL, 0},
    {'K', ME_PICKLE_LITERAL, FIXED, 1, NULL, 0},
    {'M', ME_PICKLE_LITERAL, FIXED, 2, NULL, 0},
    {0x8a, ME_PICKLE_LITERAL, COUNTED, 1, NULL, 0},
    {0x8b, ME_PICKLE_LITERAL, COUNTED, 4, NULL, 0},
    {'G', ME_PICKLE_LITERAL, FLOAT, 8, NULL, 0},
    {'X', ME_PICKLE_STRING, TEXT, 4, NULL, 0},
    {0x8c, ME_PICKLE_STRING, TEXT, 1, NULL, 0},
    {0x8d, ME_PICKLE_STRING, TEXT, 8, NULL, 0},
    {'T', ME_PICKLE_STRING, TEXT, 4, NULL, 0},
    {'U', ME_PICKLE_STRING, TEXT, 1, NULL, 0},
    {']', ME_PICKLE_LIST, NO_ARGUMENT, 0, NULL, 0},
    {'}', ME_PICKLE_DICT, NO_ARGUMENT, 0, NULL, 0},
    {'t', ME_PICKLE_TUPLE, NO_ARGUMENT, 0, NULL, 0},
    {')', ME_PICKLE_TUPLE_N, NO_ARGUMENT, 0, NULL, 0},
    {0x85, ME_PICKLE_TUPLE_N, NO_ARGUMENT, 0, NULL, 1},
    {0x86, ME_PICKLE_TUPLE_N, NO_ARGUMENT, 0, NULL, 2},
    {0x87, ME_PICKLE_TUPLE_N, NO_ARGUMENT, 0, NULL, 3},
    {'a', ME_PICKLE_APPEND, NO_ARGUMENT, 0, NULL, 0},
    {'e', ME_PICKLE_APPENDS, NO_ARGUMENT, 0, NULL, 0},
    {'s', ME_PICKLE_SETITEM, NO_ARGUMENT, 0, NULL, 0},
    {'u', ME_PICKLE_SETITEMS, NO_ARGUMENT, 0, NULL, 0},
    {'h', ME_PICKLE_GET, FIXED, 1, NULL, 0},
    {'j', ME_PICKLE_GET, FIXED, 4, NULL, 0},
    {'q', ME_PICKLE_PUT, FIXED, 1, NULL, 0},
    {'r', ME_PICKLE_PUT, FIXED, 4, NULL, 0},
    {0x94, ME_PICKLE_MEMOIZE, NO_ARGUMENT, 0, NULL, 0},
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

static me_status read_bytes(me_pickle_reader *r, me_diag *diag, void *bytes,
                            size_t count)
{
    const size_t n = fread(bytes, 1, count, r->file);
    r->offset += n;
    return n == count ? ME_OK : cut_off(r, diag);
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

static void set_number(me_pickle_op *op, uint64_t number)
{
    op->number = number;
    op->length = (size_t)snprintf(op->text, sizeof op->text, "%" PRId64,
                                  (int64_t)number);
}

static me_status read_float(me_pickle_reader *r, me_diag *diag,
                            me_pickle_op *op)
{
    unsigned char bytes[sizeof(double)];
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
    set_number(op, extend_sign(number, (size_t)length));
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
    set_number(op, known->argument == SIGNED ? extend_sign(number, known->bytes)
                                             : number);
    if (known->literal != NULL) {
        op->length = strlen(known->literal);
        memcpy(op->text, known->literal, op->length + 1);
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
                                const row *known, const me_pickle_op *op)
{
    if ((r->at == 0) != (known->code == rows[0].code)) {
        return me_pickle_bad(r, diag, "the protocol stands at byte 0 alone");
    }
    return known->code != rows[0].code ||
                   (op->number >= MIN_PROTOCOL && op->number <= MAX_PROTOCOL)
               ? ME_OK
               : me_pickle_bad(r, diag, "its protocol is not 2 to 5");
}

me_status me_pickle_next(me_pickle_reader *reader, me_diag *diag,
                         me_pickle_op *op_out)
{
    reader->at = reader->offset;
    const int code = fgetc(reader->file);
    if (code == EOF) {
        return cut_off(reader, diag);
    }
    reader->offset++;
    size_t i = 0;
    while (i < sizeof rows / sizeof rows[0] && rows[i].code != code) {
        i++;
    }
    if (i == sizeof rows / sizeof rows[0]) {
        return refuse(reader, diag, code);
    }
    *op_out = (me_pickle_op){.kind = (me_pickle_kind)rows[i].kind};
    const me_status status = read_argument(reader, diag, &rows[i], op_out);
    return status == ME_OK ? check_protocol(reader, diag, &rows[i], op_out)
                           : status;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The machine that a pickle is a program for, with JSON in place of objects. */
#include "base/pickle.h"

#include "base/alloc.h"
#include "base/pickle_memo.h"
#include "base/pickle_text.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum {
    MAX_VALUES = 1 << 21, /* that are under way at once */
    MAX_DEPTH = 256,      /* of marks: the reader of JSON has twice that */
    PIECE_BYTES = 6 * ME_PICKLE_TEXT + 3
};

static const uint64_t budget_factor = 32; // JSON is ten times a pickle at most
static const uint64_t budget_base = 1 << 20;

/** What a place of the stack holds. */
typedef struct value {
    me_pickle_kind kind; /**< mark, literal, string, or list: a text */
    bool is_cut;
    uint16_t length;
    char text[ME_PICKLE_TEXT]; /**< of a literal or string */
    me_pickle_text *list;      /**< also of a dictionary */
} value;

typedef struct machine {
    me_pickle_reader reader;
    me_diag *diag;
    const me_pickle_wanted *wanted;
    me_pickle_memo memo;
    me_pickle_spool spool;
    value *stack;
    uint32_t n_values;
    uint32_t capacity;
    uint32_t depth; /**< marks on the stack */
    value *kept;    /**< by their place in the memo; a mark: not yet */
} machine;

static me_status bad(machine *m, const char *what)
{
    return me_pickle_bad(&m->reader, m->diag, what);
}

static me_status no_memory(machine *m)
{
    return me_fail(m->diag, ME_ERR_NOMEM, "no memory to read %s",
                   m->reader.name);
}

/** What went wrong with a text. */
static me_status say(machine *m, me_status status)
{
    if (status == ME_ERR_CAPACITY) {
        return bad(m, "what it shares makes it many times as long");
    }
    if (status == ME_ERR_IO) {
        return me_fail(m->diag, ME_ERR_IO,
                       "%s cannot be copied to a temporary file: %s",
                       m->reader.name, strerror(errno));
    }
    return status == ME_OK ? ME_OK : no_memory(m);
}

static me_status push(machine *m, const value *v)
{
    if (m->n_values == MAX_VALUES) {
        return bad(m, "too many values are under way");
    }
    value *grown = me_grow(m->stack, m->n_values, &m->capacity, sizeof *grown,
                           "base.pickle");
    if (grown == NULL) {
        return no_memory(m);
    }
    m->stack = grown;
    m->stack[m->n_values++] = *v;
    return ME_OK;
}

static void pop_to(machine *m, uint32_t n_values)
{
    while (m->n_values > n_values) {
        me_pickle_text_release(m->stack[--m->n_values].list);
    }
}

static me_status push_plain(machine *m, const me_pickle_op *op)
{
    value v = {
        .kind = op->kind, .is_cut = op->is_cut, .length = (uint16_t)op->length};
    memcpy(v.text, op->text, op->length + 1);
    return push(m, &v);
}

static me_status push_list(machine *m, bool is_object)
{
    const value v = {.kind = ME_PICKLE_LIST,
                     .list = me_pickle_text_create(is_object)};
    if (v.list == NULL) {
        return no_memory(m);
    }
    const me_status status = push(m, &v);
    if (status != ME_OK) {
        me_pickle_text_release(v.list);
    }
    return status;
}

static me_status push_mark(machine *m)
{
    const value v = {.kind = ME_PICKLE_MARK};
    return ++m->depth > MAX_DEPTH ? bad(m, "it is nested too deep")
                                  : push(m, &v);
}

/** The place of the last mark, which is taken off.
 *  @return its place; n_values if there is none */
static uint32_t find_mark(machine *m)
{
    for (uint32_t i = m->n_values; i > 0; i--) {
        if (m->stack[i - 1].kind == ME_PICKLE_MARK) {
            m->depth--;
            return i - 1;
        }
    }
    return m->n_values;
}

/** A string between quotes, for JSON. @return its length */
static size_t quote(const value *v, char piece_out[PIECE_BYTES])
{
    size_t n = 0;
    piece_out[n++] = '"';
    for (size_t i = 0; i < v->length; i++) {
        const unsigned char c = (unsigned char)v->text[i];
        if (c < ' ' || c == '"' || c == '\\') {
            n += (size_t)snprintf(piece_out + n, PIECE_BYTES - n, "\\u%04x",
                                  (unsigned)c);
        } else {
            piece_out[n++] = (char)c;
        }
    }
    piece_out[n++] = '"';
    return n;
}

static me_status append_piece(machine *m, me_pickle_text *list,
                              const char *text, size_t length)
{
    return say(m, me_pickle_text_append(list, &m->spool, text, length));
}

/** A value as part of a list that is still open. */
static me_status append_value(machine *m, me_pickle_text *list, const value *v)
{
    char piece[PIECE_BYTES];
    if (v->kind == ME_PICKLE_MARK) {
        return bad(m, "a mark is no value");
    }
    if (v->list != NULL) {
        return say(m, me_pickle_text_append_text(list, &m->spool, v->list));
    }
    return v->kind == ME_PICKLE_STRING
               ? append_piece(m, list, piece, quote(v, piece))
               : append_piece(m, list, v->text, v->length);
}

static bool is_key(const value *key, const char *name)
{
    return !key->is_cut && name[0] == key->text[0] &&
           strlen(name) == key->length &&
           memcmp(name, key->text, key->length) == 0;
}

static bool counts(const machine *m, const value *key)
{
    for (size_t i = 0; i < m->wanted->n_keys; i++) {
        if (is_key(key, m->wanted->keys[i])) {
            return true;
        }
    }
    return false;
}

static me_status append_comma(machine *m, me_pickle_text *list)
{
    return me_pickle_text_is_empty(list) ? ME_OK
                                         : append_piece(m, list, ",", 1);
}

/** What the text behind a key says of the class of its object. */
static void find_class(const machine *m, me_pickle_text *object,
                       const value *key)
{
    if (m->wanted->class_of != NULL && key[1].kind == ME_PICKLE_STRING) {
        me_pickle_text_lower_class(object,
                                   m->wanted->class_of(key->text, key[1].text));
    }
}

static me_status set_items(machine *m, me_pickle_text *list, uint32_t first)
{
    if ((m->n_values - first) % 2 != 0) {
        return bad(m, "a key has no value");
    }
    me_status status = ME_OK;
    for (uint32_t i = first; status == ME_OK && i < m->n_values; i += 2) {
        const value *key = &m->stack[i];
        if (key->kind != ME_PICKLE_STRING && key->kind != ME_PICKLE_LITERAL) {
            return bad(m, "a key is no text");
        }
        find_class(m, list, key);
        if (!counts(m, key)) {
            continue;
        }
        char piece[PIECE_BYTES];
        status = append_comma(m, list);
        if (status == ME_OK) {
            status = append_piece(m, list, piece, quote(key, piece));
        }
        if (status == ME_OK) {
            status = append_piece(m, list, ":", 1);
        }
        if (status == ME_OK) {
            status = append_value(m, list, &m->stack[i + 1]);
        }
    }
    return status;
}

/** Is an object of a class of which the list has all that is kept? */
static bool is_left_out(const machine *m, const me_pickle_text *list,
                        const me_pickle_text *part)
{
    const uint8_t of = me_pickle_text_class(part);
    return of == ME_PICKLE_LEFT_OUT ||
           (of < ME_PICKLE_CLASSES &&
            me_pickle_text_count(list, of) == m->wanted->cut_items);
}

static me_status append_items(machine *m, me_pickle_text *list, uint32_t first)
{
    me_status status = ME_OK;
    for (uint32_t i = first; status == ME_OK && i < m->n_values; i++) {
        const me_pickle_text *part = m->stack[i].list;
        if (part != NULL && is_left_out(m, list, part)) {
            continue;
        }
        status = append_comma(m, list);
        if (status == ME_OK) {
            status = append_value(m, list, &m->stack[i]);
        }
    }
    return status;
}

/** Values from @p first on become part of the list that stands at @p at. What
 *  is part of something does not change any more, so nothing holds itself. */
static me_status fill(machine *m, uint32_t at, uint32_t first, bool is_object)
{
    me_pickle_text *list = m->stack[at].list;
    for (uint32_t i = first; i < m->n_values; i++) {
        if (m->stack[i].list != NULL) {
            me_pickle_text_close(m->stack[i].list);
        }
    }
    if (list == NULL || me_pickle_text_is_object(list) != is_object) {
        return bad(m, "there is nothing that could hold a value");
    }
    if (me_pickle_text_is_closed(list)) {
        return bad(m, "what is part of another value changes");
    }
    const me_status status =
        is_object ? set_items(m, list, first) : append_items(m, list, first);
    pop_to(m, first);
    return status;
}

/** The last @p n values into what stands before them. */
static me_status fill_last(machine *m, uint32_t n, bool is_object)
{
    return m->n_values <= n
               ? bad(m, "there are too few values")
               : fill(m, m->n_values - n - 1, m->n_values - n, is_object);
}

static me_status fill_marked(machine *m, bool is_object)
{
    const uint32_t mark = find_mark(m);
    if (mark == m->n_values || mark == 0) {
        return bad(m, "there is no mark");
    }
    const me_status status = fill(m, mark - 1, mark + 1, is_object);
    pop_to(m, mark);
    return status;
}

/** A list of the values from @p first on, which stands in their place, and in
 *  that of a mark. */
static me_status make_tuple(machine *m, uint32_t first, bool has_mark)
{
    me_status status = push_list(m, false);
    if (status != ME_OK) {
        return status;
    }
    const value list = m->stack[--m->n_values];
    for (uint32_t i = first; i < m->n_values; i++) {
        if (m->stack[i].list != NULL) {
            me_pickle_text_close(m->stack[i].list);
        }
    }
    status = append_items(m, list.list, first);
    pop_to(m, has_mark ? first - 1 : first);
    if (status == ME_OK) {
        status = push(m, &list);
    }
    if (status != ME_OK) {
        me_pickle_text_release(list.list);
    }
    return status;
}

static me_status make_marked_tuple(machine *m)
{
    const uint32_t mark = find_mark(m);
    return mark == m->n_values ? bad(m, "there is no mark")
                               : make_tuple(m, mark + 1, true);
}

static me_status put(machine *m, uint64_t number)
{
    const uint32_t place = me_pickle_memo_place(&m->memo, number);
    m->memo.n_put++;
    if (m->n_values == 0 || m->stack[m->n_values - 1].kind == ME_PICKLE_MARK) {
        return bad(m, "there is nothing to put aside");
    }
    if (place != ME_PICKLE_NOT_ASKED) {
        const value *v = &m->stack[m->n_values - 1];
        me_pickle_text_release(m->kept[place].list);
        m->kept[place] = *v;
        if (v->list != NULL) {
            me_pickle_text_retain(v->list);
        }
    }
    return ME_OK;
}

static me_status get(machine *m, uint64_t number)
{
    const uint32_t place = me_pickle_memo_place(&m->memo, number);
    if (place == ME_PICKLE_NOT_ASKED ||
        m->kept[place].kind == ME_PICKLE_NOTHING) {
        return bad(m, "asks for a value that was not put aside");
    }
    const me_status status = push(m, &m->kept[place]);
    if (status == ME_OK && m->kept[place].list != NULL) {
        me_pickle_text_retain(m->kept[place].list);
    }
    return status;
}

static me_status run_op(machine *m, const me_pickle_op *op)
{
    switch (op->kind) {
    case ME_PICKLE_MARK: return push_mark(m);
    case ME_PICKLE_LITERAL:
    case ME_PICKLE_STRING: return push_plain(m, op);
    case ME_PICKLE_LIST: return push_list(m, false);
    case ME_PICKLE_DICT: return push_list(m, true);
    case ME_PICKLE_TUPLE: return make_marked_tuple(m);
    case ME_PICKLE_TUPLE_N:
        return m->n_values < op->number
                   ? bad(m, "there are too few values")
                   : make_tuple(m, m->n_values - (uint32_t)op->number, false);
    case ME_PICKLE_APPEND: return fill_last(m, 1, false);
    case ME_PICKLE_APPENDS: return fill_marked(m, false);
    case ME_PICKLE_SETITEM: return fill_last(m, 2, true);
    case ME_PICKLE_SETITEMS: return fill_marked(m, true);
    case ME_PICKLE_GET: return get(m, op->number);
    case ME_PICKLE_PUT: return put(m, op->number);
    case ME_PICKLE_MEMOIZE: return put(m, m->memo.n_put);
    case ME_PICKLE_NOTHING:
    case ME_PICKLE_STOP: break;
    }
    return ME_OK;
}

static me_status run(machine *m)
{
    me_pickle_op op = {.kind = ME_PICKLE_NOTHING};
    me_status status = ME_OK;
    while (status == ME_OK && op.kind != ME_PICKLE_STOP) {
        status = me_pickle_next(&m->reader, m->diag, &op);
        if (status == ME_OK) {
            status = run_op(m, &op);
        }
    }
    if (status == ME_OK && (m->n_values != 1 || m->stack[0].list == NULL)) {
        status = bad(m, "it is no dictionary");
    }
    return status;
}

/** Look for what it shares, then make the texts. */
static me_status read_pickle(machine *m, long first)
{
    me_status status = me_pickle_memo_read(&m->memo, &m->reader, m->diag);
    if (status != ME_OK) {
        return status;
    }
    m->kept = me_alloc(m->memo.n_asked, sizeof *m->kept, "base.pickle");
    if (m->kept == NULL) {
        return no_memory(m);
    }
    m->spool.file = tmpfile();
    m->spool.budget = m->memo.n_bytes * budget_factor + budget_base;
    return m->spool.file == NULL ||
                   me_pickle_begin_again(&m->reader, first) != ME_OK
               ? say(m, ME_ERR_IO)
               : run(m);
}

static void fini(machine *m)
{
    pop_to(m, 0);
    for (uint32_t i = 0; m->kept != NULL && i < m->memo.n_asked; i++) {
        me_pickle_text_release(m->kept[i].list);
    }
    me_free(m->kept);
    me_free(m->stack);
    me_pickle_memo_fini(&m->memo);
    if (m->spool.file != NULL) {
        (void)fclose(m->spool.file);
    }
}

me_status me_pickle_to_json(FILE *pickle, const char *name,
                            const me_pickle_wanted *wanted, me_diag *diag,
                            FILE **json_out)
{
    machine m = {.reader = {.file = pickle, .name = name, .part = wanted->part},
                 .diag = diag,
                 .wanted = wanted};
    FILE *json = NULL;
    me_status status = read_pickle(&m, ftell(pickle));
    if (status == ME_OK) {
        json = tmpfile();
        status = say(&m, json == NULL ? ME_ERR_IO
                                      : me_pickle_text_write(m.stack[0].list,
                                                             &m.spool, json));
    }
    if (status == ME_OK && (fflush(json) != 0 || ferror(json))) {
        status = say(&m, ME_ERR_IO);
    }
    fini(&m);
    if (status != ME_OK) {
        if (json != NULL) {
            (void)fclose(json);
        }
        return status;
    }
    rewind(json);
    *json_out = json;
    return ME_OK;
}

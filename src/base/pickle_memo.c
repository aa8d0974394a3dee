/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/pickle_memo.h"

#include "base/alloc.h"

#include <string.h>

enum {
    WORD_BITS = 64,
    MAX_ASKED = 1 << 21
};

/** Room for the bit of a place; numbers of places rise by one. */
static me_status make_room(me_pickle_memo *m, uint64_t number)
{
    const uint64_t word = number / WORD_BITS;
    if (word < m->n_words) {
        return ME_OK;
    }
    const uint64_t n_words = (word + 1) * 2;
    uint64_t *grown =
        me_realloc(m->asked, (size_t)n_words, sizeof *grown, "base.pickle");
    if (grown == NULL) {
        return ME_ERR_NOMEM;
    }
    memset(grown + m->n_words, 0,
           (size_t)(n_words - m->n_words) * sizeof *grown);
    m->asked = grown;
    m->n_words = (uint32_t)n_words;
    return ME_OK;
}

static me_status note(me_pickle_memo *m, const me_pickle_reader *reader,
                      me_diag *diag, const me_pickle_op *op)
{
    if (op->kind == ME_PICKLE_MEMOIZE || op->kind == ME_PICKLE_PUT) {
        const uint64_t number =
            op->kind == ME_PICKLE_PUT ? op->number : m->n_put;
        m->n_put++;
        return number < m->n_put
                   ? ME_OK
                   : me_pickle_bad(reader, diag,
                                   "a value is put aside out of turn");
    }
    if (op->number >= m->n_put) {
        return me_pickle_bad(reader, diag,
                             "asks for a value that was not put aside");
    }
    if (make_room(m, op->number) != ME_OK) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory to read %s",
                       reader->name);
    }
    const uint64_t bit = UINT64_C(1) << op->number % WORD_BITS;
    uint64_t *word = &m->asked[op->number / WORD_BITS];
    m->n_asked += (*word & bit) == 0 ? 1 : 0;
    *word |= bit;
    return m->n_asked <= MAX_ASKED
               ? ME_OK
               : me_pickle_bad(reader, diag, "it shares too many values");
}

static me_status count_before(me_pickle_memo *m, const char *name,
                              me_diag *diag)
{
    m->before = me_alloc(m->n_words, sizeof *m->before, "base.pickle");
    if (m->before == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory to read %s", name);
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->n_words; i++) {
        m->before[i] = n;
        n += (uint32_t)__builtin_popcountll(m->asked[i]);
    }
    return ME_OK;
}

me_status me_pickle_memo_read(me_pickle_memo *memo, me_pickle_reader *reader,
                              me_diag *diag)
{
    me_pickle_op op = {.kind = ME_PICKLE_NOTHING};
    me_status status = ME_OK;
    while (status == ME_OK && op.kind != ME_PICKLE_STOP) {
        status = me_pickle_next(reader, diag, &op);
        if (status == ME_OK &&
            (op.kind == ME_PICKLE_GET || op.kind == ME_PICKLE_PUT ||
             op.kind == ME_PICKLE_MEMOIZE)) {
            status = note(memo, reader, diag, &op);
        }
    }
    memo->n_bytes = reader->offset;
    memo->n_put = 0;
    return status == ME_OK ? count_before(memo, reader->name, diag) : status;
}

void me_pickle_memo_fini(me_pickle_memo *memo)
{
    me_free(memo->asked);
    me_free(memo->before);
}

uint32_t me_pickle_memo_place(const me_pickle_memo *memo, uint64_t number)
{
    const uint64_t word = number / WORD_BITS;
    const uint64_t bit = UINT64_C(1) << number % WORD_BITS;
    return word < memo->n_words && (memo->asked[word] & bit) != 0
               ? memo->before[word] + (uint32_t)__builtin_popcountll(
                                          memo->asked[word] & (bit - 1))
               : ME_PICKLE_NOT_ASKED;
}

/**
 * @file
 * Which values of a pickle are asked for again. Python puts every list and
 * dictionary aside, of which a memory snapshot asks for a few: one reading
 * finds those, so that the next one need not hold all others.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_BASE_PICKLE_MEMO_H
#define MEMEST_BASE_PICKLE_MEMO_H

#include "base/pickle_op.h"

/** No place. */
#define ME_PICKLE_NOT_ASKED UINT32_MAX

/** All zero is empty. */
typedef struct me_pickle_memo {
    uint64_t *asked;  /**< a bit a place */
    uint32_t *before; /**< bits in the words before each */
    uint32_t n_words;
    uint32_t n_asked;
    uint64_t n_put;   /**< values that were put aside, in one reading */
    uint64_t n_bytes; /**< of the pickle */
} me_pickle_memo;

/** Read the pickle over to its end, and note what it asks for. The reader is
 *  one at the first byte.
 *
 *  @return ME_OK; ME_ERR_SYNTAX, ME_ERR_IO, ME_ERR_NOMEM */
me_status me_pickle_memo_read(me_pickle_memo *memo, me_pickle_reader *reader,
                              me_diag *diag) ME_MUST_CHECK;

void me_pickle_memo_fini(me_pickle_memo *memo);

/** The place that an operation puts aside or asks for: a number below n_asked,
 *  or ME_PICKLE_NOT_ASKED. */
uint32_t me_pickle_memo_place(const me_pickle_memo *memo, uint64_t number);

#endif /* MEMEST_BASE_PICKLE_MEMO_H */

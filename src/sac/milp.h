/**
 * @file
 * A small mixed-integer linear programme: to be built, then handed to the one
 * library that solves it. What is built keeps its first failure.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SAC_MILP_H
#define MEMEST_SAC_MILP_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct me_milp_column {
    double low, high; /**< HUGE_VAL: no limit */
    double cost;      /**< of one of it; the sum is made least */
    bool is_integer;
} me_milp_column;

/** The sum of a row's terms is at most ('L'), at least ('G') or just ('E') as
 *  much as its limit. */
typedef struct me_milp_row {
    char sense;
    double limit;
    uint32_t first_term; /**< they end where the next row's begin */
} me_milp_row;

/** All zero is an empty one. */
typedef struct me_milp {
    me_milp_column *columns; /**< owned */
    me_milp_row *rows;       /**< owned */
    int *term_columns;       /**< owned */
    double *term_factors;    /**< owned */
    uint32_t n_columns, n_rows, n_terms;
    uint32_t columns_room, rows_room, columns_of_terms_room, factors_room;
    bool has_failed; /**< there was no memory */
} me_milp;

/** Give back what it owns; all zero is allowed. Local. */
void me_milp_fini(me_milp *p);

/** One more column. @return its number. Local. */
int me_milp_add_column(me_milp *p, me_milp_column column);

/** One more row, without terms. Local. */
void me_milp_add_row(me_milp *p, char sense, double limit);

/** One more term of the last row. Local. */
void me_milp_add_term(me_milp *p, int column, double factor);

typedef struct me_milp_accuracy {
    double gap;     /**< difference from the best that is good enough, */
    double share;   /**< or this share of it */
    int most_nodes; /**< of the search for it */
} me_milp_accuracy;

typedef struct me_milp_result {
    bool is_solved; /**< false: no values keep to the rows, or none was found */
    bool is_stopped; /**< the search had too many nodes */
    double cost;
    double bound; /**< no cost is less */
} me_milp_result;

/**
 * Solve it, in one thread: the same problem has the same answer. Local.
 *
 * @param values_out  of each column; set where it is solved
 * @return ME_OK; ME_ERR_NOMEM, also if building failed; ME_ERR_UNSUPPORTED if the
 *         library is not built in
 */
me_status me_milp_solve(const me_milp *p, const me_milp_accuracy *accuracy,
                        me_diag *diag, double *values_out,
                        me_milp_result *result_out) ME_MUST_CHECK;

#endif /* MEMEST_SAC_MILP_H */

/* SPDX-License-Identifier: BSD-3-Clause */
#include "sac/milp.h"

#include "base/alloc.h"

void me_milp_fini(me_milp *p)
{
    me_free(p->columns);
    me_free(p->rows);
    me_free(p->term_columns);
    me_free(p->term_factors);
    *p = (me_milp){0};
}

/** @return @p items with room for one more; the old ones, and a failure of @p p,
 *  without memory */
static void *grow(me_milp *p, void *items, uint32_t count, uint32_t *room,
                  size_t size)
{
    void *more = me_grow(items, count, room, size, "sac.milp");
    if (more == NULL) {
        p->has_failed = true;
        return items;
    }
    return more;
}

int me_milp_add_column(me_milp *p, me_milp_column column)
{
    p->columns =
        grow(p, p->columns, p->n_columns, &p->columns_room, sizeof *p->columns);
    if (!p->has_failed) {
        p->columns[p->n_columns++] = column;
    }
    return p->has_failed ? 0 : (int)p->n_columns - 1;
}

void me_milp_add_row(me_milp *p, char sense, double limit)
{
    p->rows = grow(p, p->rows, p->n_rows, &p->rows_room, sizeof *p->rows);
    if (!p->has_failed) {
        p->rows[p->n_rows++] = (me_milp_row){sense, limit, p->n_terms};
    }
}

void me_milp_add_term(me_milp *p, int column, double factor)
{
    p->term_columns = grow(p, p->term_columns, p->n_terms,
                           &p->columns_of_terms_room, sizeof *p->term_columns);
    p->term_factors = grow(p, p->term_factors, p->n_terms, &p->factors_room,
                           sizeof *p->term_factors);
    if (!p->has_failed) {
        p->term_columns[p->n_terms] = column;
        p->term_factors[p->n_terms++] = factor;
    }
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* COIN-OR's CBC, which PyTorch reaches through PuLP. */
#include "sac/milp.h"

#include <coin/Cbc_C_Interface.h>
#include <float.h>
#include <math.h>
#include <string.h>

/** A search that was stopped has no solution while its cost is this large. */
static const double NO_COST = 1e49;

static double limit_of(double value)
{
    return fabs(value) < HUGE_VAL ? value : copysign(DBL_MAX, value);
}

static void load(const me_milp *p, Cbc_Model *model)
{
    for (uint32_t i = 0; i < p->n_columns; i++) {
        const me_milp_column *c = &p->columns[i];
        Cbc_addCol(model, "", limit_of(c->low), limit_of(c->high), c->cost,
                   (char)c->is_integer, 0, NULL, NULL);
    }
    for (uint32_t i = 0; i < p->n_rows; i++) {
        const me_milp_row *row = &p->rows[i];
        const uint32_t end =
            i + 1 < p->n_rows ? p->rows[i + 1].first_term : p->n_terms;
        Cbc_addRow(model, "", (int)(end - row->first_term),
                   &p->term_columns[row->first_term],
                   &p->term_factors[row->first_term], row->sense, row->limit);
    }
}

me_status me_milp_solve(const me_milp *p, const me_milp_accuracy *accuracy,
                        me_diag *diag, double *values_out,
                        me_milp_result *result_out)
{
    if (p->has_failed) {
        return me_fail(diag, ME_ERR_NOMEM,
                       "no memory for the integer programme");
    }
    Cbc_Model *model = Cbc_newModel();
    if (model == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory for the solver");
    }
    load(p, model);
    Cbc_setLogLevel(model, 0);
    // An assertion in Clp's crunch() ends one program in a thousand with the first;
    // the others take more time than they save.
    Cbc_setParameter(model, "preprocess", "off");
    Cbc_setParameter(model, "heuristicsOnOff", "off");
    Cbc_setParameter(model, "cuts", "off");
    Cbc_setAllowableGap(model, accuracy->gap);
    Cbc_setAllowableFractionGap(model, accuracy->share);
    Cbc_setMaximumNodes(model, accuracy->most_nodes);
    (void)Cbc_solve(model);
    me_milp_result result = {
        .is_stopped = Cbc_isNodeLimitReached(model) != 0,
        .cost = Cbc_getObjValue(model),
        .bound = Cbc_getBestPossibleObjValue(model),
    };
    result.is_solved = Cbc_isProvenOptimal(model) != 0 ||
                       (result.is_stopped && result.cost < NO_COST);
    if (result.is_solved) {
        memcpy(values_out, Cbc_getColSolution(model),
               p->n_columns * sizeof *values_out);
    }
    Cbc_deleteModel(model);
    *result_out = result;
    return ME_OK;
}

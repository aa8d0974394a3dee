/* SPDX-License-Identifier: BSD-3-Clause */
/* COIN-OR's CBC, which PyTorch reaches through PuLP. It is loaded when it is asked:
 * linked, its libraries would take most of a small job's time to start. */
#include "sac/milp.h"

#include <coin/Cbc_C_Interface.h>
#include <dlfcn.h>
#include <float.h>
#include <math.h>
#include <string.h>

/** A search that was stopped has no solution while its cost is this large. */
static const double NO_COST = 1e49;

/** X(name): what is called of it, without the prefix. */
#define CBC_LIST(X)                                                            \
    X(newModel)                                                                \
    X(addCol)                                                                  \
    X(addRow)                                                                  \
    X(setLogLevel)                                                             \
    X(setParameter)                                                            \
    X(setAllowableGap)                                                         \
    X(setAllowableFractionGap)                                                 \
    X(setMaximumNodes)                                                         \
    X(solve)                                                                   \
    X(isNodeLimitReached)                                                      \
    X(getObjValue)                                                             \
    X(getBestPossibleObjValue)                                                 \
    X(isProvenOptimal)                                                         \
    X(getColSolution)                                                          \
    X(deleteModel)

// NOLINTNEXTLINE(bugprone-macro-parentheses): a member is declared
#define CBC_MEMBER(name) __typeof__(Cbc_##name) *name;

/** The library while it is loaded. */
typedef struct cbc {
    void *library;
    CBC_LIST(CBC_MEMBER)
} cbc;

#undef CBC_MEMBER

/** Its function @p name. @return false if it has none */
static bool find(void *library, const char *name, void *function_out,
                 size_t size)
{
    void *symbol = dlsym(library, name);
    memcpy(function_out, &symbol, size); // no cast makes one of the other
    return symbol != NULL;
}

/** Load it. @return ME_OK, and dlclose() is the caller's; ME_ERR_UNSUPPORTED */
static me_status load_library(cbc *c, me_diag *diag)
{
    *c = (cbc){.library = dlopen(ME_CBC_LIBRARY, RTLD_NOW | RTLD_LOCAL)};
    bool is_whole = c->library != NULL;
#define CBC_FIND(name)                                                         \
    is_whole =                                                                 \
        is_whole && find(c->library, "Cbc_" #name, &c->name, sizeof c->name);
    CBC_LIST(CBC_FIND)
#undef CBC_FIND
    if (is_whole) {
        return ME_OK;
    }
    if (c->library != NULL) {
        (void)dlclose(c->library);
    }
    (void)me_fail(diag, ME_ERR_UNSUPPORTED,
                  "what to checkpoint is chosen with COIN-OR's CBC, and its "
                  "library %s cannot be loaded: install coinor-libcbc3",
                  ME_CBC_LIBRARY);
    return ME_ERR_UNSUPPORTED;
}

static double limit_of(double value)
{
    return fabs(value) < HUGE_VAL ? value : copysign(DBL_MAX, value);
}

static void load(const cbc *c, const me_milp *p, Cbc_Model *model)
{
    for (uint32_t i = 0; i < p->n_columns; i++) {
        const me_milp_column *column = &p->columns[i];
        c->addCol(model, "", limit_of(column->low), limit_of(column->high),
                  column->cost, (char)column->is_integer, 0, NULL, NULL);
    }
    for (uint32_t i = 0; i < p->n_rows; i++) {
        const me_milp_row *row = &p->rows[i];
        const uint32_t end =
            i + 1 < p->n_rows ? p->rows[i + 1].first_term : p->n_terms;
        c->addRow(model, "", (int)(end - row->first_term),
                  &p->term_columns[row->first_term],
                  &p->term_factors[row->first_term], row->sense, row->limit);
    }
}

static me_status solve(const cbc *c, const me_milp *p,
                       const me_milp_accuracy *accuracy, me_diag *diag,
                       double *values_out, me_milp_result *result_out)
{
    Cbc_Model *model = c->newModel();
    if (model == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory for the solver");
    }
    load(c, p, model);
    c->setLogLevel(model, 0);
    // An assertion in Clp's crunch() ends one program in a thousand with the first;
    // the others take more time than they save.
    c->setParameter(model, "preprocess", "off");
    c->setParameter(model, "heuristicsOnOff", "off");
    c->setParameter(model, "cuts", "off");
    c->setAllowableGap(model, accuracy->gap);
    c->setAllowableFractionGap(model, accuracy->share);
    c->setMaximumNodes(model, accuracy->most_nodes);
    (void)c->solve(model);
    me_milp_result result = {
        .is_stopped = c->isNodeLimitReached(model) != 0,
        .cost = c->getObjValue(model),
        .bound = c->getBestPossibleObjValue(model),
    };
    result.is_solved = c->isProvenOptimal(model) != 0 ||
                       (result.is_stopped && result.cost < NO_COST);
    if (result.is_solved) {
        memcpy(values_out, c->getColSolution(model),
               p->n_columns * sizeof *values_out);
    }
    c->deleteModel(model);
    *result_out = result;
    return ME_OK;
}

me_status me_milp_solve(const me_milp *p, const me_milp_accuracy *accuracy,
                        me_diag *diag, double *values_out,
                        me_milp_result *result_out)
{
    if (p->has_failed) {
        return me_fail(diag, ME_ERR_NOMEM,
                       "no memory for the integer programme");
    }
    cbc c;
    me_status status = load_library(&c, diag);
    if (status == ME_OK) {
        status = solve(&c, p, accuracy, diag, values_out, result_out);
        (void)dlclose(c.library);
    }
    return status;
}

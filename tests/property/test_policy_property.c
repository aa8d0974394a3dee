/* SPDX-License-Identifier: BSD-3-Clause */
/* The policy of a module against every choice that keeps PyTorch's rules. */
#include "sac/policy.h"
#include "support/random.h"
#include "support/test.h"

#include <math.h>

enum {
    MOST_OPS = 12,
    CASES = 3000
};

static void make(me_random *r, me_sac_stats *stats, me_sac_op *ops)
{
    const int32_t sizes = me_random_in(r, 1, 40);
    stats->fqn = "m";
    stats->ops = ops;
    stats->n_ops = (uint32_t)me_random_in(r, 0, MOST_OPS);
    stats->stores_random = me_random_in(r, 0, 3) == 0;
    for (int32_t i = 0; i < (int32_t)stats->n_ops; i++) {
        ops[i] = (me_sac_op){.name = "op",
                             .in_place_of = ME_SAC_NOT_IN_PLACE,
                             .is_view_like = me_random_in(r, 0, 5) == 0,
                             .is_random = me_random_in(r, 0, 4) == 0};
        ops[i].runtime_ms = me_random_in(r, 0, 20) / 7.0;
        if (!ops[i].is_view_like) {
            ops[i].bytes = (uint64_t)me_random_in(r, 0, sizes);
        }
        if (me_random_in(r, 0, 4) == 0) {
            ops[i].in_place_of = me_random_in(r, 0, i);
        }
    }
}

/* Each rule as sac_ilp.py writes it. */
static bool is_allowed(const me_sac_stats *stats, uint32_t choice)
{
    int32_t random = -1;
    for (uint32_t i = 0; i < stats->n_ops; i++) {
        const me_sac_op *op = &stats->ops[i];
        const bool is_saved = ((choice >> i) & 1) != 0;
        if (op->is_view_like && is_saved) {
            return false;
        }
        if (op->in_place_of == (int32_t)i && !is_saved) {
            return false;
        }
        if (op->in_place_of >= 0 && op->in_place_of != (int32_t)i &&
            (((choice >> op->in_place_of) & 1) != 0) != is_saved) {
            return false;
        }
        if (op->is_random) {
            const bool before =
                stats->stores_random ||
                (random < 0 ? is_saved : ((choice >> random) & 1) != 0);
            if (is_saved != before) {
                return false;
            }
            random = (int32_t)i;
        }
    }
    return true;
}

static void weigh(const me_sac_stats *stats, uint32_t choice, uint64_t *bytes,
                  double *runtime_ms)
{
    *bytes = 0;
    *runtime_ms = 0;
    for (uint32_t i = 0; i < stats->n_ops; i++) {
        if (((choice >> i) & 1) != 0) {
            *bytes += stats->ops[i].bytes;
            *runtime_ms += stats->ops[i].runtime_ms;
        }
    }
}

static const char *is_best(me_random *r)
{
    me_sac_op ops[MOST_OPS];
    me_sac_stats stats;
    bool saves[MOST_OPS];
    bool is_feasible = false;
    make(r, &stats, ops);
    const double budget = me_random_in(r, 0, 100) / 100.0;
    if (me_sac_policy(&stats, budget, saves, &is_feasible, NULL) != ME_OK) {
        return "it fails";
    }
    const double most_bytes = ceil(budget * (double)me_sac_stats_bytes(&stats));
    uint32_t said = 0;
    for (uint32_t i = 0; is_feasible && i < stats.n_ops; i++) {
        said |= saves[i] ? 1U << i : 0;
    }
    uint64_t bytes = 0;
    double best = -1;
    double runtime_ms = 0;
    for (uint32_t choice = 0; choice < 1U << stats.n_ops; choice++) {
        weigh(&stats, choice, &bytes, &runtime_ms);
        if (is_allowed(&stats, choice) && (double)bytes <= most_bytes &&
            runtime_ms > best) {
            best = runtime_ms;
        }
    }
    if (is_feasible != (best >= 0)) {
        return "one of the two finds no choice";
    }
    weigh(&stats, said, &bytes, &runtime_ms);
    if (is_feasible &&
        (!is_allowed(&stats, said) || (double)bytes > most_bytes)) {
        return "the choice breaks a rule";
    }
    return is_feasible && fabs(runtime_ms - best) > 1e-12 ? "there is a better"
                                                          : NULL;
}

static void test_policy__is_best(void **state)
{
    (void)state;
    me_property_run(is_best, CASES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_policy__is_best),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

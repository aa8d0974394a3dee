/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/megatron/flag_reals.h"

#include "base/parse.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/** What stands for the numbers of a flag; NULL: the option takes them as they are,
 *  or says what would be right. */
typedef struct real {
    const char *flag;
    const char *nan;   /**< not-a-number */
    const char *below; /**< below 0, -infinity too */
    const char *zero;  /**< 0 */
    const char *large; /**< more than the option takes, infinity too */
} real;

/** At core_v0.19.0, where each is asked for. */
static const real reals[] = {
    // `clip_grad > 0.0` (optimizer.py); below an infinite limit too a norm is taken
    {"--clip-grad", "0", "0", NULL, "1e300"},
    // `coeff > 0` (router.py, is_aux_loss_enabled())
    {"--moe-aux-loss-coeff", "0", "0", NULL, "1e300"},
    // `is not None` (router.py)
    {"--moe-z-loss-coeff", "1", "1", NULL, "1e300"},
    // `is not None` (router.py); below 0 each layer keeps its bias (moe_utils.py)
    {"--moe-router-force-biased", NULL, NULL, "1", "1e300"},
    // `if scaling_factor` (moe_utils.py)
    {"--moe-router-topk-scaling-factor", "1", "1", NULL, "1e300"},
    // at most 0 there is no distribution (flag_contradictions.c)
    {"--moe-input-jitter-eps", NULL, NULL, NULL, "1e300"},
    // `< 0` is none (transformer_config.py); no other becomes a whole number
    {"--moe-expert-capacity-factor", NULL, "-1", NULL, NULL},
    // `is not None` (mlp.py, experts.py, fused_bias_geglu.py)
    {"--activation-func-clamp-value", "1", "1", "1", "1e300"},
    // `!= 1.0` (language_model_embedding.py, language_module.py)
    {"--mup-embedding-mult", "2", "2", NULL, "1e300"},
    {"--mup-output-mult", "2", "2", NULL, "1e300"},
    // `< 1.0` (rotary_pos_embedding.py)
    {"--rotary-percent", "1", NULL, NULL, "1"},
    // `>= 0.0` is asserted (optimizer_param_scheduler.py)
    {"--weight-decay", NULL, NULL, NULL, "1e300"},
    // `> 0` (arguments.py)
    {"--cpu-offloading-num-layers", NULL, "0", NULL, NULL},
    // `< 0.0` is refused, `!= 0` has state (torch/optim/sgd.py)
    {"--sgd-momentum", "1", NULL, NULL, "1e300"},
};

static const real *find(const char *flag)
{
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        if (strcmp(reals[i].flag, flag) == 0) {
            return &reals[i];
        }
    }
    return NULL;
}

const char *me_flag_real(const char *flag, const char *value, double max)
{
    const real *of = find(flag);
    double number = 0.0;
    const char *other = NULL;
    if (of == NULL) {
        return value;
    }
    if (strcmp(value, "nan") == 0) {
        other = of->nan;
    } else if (strcmp(value, "inf") == 0) {
        other = of->large;
    } else if (strcmp(value, "-inf") == 0) {
        other = of->below;
    } else if (me_parse_double(value, &number) == ME_OK) {
        other = number < 0     ? of->below
                : number == 0  ? of->zero
                : number > max ? of->large
                               : NULL;
    }
    return other == NULL ? value : other;
}

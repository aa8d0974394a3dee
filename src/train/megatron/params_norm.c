/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/size.h"
#include "tensor/launch.h"
#include "train/megatron/bookkeeping.h"
#include "train/megatron/clip_grads.h"
#include "train/megatron/trainer.h"

/* calc_params_l2_norm() (training/utils/common_utils.py), which
 * `--log-params-norm` calls after each step; with Transformer Engine's kernel. */

/** Kinds of parameters: dense and experts', of which the optimizer has all or
 *  shards, and of each those whose weights are gathered (GTP). */
enum {
    NORM_WHOLE,
    NORM_SHARDED,
    NORM_GATHERED,
    NORM_GATHERED_SHARDED,
    NORM_EXPERT_WHOLE,
    NORM_EXPERT_SHARDED,
    NORM_EXPERT_GATHERED,
    NORM_EXPERT_GATHERED_SHARDED,
    N_NORMS
};

static void all_reduce(me_trainer *t, me_group_kind group)
{
    me_communicate(t->e, t->comm,
                   (me_call){group, ME_COLLECTIVE_ALL_REDUCE, ME_DTYPE_FLOAT32,
                             1, -1, false});
}

/** Elements of a kind on this rank: main parameters of bfloat16 ones, if it has
 *  any; all others as they are. Weights that are gathered are left out. */
static uint64_t elements_of(const me_trainer *t, int kind)
{
    const bool is_bf16 = t->config->train.params_dtype == ME_DTYPE_BFLOAT16;
    const bool is_sharded = is_bf16 && t->config->optimizer.distributed;
    if (is_sharded && me_adam_holds_main_parameters(t->config)) {
        return 0; // no main parameters
    }
    uint64_t numel = 0;
    for (uint32_t i = 0; i < t->parameters.count; i++) {
        const me_parameter *p = t->parameters.parameters[i];
        const int own = (p->is_expert ? NORM_EXPERT_WHOLE : NORM_WHOLE) +
                        (is_sharded ? NORM_SHARDED : NORM_WHOLE);
        numel = me_size_add(numel, own == kind ? p->numel : 0);
    }
    return numel;
}

/** _compute_norm_2() */
static me_tensor *square_of_norm(me_trainer *t, int kind)
{
    me_engine *e = t->e;
    const uint64_t numel = elements_of(t, kind);
    if (numel == 0) {
        return me_scratch(e, "zeros", 4);
    }
    me_tensor *flag = me_scratch(e, "tensor", 4);
    me_tensor *norm = me_multi_tensor_l2norm(e, ME_DTYPE_FLOAT32, numel);
    me_tensor *square = me_scratch(e, "mul", 4);
    me_drop(e, flag);
    me_drop(e, norm);
    return square;
}

/** `a + b + c + …` of numbers. */
static me_tensor *sum_of(me_engine *e, int count)
{
    me_tensor *sum = me_scratch(e, "add", 4);
    for (int i = 2; i < count; i++) {
        me_tensor *next = me_scratch(e, "add", 4);
        me_drop(e, sum);
        sum = next;
    }
    return sum;
}

/** Do other ranks share an expert layer than a dense one? */
static bool spreads_experts_otherwise(const me_config *config)
{
    const me_parallel_config *p = &config->parallel;
    return config->moe.num_experts > 0 &&
           (p->expert > 1 || p->expert_tensor != p->tensor);
}

void me_log_params_norm(me_trainer *t)
{
    me_engine *e = t->e;
    if (!t->config->train.log_params_norm) {
        return;
    }
    const me_frame frame = me_enter(e);
    me_tensor *norms[N_NORMS];
    for (int i = 0; i < N_NORMS; i++) {
        norms[i] = square_of_norm(t, i);
    }
    all_reduce(t, ME_GROUP_DATA_CONTEXT);
    all_reduce(t, ME_GROUP_DATA_CONTEXT);
    all_reduce(t, ME_GROUP_EXPERT_DATA);
    all_reduce(t, ME_GROUP_EXPERT_DATA);
    (void)sum_of(e, 4); // norm_2
    (void)sum_of(e, 2); // moe_gtp_combined_norm_2
    (void)sum_of(e, 3); // moe_total_norm_2
    all_reduce(t, ME_GROUP_MODEL);
    if (spreads_experts_otherwise(t->config)) {
        all_reduce(t, ME_GROUP_EXPERT_MODEL);
    }
    me_launch_host_waits(e); // item()
    for (int i = 0; i < N_NORMS; i++) {
        me_drop(e, norms[i]);
    }
    me_leave(e, frame, NULL);
}

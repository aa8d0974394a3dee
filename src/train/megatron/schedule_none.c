/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/megatron/bookkeeping.h"
#include "train/megatron/finalize.h"
#include "train/megatron/forward_backward.h"
#include "train/megatron/step.h"
#include "train/megatron/trainer.h"

/** forward_backward_no_pipelining(). */
void me_forward_backward_no_pipelining(me_trainer *t)
{
    me_engine *e = t->e;
    const int32_t count = t->spec->pipeline.microbatches;
    me_tensor *total_num_tokens = me_keep_scalar(e, "total_num_tokens", 4);
    me_tensor *num_tokens = NULL;
    for (int32_t i = 0; i < count && me_engine_is_ok(e); i++) {
        t->is_last_microbatch = i == count - 1;
        me_tensor *tokens = NULL;
        me_tensor *loss = me_forward_step(t, 0, i, NULL, &tokens);
        me_release(e, num_tokens);
        num_tokens = tokens;
        me_tensor *output = me_retain(loss); // backward_step's own list
        me_backward_step(t, 0, i, &output, NULL);
        me_release(e, output);
        me_release(e, loss); // del output_tensor
    }
    me_finalize_model_grads(t);
    me_cuda_graphs_create(&t->nn);
    me_release(e, total_num_tokens);
    me_release(e, num_tokens);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/fit_builder.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/** "(8, 1024)" with an eighth, a quarter or half of the samples. */
static void add_input_shape(me_fit_builder *b)
{
    const me_torch_job *job = &b->config->torch_job;
    for (uint64_t f = 2;
         f <= 8 && job->n_input_dims > 0 && job->input_dims[0] % f == 0;
         f *= 2) {
        me_fit_change *c =
            me_fit_add(b, "micro-batch %" PRIu64, job->input_dims[0] / f);
        me_fit_set(c, "torch.input_shape=(%" PRIu64, job->input_dims[0] / f);
        for (int32_t i = 1; i < job->n_input_dims; i++) {
            const size_t length = strlen(c->sets);
            (void)snprintf(c->sets + length, sizeof c->sets - length,
                           ", %" PRIu64, job->input_dims[i]);
        }
        const size_t length = strlen(c->sets);
        (void)snprintf(c->sets + length, sizeof c->sets - length,
                       job->n_input_dims == 1 ? ",)" : ")");
    }
}

static void add_torch_wrapper(me_fit_builder *b)
{
    const me_torch_options *t = &b->config->torch;
    if (t->data_parallel == ME_DATA_PARALLEL_FULLY_SHARD) {
        if (!t->reshard_after_forward) {
            me_fit_set(me_fit_add(b, "resharding after forwards"),
                       "torch.reshard_after_forward=true");
        }
        if (!t->cpu_offload) {
            me_fit_set(me_fit_add(b, "shards on the host"),
                       "torch.cpu_offload=true");
        }
    } else if (t->data_parallel == ME_DATA_PARALLEL_DDP) {
        if (!t->gradient_as_bucket_view) {
            me_fit_set(me_fit_add(b, "gradients as views of buckets"),
                       "torch.gradient_as_bucket_view=true");
        }
        me_fit_set(me_fit_add(b, "fully_shard"),
                   "torch.data_parallel=fully_shard");
    }
    if (!t->zero_grad_set_to_none) {
        me_fit_set(me_fit_add(b, "gradients set to None"),
                   "torch.zero_grad_set_to_none=true");
    }
}

/** What is on the host, where that has no room. */
static void add_from_host(me_fit_builder *b)
{
    const me_torch_options *t = &b->config->torch;
    if (b->host_is_short && t->cpu_offload) {
        me_fit_set(me_fit_add(b, "shards on the card"),
                   "torch.cpu_offload=false");
    }
}

static void add_autocast(me_fit_builder *b)
{
    if (b->config->torch.autocast < 0) {
        me_fit_set(me_fit_add(b, "autocast to bf16"),
                   "torch.autocast=bfloat16");
    }
}

const me_fit_kind me_fit_torch_kinds[] = {
    {add_from_host, false, 0},
    {add_torch_wrapper, false, 0},
    {add_input_shape, false, 0},
    {add_autocast, true, 0},
    {NULL, false, 0},
};

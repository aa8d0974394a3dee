/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/megatron/model_wrapper.h"

#include "train/megatron/trainer.h"

const me_model_wrapper *me_model_wrapper_of(const me_config *config)
{
    if (config->parallel.megatron_fsdp) {
        return &me_megatron_fully_sharded_data_parallel;
    }
    return config->parallel.torch_fsdp2 ? &me_torch_fully_sharded_data_parallel
                                        : &me_distributed_data_parallel;
}

void me_zero_grad_buffer(me_trainer *t)
{
    if (t->wrapper->zero_grad_buffer != NULL) {
        t->wrapper->zero_grad_buffer(t);
    }
}

void me_start_grad_sync(me_trainer *t, int32_t chunk)
{
    if (t->wrapper->start_grad_sync != NULL) {
        t->wrapper->start_grad_sync(t, chunk);
        return;
    }
    me_finish_grad_sync(t, chunk);
}

void me_finish_grad_sync(me_trainer *t, int32_t chunk)
{
    if (t->wrapper->finish_grad_sync != NULL) {
        t->wrapper->finish_grad_sync(t, chunk);
    }
}

void me_begin_backward(me_trainer *t)
{
    if (t->wrapper->begin_backward != NULL) {
        t->wrapper->begin_backward(t);
    }
}

void me_end_backward(me_trainer *t)
{
    if (t->wrapper->end_backward != NULL) {
        t->wrapper->end_backward(t);
    }
}

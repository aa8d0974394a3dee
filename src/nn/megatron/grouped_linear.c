/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/grouped_linear.h"

#include "nn/megatron/te_fp8_state.h"
#include "tensor/autograd.h"

#include <stdio.h>

_Static_assert(1 + 2 * (int)ME_MAX_LOCAL_EXPERTS <= (int)ME_MAX_LIST,
               "the tape has no room for the weights and biases of a layer");

/** "weight3": that of expert 3. */
static const char *numbered(me_engine *e, const char *name, uint32_t number)
{
    enum {
        NAME_BYTES = 24
    };

    char *text = me_engine_alloc(e, NAME_BYTES, 1);
    if (text != NULL) {
        (void)snprintf(text, NAME_BYTES, "%s%u", name, (unsigned)number);
    }
    return text == NULL ? name : text;
}

/** Do weights' gradients wait? Under Megatron-FSDP no micro-batches take turns. */
static bool is_made_later(const me_nn *nn)
{
    return nn->config->moe.delay_wgrad_compute &&
           !nn->config->parallel.megatron_fsdp;
}

static me_parameter *weight(me_nn *nn, const me_grouped_linear *l, uint32_t i,
                            const me_shape *shape, me_partition partition)
{
    return me_parameter_create(nn, &(me_parameter_spec){
                                       .name = numbered(nn->e, "weight", i),
                                       .module = l->module,
                                       .shape = *shape,
                                       .is_drawn = true,
                                       .is_tensor_sharded = true,
                                       .partition = partition,
                                       .is_expert = true,
                                       .is_made_later = is_made_later(nn),
                                   });
}

static me_parameter *bias(me_nn *nn, const me_grouped_linear *l, uint32_t i,
                          uint64_t outputs)
{
    return me_parameter_create(nn, &(me_parameter_spec){
                                       .name = numbered(nn->e, "bias", i),
                                       .module = l->module,
                                       .shape = ME_SHAPE(outputs),
                                       .is_tensor_sharded = !l->skip_bias_add,
                                       .is_expert = true,
                                   });
}

/** What FP8 needs, if the job has it. */
static void create_fp8(me_nn *nn, uint32_t count, me_grouped_linear *l)
{
    l->fp8 = me_fp8_module_create(nn, count);
    if (l->fp8 == NULL) {
        return;
    }
    l->weights_fp8 = me_engine_alloc(nn->e, count, sizeof *l->weights_fp8);
    l->parts = me_engine_alloc(nn->e, 2 * (size_t)count, sizeof *l->parts);
    for (uint32_t i = 0; i < count && me_engine_is_ok(nn->e); i++) {
        l->weights_fp8[i] = me_fp8_module_create(nn, 0);
    }
}

void me_grouped_linear_create(me_nn *nn, const me_linear_spec *spec,
                              uint32_t count, bool is_row_parallel,
                              me_grouped_linear *linear_out)
{
    me_engine *e = nn->e;
    const uint64_t parts = (uint64_t)nn->config->parallel.expert_tensor;
    const uint64_t outputs =
        is_row_parallel ? spec->outputs : spec->outputs / parts;
    const uint64_t inputs =
        is_row_parallel ? spec->inputs / parts : spec->inputs;
    me_grouped_linear l = {
        .nn = nn,
        .module =
            me_module_add_as(e, spec->parent, spec->name,
                             is_row_parallel ? "TERowParallelGroupedLinear"
                                             : "TEColumnParallelGroupedLinear"),
        .weights = me_engine_alloc(e, count, sizeof(me_parameter *)),
        .skip_bias_add = spec->skip_bias_add,
        .save_original_input = spec->save_original_input,
        .inputs =
            me_engine_alloc(e, 1 + 2 * (size_t)count, sizeof(me_tensor *)),
    };
    if (spec->has_bias) {
        l.biases = me_engine_alloc(e, count, sizeof(me_parameter *));
    }
    create_fp8(nn, count, &l);
    if (me_engine_is_ok(e)) {
        l.count = count;
    }
    for (uint32_t i = 0; i < l.count; i++) {
        l.weights[i] =
            weight(nn, &l, i, &ME_SHAPE(outputs, inputs),
                   is_row_parallel ? ME_PARTITION_COLUMNS : ME_PARTITION_ROWS);
        if (l.biases != NULL) {
            l.biases[i] = bias(nn, &l, i, outputs);
        }
    }
    if (l.fp8 != NULL) {
        me_fp8_init_meta(nn, l.fp8); // of all, before the first is quantised
    }
    for (uint32_t i = 0; l.fp8 != NULL && i < l.count; i++) {
        me_fp8_quantize_parameter(nn, l.weights_fp8[i], l.weights[i]);
    }
    *linear_out = l;
}

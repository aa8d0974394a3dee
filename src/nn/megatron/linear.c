/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/linear.h"

#include "base/size.h"
#include "nn/megatron/norm.h"
#include "nn/megatron/te_overlap.h"
#include "nn/megatron/te_state.h"
#include "nn/megatron/weight_gradients.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/reduce.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"

/** @p whole over the ranks that the layer is cut over. */
static uint64_t cut(const me_nn *nn, const me_linear_spec *spec, uint64_t whole)
{
    if (spec->is_duplicated) {
        return whole;
    }
    return spec->is_expert
               ? whole / (uint64_t)nn->config->parallel.expert_tensor
               : me_over_tensor(nn, whole);
}

/** Is it a class of Megatron-LM's own, in core/tensor_parallel/layers.py? */
static bool is_megatrons(const me_nn *nn, const me_linear_spec *spec)
{
    return spec->is_megatrons ||
           nn->config->impl.transformer == ME_TRANSFORMER_LOCAL;
}

/** Or one of core/extensions/transformer_engine.py. */
static const char *class_name(const me_nn *nn, const me_linear_spec *spec,
                              bool is_row_parallel)
{
    if (is_megatrons(nn, spec)) {
        return is_row_parallel ? "RowParallelLinear" : "ColumnParallelLinear";
    }
    return spec->is_duplicated ? "TELinear"
           : spec->has_norm    ? "TELayerNormColumnParallelLinear"
           : is_row_parallel   ? "TERowParallelLinear"
                               : "TEColumnParallelLinear";
}

static me_linear create(me_nn *nn, const me_linear_spec *spec,
                        bool is_row_parallel)
{
    me_linear linear = {
        .nn = nn,
        .module = me_module_add_as(nn->e, spec->parent, spec->name,
                                   class_name(nn, spec, is_row_parallel)),
        .is_row_parallel = is_row_parallel,
        .is_expert = spec->is_expert,
        .is_duplicated = spec->is_duplicated,
        .explicit_comm = spec->explicit_comm,
        .skip_bias_add = spec->skip_bias_add,
        .save_original_input = spec->save_original_input,
        .fp8 = me_fp8_module_create(nn, 1),
    };
    const uint64_t outputs =
        is_row_parallel ? spec->outputs : cut(nn, spec, spec->outputs);
    const uint64_t inputs =
        is_row_parallel ? cut(nn, spec, spec->inputs) : spec->inputs;
    const bool names_its_device = is_megatrons(nn, spec);
    if (spec->has_norm) {
        static const char *const names[2] = {"layer_norm_weight",
                                             "layer_norm_bias"};
        const me_norm norm = me_norm_of(nn, linear.module, inputs, names);
        linear.norm_weight = norm.weight;
        linear.norm_bias = norm.bias;
    }
    linear.weight = me_parameter_create(
        nn, &(me_parameter_spec){
                .name = "weight",
                .module = linear.module,
                .shape = ME_SHAPE(outputs, inputs),
                .is_drawn = true,
                .is_tensor_sharded = !spec->is_duplicated,
                .partition =
                    is_row_parallel ? ME_PARTITION_COLUMNS : ME_PARTITION_ROWS,
                .is_sequence_parallel = spec->is_duplicated,
                .is_expert = spec->is_expert,
                .names_its_device = names_its_device,
            });
    if (spec->has_bias) {
        linear.bias =
            me_parameter_create(nn, &(me_parameter_spec){
                                        .name = "bias",
                                        .module = linear.module,
                                        .shape = ME_SHAPE(outputs),
                                        .is_tensor_sharded = !is_row_parallel,
                                        .is_sequence_parallel = is_row_parallel,
                                        .names_its_device = names_its_device,
                                    });
    }
    me_fp8_quantize_parameter(nn, linear.fp8, linear.weight);
    if (!names_its_device) {
        linear.overlap = me_te_overlap_of(nn, &linear, spec->name);
    }
    return linear;
}

me_linear me_column_linear_create(me_nn *nn, const me_linear_spec *spec)
{
    return create(nn, spec, false);
}

me_linear me_row_linear_create(me_nn *nn, const me_linear_spec *spec)
{
    return create(nn, spec, true);
}

void me_global_buffer(const me_nn *nn, me_dtype dtype, me_shape shape)
{
    me_engine *e = nn->e;
    me_tensor **buffer = me_engine_global_buffer(e, dtype);
    const uint64_t numel = me_shape_numel(&shape);
    if (!me_engine_is_ok(e) ||
        (*buffer != NULL && me_numel(*buffer) >= numel)) {
        return;
    }
    me_tensor *larger = me_keep(e, "global_memory_buffer", ME_CATEGORY_BUFFER,
                                dtype, ME_SHAPE(numel));
    me_release(e, *buffer);
    *buffer = larger;
}

void me_gather_rows(me_nn *nn, const me_tensor *x, bool is_async)
{
    me_shape shape = x->shape;
    shape.dim[0] =
        me_size_mul(shape.dim[0], (uint64_t)nn->config->parallel.tensor);
    me_global_buffer(nn, x->dtype, shape);
    me_communicate(nn->e, nn->comm,
                   (me_call){ME_GROUP_TENSOR, ME_COLLECTIVE_ALL_GATHER,
                             x->dtype, me_numel(x), -1, is_async});
}

/** What a linear function saves; its node's flag says that it is
 *  column-parallel. */
enum {
    LINEAR_SAVED_INPUT,
    LINEAR_SAVED_WEIGHT
};

static bool gathers(const me_nn *nn, const me_node *node)
{
    return node->data.flag && nn->config->parallel.sequence;
}

/** Of a split backward: the weight's gradient is made later. */
static void keep_weight_gradient(me_nn *nn, const me_node *node, me_tensor *gy)
{
    me_weight_gradients_keep(nn->e, nn->weights,
                             &(me_weight_work){
                                 .x = {{node->saved[LINEAR_SAVED_INPUT]}},
                                 .gy = {{gy}},
                                 .rows = me_rows(gy),
                                 .weight = node->edges[1].node->variable,
                                 .gathers_rows = gathers(nn, node),
                                 .module = node->module,
                             });
}

static void linear_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                            me_tensor **gx)
{
    const me_linear *linear = node->data.context;
    me_nn nn = *linear->nn;
    me_tensor *x = node->saved[LINEAR_SAVED_INPUT];
    const me_tensor *weight = node->saved[LINEAR_SAVED_WEIGHT];
    const bool is_column = node->data.flag;
    const uint64_t outputs = me_dim(weight, 0);
    const uint64_t inputs = me_dim(weight, 1);
    const bool is_split =
        me_needs(node, 1) && nn.weights != NULL && nn.weights->is_split;
    const bool is_deferred =
        linear->deferred != NULL &&
        me_deferred_keep_gradient(e, linear->deferred, gy[0]);
    if (gathers(&nn, node) && !is_split && !is_deferred) {
        me_gather_rows(&nn, x, true);
    }
    me_tensor *dx = me_gemm(e, ME_KERNEL_LINEAR_DGRAD, gy[0]->dtype,
                            me_shape_with_last(&gy[0]->shape, inputs), outputs);
    gx[0] = dx;
    if (gathers(&nn, node)) {
        me_launch_stream_waits(e);
        gx[0] = me_reduce_scatter_first_async(e, nn.comm, ME_GROUP_TENSOR, dx);
    } else if (is_column && nn.config->parallel.tensor > 1) {
        me_communicate(e, nn.comm,
                       (me_call){ME_GROUP_TENSOR, ME_COLLECTIVE_ALL_REDUCE,
                                 dx->dtype, me_numel(dx), -1, true});
    }
    if (is_split) {
        keep_weight_gradient(&nn, node, gy[0]);
    } else if (me_needs(node, 1) && me_fuses_weight_gradients(&nn)) {
        me_main_grad_get(&nn, node->edges[1].node->variable);
        if (!is_deferred) {
            me_gemm_run(e, ME_KERNEL_LINEAR_WGRAD, weight, me_rows(gy[0]));
        }
        gx[1] = me_te_dummy_wgrad(&nn, weight->dtype, &weight->shape);
    } else if (me_needs(node, 1)) {
        gx[1] = me_weight_gradient(e, gy[0], x, weight);
    }
    if (me_needs(node, 2)) {
        gx[2] = me_sum_to(e, gy[0], &ME_SHAPE(outputs));
    }
    if (is_column && nn.config->parallel.tensor > 1) {
        me_launch_stream_waits(e);
    }
}

static const me_op linear_op = ME_NODE(
    "LinearWithGradAccumulationAndAsyncCommunicationBackward", linear_backward);

/** LinearWithGradAccumulationAndAsyncCommunication.apply. */
static me_tensor *linear_function(const me_linear *linear, bool is_column,
                                  me_tensor *x, me_tensor *weight,
                                  me_tensor *bias)
{
    me_nn *nn = linear->nn;
    me_engine *e = nn->e;
    me_node *node =
        me_record(e, &linear_op, 3, (me_tensor *[]){x, weight, bias});
    me_save(e, node, LINEAR_SAVED_INPUT, x);
    me_save(e, node, LINEAR_SAVED_WEIGHT, weight);
    me_shape shape = me_shape_with_last(&x->shape, me_dim(weight, 0));
    if (is_column && nn->config->parallel.sequence && me_engine_is_ok(e)) {
        me_gather_rows(nn, x, false);
        shape.dim[0] =
            me_size_mul(shape.dim[0], (uint64_t)nn->config->parallel.tensor);
    }
    if (node != NULL) {
        node->data.context = linear;
        node->data.flag = is_column;
    }
    me_tensor *y =
        me_gemm(e, ME_KERNEL_LINEAR, x->dtype, shape, me_dim(weight, 1));
    if (bias != NULL) {
        me_tensor *product = y;
        y = me_pointwise(e, "add", product, (me_dtype)product->dtype);
        me_drop(e, product);
    }
    return me_output(e, node, y);
}

me_tensor *me_column_linear(me_nn *nn, const me_linear *linear, me_tensor *x,
                            const me_parameter *weight)
{
    if (!me_engine_is_ok(nn->e)) {
        return me_none(nn->e);
    }
    me_module_enter(nn->e, linear->module);
    const me_frame frame = me_enter(nn->e);
    x = me_pre_forward(linear->hooks, x);
    if (nn->config->parallel.tensor == 1) { // else the layer does it itself
        x = me_copy_to_tensor_region(nn->e, nn->comm, x);
    }
    const me_parameter *bias = linear->skip_bias_add ? NULL : linear->bias;
    const me_parameter *used = weight == NULL ? linear->weight : weight;
    if (linear->deferred != NULL) {
        me_deferred_keep_input(nn->e, linear->deferred, x);
    }
    const bool communicates = !linear->is_expert && !linear->explicit_comm;
    me_tensor *y = linear_function(linear, communicates, x, used->tensor,
                                   bias == NULL ? NULL : bias->tensor);
    me_leave(nn->e, frame, y);
    y = me_post_forward(linear->hooks, y);
    me_module_leave(nn->e);
    return y;
}

me_tensor *me_row_linear(me_nn *nn, const me_linear *linear, me_tensor *x)
{
    if (!me_engine_is_ok(nn->e)) {
        return me_none(nn->e);
    }
    me_module_enter(nn->e, linear->module);
    const me_frame frame = me_enter(nn->e);
    me_tensor *y =
        linear_function(linear, false, x, linear->weight->tensor, NULL);
    if (linear->is_expert || linear->explicit_comm) {
        // left to the dispatcher
    } else if (nn->config->parallel.sequence) {
        y = me_reduce_scatter_to_sequence_region(nn->e, nn->comm, y);
    } else if (nn->config->parallel.tensor > 1) {
        y = me_reduce_from_tensor_region(nn->e, nn->comm, y);
    }
    me_leave(nn->e, frame, y);
    me_module_leave(nn->e);
    return y;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/te_overlap.h"

#include "base/size.h"
#include "nn/megatron/te_linear.h"

#include <string.h>

/* megatron/core/extensions/transformer_engine.py; ub_… of Transformer Engine's
 * module/linear.py and module/layernorm_linear.py. */

/** Layers that have a user buffer's name. Where TELinear meets another name it
 *  turns the overlap off for all that is built after it; a layer without a name is
 *  none that could. */
static bool has_buffer(const char *name)
{
    static const char *const names[] = {"linear_qkv", "linear_proj",
                                        "linear_fc1", "linear_fc2"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/** Projections into and out of the width of experts are told no name. */
static bool has_no_name(const char *name)
{
    return strstr(name, "latent_proj") != NULL;
}

me_linear_overlap me_te_overlap_of(me_nn *nn, const me_linear *linear,
                                   const char *name)
{
    const me_linear_overlap none = {.gathers_input = false};
    const me_tp_overlap_config *o = &nn->config->tp_overlap;
    if (!o->is_on || nn->te == NULL || has_no_name(name)) {
        return none;
    }
    const bool has_norm = linear->norm_weight != NULL;
    nn->te->stops_overlap |= !has_norm && !has_buffer(name);
    if (nn->te->stops_overlap || !me_te_is_sequence_parallel(nn, linear)) {
        return none;
    }
    if (linear->is_row_parallel) {
        return (me_linear_overlap){.scatters_output = o->scatters,
                                   .gathers_output_gradient = o->gathers};
    }
    const bool is_bulk = has_norm && !o->scatters_input_gradients;
    return (me_linear_overlap){
        .gathers_input = o->gathers,
        .scatters_input_gradient = has_norm && o->scatters_input_gradients,
        .bulk_dgrad = is_bulk && o->bulk_dgrad,
        .bulk_wgrad = is_bulk && o->bulk_wgrad,
    };
}

bool me_te_gathers_in_buffer(const me_nn *nn, const me_linear *linear)
{
    return linear->overlap.gathers_input &&
           (linear->norm_weight == NULL || me_context_now(nn->e)->is_recording);
}

static me_te_workspace workspace_of(bool is_overlapped)
{
    return is_overlapped ? ME_TE_WORKSPACE_OVERLAP : ME_TE_WORKSPACE;
}

me_te_workspace me_te_forward_workspace(const me_nn *nn,
                                        const me_linear *linear)
{
    return workspace_of(linear->overlap.scatters_output ||
                        me_te_gathers_in_buffer(nn, linear));
}

me_te_workspace me_te_dgrad_workspace(const me_linear *linear)
{
    return workspace_of(linear->overlap.gathers_output_gradient ||
                        linear->overlap.scatters_input_gradient ||
                        linear->overlap.bulk_dgrad);
}

me_te_workspace me_te_wgrad_workspace(const me_linear *linear)
{
    return workspace_of(linear->overlap.bulk_wgrad);
}

bool me_te_ops_overlap(const me_nn *nn, const me_linear *linear)
{
    return nn->config->tp_overlap.is_on && nn->te != NULL &&
           !nn->te->stops_overlap && me_te_is_sequence_parallel(nn, linear);
}

me_te_workspace me_te_ops_workspace(const me_nn *nn, const me_linear *linear)
{
    return workspace_of(me_te_ops_overlap(nn, linear));
}

me_shape me_te_all_rows(const me_nn *nn, const me_tensor *x)
{
    me_shape shape = x->shape;
    shape.dim[0] =
        me_size_mul(shape.dim[0], (uint64_t)nn->config->parallel.tensor);
    return shape;
}

me_tensor *me_te_scattered_rows(me_nn *nn, const me_linear *linear,
                                const me_tensor *x)
{
    me_shape shape =
        me_shape_with_last(&x->shape, me_dim(linear->weight->tensor, 0));
    shape.dim[0] /= (uint64_t)nn->config->parallel.tensor;
    return me_empty(nn->e, "reduce_scatter_out", (me_dtype)x->dtype, shape);
}

me_tensor *me_te_scattered(me_nn *nn, const me_linear *linear,
                           const me_tensor *x)
{
    return linear->overlap.scatters_output ? me_te_scattered_rows(nn, linear, x)
                                           : NULL;
}

me_tensor *me_te_copy_out(me_nn *nn, const me_tensor *like)
{
    me_tensor *y = me_empty_like(nn->e, "clone", like);
    me_launch_kernel(nn->e, ME_KERNEL_COPY, 0, me_size_mul(2, me_bytes(y)));
    return y;
}

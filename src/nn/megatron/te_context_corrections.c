/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/te_context_corrections.h"

#include "ops/compiled.h"
#include "ops/elementwise.h"
#include "tensor/launch.h"

bool me_te_compiles(const me_nn *nn)
{
    return nn->config->train.torch_compile &&
           !me_engine_card(nn->e)->te.is_op_by_op;
}

static void launch(me_engine *e, const me_tensor *x)
{
    me_launch_kernel(e, ME_KERNEL_COMPILED, me_numel(x), 3 * me_bytes(x));
}

/** An element-wise result like @p x, which goes. */
static me_tensor *then(me_engine *e, const char *op, me_tensor *x)
{
    me_tensor *y = me_pointwise(e, op, x, ME_DTYPE_FLOAT32);
    me_drop(e, x);
    return y;
}

/** `max + log1p(exp(min - max))` op by op: all but the result of an expression
 *  have names. */
static void add_statistics(me_engine *e, const me_tensor *of_step)
{
    const me_frame frame = me_enter(e);
    me_pointwise(e, "maximum", of_step, ME_DTYPE_FLOAT32);
    me_pointwise(e, "minimum", of_step, ME_DTYPE_FLOAT32);
    me_tensor *x = me_pointwise(e, "sub", of_step, ME_DTYPE_FLOAT32);
    x = then(e, "exp", x);
    x = then(e, "log1p", x);
    then(e, "add", x);
    me_launch_kernel(e, ME_KERNEL_COPY, 0, 2 * me_bytes(of_step));
    me_leave(e, frame, NULL);
}

void me_te_correct_statistics(me_nn *nn, const me_tensor *statistics,
                              const me_tensor *of_step, bool is_half)
{
    if (!me_te_compiles(nn)) {
        add_statistics(nn->e, of_step);
        return;
    }
    me_compiled_run_in_place(nn->e,
                             is_half ? ME_COMPILED_RING_HALF_STATISTICS
                                     : ME_COMPILED_RING_STATISTICS,
                             statistics);
    launch(nn->e, of_step);
}

/** `out · exp(statistics of the step - of all)`, float32, op by op. */
static void scale_output(me_engine *e, const me_te_attention_made *of_step)
{
    then(e, "exp",
         me_pointwise(e, "sub", of_step->statistics, ME_DTYPE_FLOAT32));
    me_pointwise(e, "mul", of_step->output, ME_DTYPE_FLOAT32);
}

me_tensor *me_te_begin_output(me_nn *nn, const me_te_attention_made *of_step)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    const bool is_compiled = me_te_compiles(nn);
    if (!is_compiled) {
        scale_output(e, of_step);
    }
    me_tensor *y =
        me_empty_like(e, "flash_attn_fwd_out_correction_init", of_step->output);
    if (is_compiled) {
        me_compiled_run(e, ME_COMPILED_RING_OUTPUT_INIT, NULL);
    }
    launch(e, y);
    return me_leave(e, frame, y);
}

void me_te_correct_output(me_nn *nn, const me_tensor *y,
                          const me_te_attention_made *of_step, bool is_half)
{
    me_engine *e = nn->e;
    if (!me_te_compiles(nn)) {
        const me_frame frame = me_enter(e);
        scale_output(e, of_step);
        me_launch_kernel(e, ME_KERNEL_ACCUMULATE, me_numel(of_step->output),
                         3 * me_bytes(of_step->output));
        me_leave(e, frame, NULL);
        return;
    }
    me_compiled_run_in_place(
        e, is_half ? ME_COMPILED_RING_HALF_OUTPUT : ME_COMPILED_RING_OUTPUT, y);
    launch(e, of_step->output);
}

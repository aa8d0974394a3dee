/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/torch/stage.h"

#include "base/size.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"

#include <string.h>

enum {
    SIZE_BYTES = 8
};

/** Bytes of an opcode and a number in Python's pickle: BININT1, BININT2, BININT,
 *  or LONG1 with a sign. */
static uint64_t pickled_number(uint64_t n)
{
    if (n <= INT32_MAX) {
        return n <= UINT8_MAX ? 2 : n <= UINT16_MAX ? 3 : 5;
    }
    uint64_t bytes = 3;
    for (uint64_t rest = n; rest > INT8_MAX; rest >>= 8) {
        bytes++;
    }
    return bytes;
}

/** `pickle.dumps((x.to("meta"),))`: two names of torch's, the dtype's, shape and
 *  strides, which are tuples with a mark where they are longer than three. */
static uint64_t pickled_shapes(const me_boundary *b)
{
    enum {
        FIXED_BYTES = 84,
        TUPLE_BYTES = 2,
        MARK_BYTES = 1,
        SHORT_TUPLE = 3
    };

    const int32_t ndim = b->shape.ndim;
    uint64_t bytes =
        FIXED_BYTES + strlen(me_dtype_name(b->dtype)) +
        2 * (uint64_t)(TUPLE_BYTES + (ndim > SHORT_TUPLE ? MARK_BYTES : 0));
    uint64_t stride = 1;
    for (int32_t i = ndim - 1; i >= 0; i--) {
        bytes += pickled_number(b->shape.dim[i]) + pickled_number(stride);
        stride = me_size_mul(stride, b->shape.dim[i]);
    }
    return bytes;
}

static bool is_first(const me_stage *stage)
{
    return stage->index == 0;
}

static bool is_last(const me_stage *stage)
{
    return stage->index == stage->n_stages - 1;
}

me_group_kind me_stage_group(const me_stage *stage)
{
    return me_mesh_group(stage->loop->comm, ME_GROUP_PIPELINE);
}

/** `name = x` where the reference to @p x is taken over. */
static void take(me_engine *e, me_tensor **name, me_tensor *x)
{
    me_tensor *before = *name;
    *name = x;
    me_release(e, before);
}

/** The forward of a stage's module, which `torch.autocast()` decorates: each
 *  call is a context of its own. */
static me_tensor *run_model(const me_stage *stage, me_tensor *x)
{
    me_engine *e = stage->loop->e;
    const me_autocast_state outer = me_autocast_enter(e, stage->loop->autocast);
    me_tensor *y = me_layer_forward(stage->model, x);
    me_autocast_exit(e, outer);
    return y;
}

/** forward_maybe_with_nosync(). */
static me_tensor *call(const me_stage *stage, me_tensor *x)
{
    if (stage->ddp == NULL) {
        return run_model(stage, x);
    }
    me_ddp_pre_forward(stage->ddp);
    return me_ddp_post_forward(stage->ddp, false, run_model(stage, x));
}

me_tensor *me_stage_forward(me_stage *stage, int32_t m, me_tensor *input)
{
    me_engine *e = stage->loop->e;
    me_stage_microbatch *mb = &stage->microbatches[m];
    me_tensor *x = is_first(stage) ? input : mb->input_buffer;
    const me_frame frame = me_enter(e);
    const me_context before = *me_context_now(e);
    me_phase_set(e, ME_PHASE_FORWARD);
    me_category_set(e, ME_CATEGORY_TEMPORARY);
    me_launch_host(e, ME_HOST_ACTION);
    me_tensor *y = call(stage, x);
    if (is_last(stage) && stage->loop->config->torch.returns_outputs) {
        me_assign(e, &mb->output_chunk, y);
    }
    me_assign(e, &mb->output, y);
    me_assign(e, &mb->input, x);
    me_context_restore(e, before);
    me_leave(e, frame, NULL);
    return mb->output;
}

/** The tensor that a stage's backward begins at, with its gradient: the loss
 *  and ones, or the output and what the next stage sent. */
static void begin_at(const me_stage *stage, me_stage_microbatch *mb,
                     me_tensor *loss, me_tensor *output, me_tensor **root,
                     me_tensor **gradient)
{
    *root = is_last(stage) ? loss : output;
    *gradient = is_last(stage)
                    ? me_empty_like(stage->loop->e, "ones_like", loss)
                    : mb->gradient_buffer;
}

/** FSDPState._root_post_backward_final_callback(), if a hook has asked for it. */
static void after_run(void *self)
{
    me_stage *stage = self;
    if (stage->fsdp->is_callback_queued) {
        me_fsdp_end_backward(stage->fsdp);
    }
}

/** submod.parameters(), as they are now. */
static me_stage_weights weights_of(me_stage *stage)
{
    const me_parameter_list *all = &stage->loop->parameters;
    for (uint32_t i = 0; i < stage->n_weights; i++) {
        stage->weights[i] = all->parameters[stage->first_parameter + i]->tensor;
    }
    me_stage_weights weights = {.count = stage->n_weights,
                                .tensors = stage->weights};
    if (stage->fsdp != NULL) {
        weights.after = (me_after_run){.run = after_run, .self = stage};
    }
    return weights;
}

/** backward_maybe_with_nosync(): the last backward of whole ones and of halves
 *  for the weights. */
static void prepare_ddp(me_stage *stage)
{
    if (stage->ddp != NULL && ++stage->n_backwards == stage->n_microbatches) {
        me_ddp_prepare_for_backward(stage->ddp);
    }
}

/** stage_backward(): the input's gradient leaves its `grad`. */
static me_tensor *backward_full(me_stage *stage, me_stage_microbatch *mb,
                                me_tensor *loss, me_tensor *output)
{
    me_engine *e = stage->loop->e;
    const me_frame frame = me_enter(e);
    me_tensor *root = NULL;
    me_tensor *gradient = NULL;
    begin_at(stage, mb, loss, output, &root, &gradient);
    prepare_ddp(stage);
    me_backward(e, root, gradient);
    if (stage->ddp != NULL) {
        me_ddp_end_backward(stage->ddp);
    }
    if (stage->fsdp != NULL) {
        me_fsdp_end_backward(stage->fsdp);
    }
    me_tensor *of_input = NULL;
    if (!is_first(stage) && me_engine_is_ok(e)) {
        me_tensor *leaf = mb->input_buffer;
        of_input = leaf->grad;
        leaf->grad = NULL;
    }
    me_leave(e, frame, NULL);
    return of_input;
}

/** stage_backward_input(): it stays in the buffer's `grad` as well. */
static me_tensor *backward_input(me_stage *stage, me_stage_microbatch *mb,
                                 me_tensor *loss, me_tensor *output)
{
    me_engine *e = stage->loop->e;
    const me_frame frame = me_enter(e);
    me_tensor *root = NULL;
    me_tensor *gradient = NULL;
    begin_at(stage, mb, loss, output, &root, &gradient);
    const me_backward_way way = {root, gradient, mb->input_buffer};
    const me_stage_weights weights = weights_of(stage);
    me_backward_input(e, &way, &weights, &mb->groups);
    for (uint32_t i = 0; i < mb->groups.count; i++) {
        me_launch_host(e, ME_HOST_INPUT_GROUP);
    }
    me_tensor *of_input =
        me_engine_is_ok(e) ? me_retain(mb->input_buffer->grad) : NULL;
    me_leave(e, frame, NULL);
    return of_input;
}

void me_stage_backward(me_stage *stage, int32_t m, me_tensor *loss,
                       bool is_full)
{
    me_engine *e = stage->loop->e;
    me_stage_microbatch *mb = &stage->microbatches[m];
    if (!me_engine_is_ok(e)) {
        return;
    }
    const me_phase phase = me_phase_set(e, ME_PHASE_BACKWARD);
    me_launch_host(e, ME_HOST_ACTION);
    me_launch_host(e, ME_HOST_BACKWARD);
    me_phase_set(e, phase);
    me_tensor *output = mb->output; // fwd_cache.pop()
    me_tensor *input = mb->input;
    mb->output = NULL;
    mb->input = NULL;
    me_tensor *of_input = NULL;
    if (is_full) {
        of_input = backward_full(stage, mb, loss, output);
    } else {
        if (!is_first(stage)) {
            of_input = backward_input(stage, mb, loss, output);
        }
        me_assign(e, &mb->state_input, input);
        me_assign(e, &mb->state_output, is_last(stage) ? loss : output);
        me_assign(e, &mb->state_gradient,
                  is_last(stage) ? NULL : mb->gradient_buffer);
    }
    take(e, &mb->input_gradient, of_input);
    if (is_last(stage) && !is_first(stage)) {
        me_detach_in_place(e, output);
    }
    me_release(e, output);
    me_release(e, input);
}

void me_stage_backward_weight(me_stage *stage, int32_t m)
{
    me_engine *e = stage->loop->e;
    me_stage_microbatch *mb = &stage->microbatches[m];
    if (!me_engine_is_ok(e)) {
        return;
    }
    prepare_ddp(stage);
    if (is_first(stage)) { // whose first half was put off
        me_backward(e, mb->state_output, mb->state_gradient);
        if (stage->ddp != NULL) {
            me_ddp_end_backward(stage->ddp);
        }
        if (stage->fsdp != NULL) {
            me_fsdp_end_backward(stage->fsdp);
        }
    } else {
        const me_stage_weights weights = weights_of(stage);
        me_backward_weight(e, &weights, &mb->groups);
    }
    me_clear(e, &mb->state_input);
    me_clear(e, &mb->state_output);
    me_clear(e, &mb->state_gradient);
}

void me_stage_reduce(me_stage *stage)
{
    if (stage->fsdp != NULL && me_engine_is_ok(stage->loop->e)) {
        me_fsdp_reduce(stage->fsdp);
    }
}

void me_stage_set_input(me_stage *stage, int32_t m, me_tensor *output)
{
    me_engine *e = stage->loop->e;
    const me_frame frame = me_enter(e);
    me_tensor *leaf = me_detach(e, output);
    if (me_engine_is_ok(e)) {
        leaf->is_view = false;
        leaf->requires_grad = true;
    }
    me_assign(e, &stage->microbatches[m].input_buffer, leaf);
    me_leave(e, frame, NULL);
}

void me_stage_take_gradient(me_stage *stage, int32_t m, me_stage *next)
{
    take(stage->loop->e, &stage->microbatches[m].gradient_buffer,
         me_stage_pop_gradient(next, m));
}

me_tensor *me_stage_pop_gradient(me_stage *stage, int32_t m)
{
    me_tensor *gradient = stage->microbatches[m].input_gradient;
    stage->microbatches[m].input_gradient = NULL;
    return gradient;
}

void me_stage_clear(me_stage *stage)
{
    me_engine *e = stage->loop->e;
    stage->n_backwards = 0;
    for (int32_t m = stage->n_microbatches - 1; m >= 0; m--) {
        me_clear(e, &stage->microbatches[m].output_chunk);
    }
    for (int32_t m = 0; m < stage->n_microbatches; m++) {
        me_tensor *buffer = stage->microbatches[m].input_buffer;
        if (buffer != NULL && me_engine_is_ok(e)) {
            me_clear(e, &buffer->grad);
        }
    }
}

void me_stage_tell_p2p(const me_stage *stage, me_c10d_op op, const me_tensor *x,
                       int32_t rank)
{
    me_communicate_c10d(stage->loop->e, stage->loop->comm,
                        (me_c10d_call){.op = op,
                                       .group = me_stage_group(stage),
                                       .peer = rank,
                                       .input_bytes = me_storage_bytes(x),
                                       .output_bytes = me_storage_bytes(x)});
}

static void tell(me_stage *stage, me_collective kind, const me_tensor *x,
                 int32_t rank)
{
    me_stage_tell_p2p(stage,
                      kind == ME_COLLECTIVE_SEND ? ME_C10D_SEND : ME_C10D_RECV_,
                      x, rank);
    me_communicate(stage->loop->e, stage->loop->comm,
                   (me_call){me_stage_group(stage), kind, x->dtype, me_numel(x),
                             rank, false});
}

/** recv_object_list(): sizes, then the bytes, each from whoever sent it. */
static void receive_shapes(me_stage *stage)
{
    me_engine *e = stage->loop->e;
    const me_frame frame = me_enter(e);
    me_tensor *sizes = me_scratch(e, "recv_object_list", SIZE_BYTES);
    me_record_stream(sizes);
    tell(stage, ME_COLLECTIVE_RECV, sizes, stage->previous_rank);
    me_temporary(e, "sum", SIZE_BYTES);
    me_tensor *object =
        me_scratch(e, "recv_object_list", pickled_shapes(&stage->input));
    me_record_stream(object);
    tell(stage, ME_COLLECTIVE_RECV, object, stage->previous_rank);
    me_temporary(e, "item", SIZE_BYTES);
    me_temporary(e, "item", SIZE_BYTES);
    me_drop(e, sizes);
    me_drop(e, object);
    me_leave(e, frame, NULL);
}

/** send_object_list(). */
static void send_shapes(me_stage *stage)
{
    me_engine *e = stage->loop->e;
    const me_frame frame = me_enter(e);
    me_tensor *object =
        me_scratch(e, "send_object_list", pickled_shapes(&stage->output));
    me_tensor *size = me_scratch(e, "send_object_list", SIZE_BYTES);
    me_tensor *sizes = me_scratch(e, "cat", SIZE_BYTES);
    me_record_stream(sizes);
    me_record_stream(object);
    tell(stage, ME_COLLECTIVE_SEND, sizes, stage->next_rank);
    tell(stage, ME_COLLECTIVE_SEND, object, stage->next_rank);
    me_drop(e, size);
    me_drop(e, sizes);
    me_drop(e, object);
    me_leave(e, frame, NULL);
}

/** A forward on zeros says what the outputs look like. */
static void infer_shapes(me_stage *stage)
{
    me_engine *e = stage->loop->e;
    const me_frame frame = me_enter(e);
    const bool grad = me_grad_enable(e, false);
    const me_category category = me_category_set(e, ME_CATEGORY_TEMPORARY);
    me_tensor *zeros =
        me_empty(e, "zeros_like", stage->input.dtype, stage->input.shape);
    call(stage, zeros);
    if (stage->next_rank >= 0 && !stage->has_next_here) {
        send_shapes(stage);
    }
    me_category_set(e, category);
    me_grad_enable(e, grad);
    me_leave(e, frame, NULL);
}

void me_stage_prepare_forward(me_stage *stage)
{
    if (!is_first(stage) && !stage->has_previous_here) {
        receive_shapes(stage);
    }
    infer_shapes(stage);
    for (int32_t m = 0; m < stage->n_microbatches && !is_first(stage); m++) {
        me_tensor *buffer =
            me_keep(stage->loop->e, "recv_forward", ME_CATEGORY_COMMUNICATION,
                    stage->input.dtype, stage->input.shape);
        if (me_engine_is_ok(stage->loop->e)) {
            buffer->requires_grad = true;
            stage->microbatches[m].input_buffer = buffer;
        }
    }
}

void me_stage_prepare_backward(me_stage *stage)
{
    for (int32_t m = 0; m < stage->n_microbatches && !is_last(stage); m++) {
        stage->microbatches[m].gradient_buffer =
            me_keep(stage->loop->e, "recv_backward", ME_CATEGORY_COMMUNICATION,
                    stage->output.dtype, stage->output.shape);
    }
}

void me_stage_fini(me_stage *stage)
{
    me_engine *e = stage->loop->e;
    for (int32_t m = 0; m < stage->n_microbatches; m++) {
        me_stage_microbatch *mb = &stage->microbatches[m];
        me_parameter_groups_fini(e, &mb->groups);
        me_clear(e, &mb->state_gradient);
        me_clear(e, &mb->state_output);
        me_clear(e, &mb->state_input);
        me_clear(e, &mb->output_chunk);
        me_clear(e, &mb->input_gradient);
        me_clear(e, &mb->output);
        me_clear(e, &mb->input);
        me_clear(e, &mb->gradient_buffer);
        me_clear(e, &mb->input_buffer);
    }
    me_fsdp_fini(stage->fsdp);
    me_ddp_fini(stage->ddp);
}

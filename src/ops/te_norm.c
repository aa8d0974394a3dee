/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/te_norm.h"

#include "base/size.h"
#include "ops/te_cudnn_norm.h"
#include "ops/view.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"
#include "tensor/saved_hooks.h"

/** Blocks that a multiprocessor takes at once, by the dtype of the input. */
typedef struct occupancy {
    uint8_t bfloat16;
    uint8_t float16;
    uint8_t float32;
} occupancy;

/** A kernel for rows of @p columns elements: `blocks_per_row` blocks share a
 *  row, or a block has `rows_per_block` rows. */
typedef struct norm_kernel {
    uint32_t columns;
    uint8_t blocks_per_row;
    uint8_t rows_per_block;
    occupancy blocks;
} norm_kernel;

#define EVERY(n)                                                               \
    {                                                                          \
        n, n, n                                                                \
    }

/** The registered kernels (rmsnorm_bwd_semi_cuda_kernel.cu and the like) with
 * the blocks that a multiprocessor of compute capability 9.0 takes: 65,536
 * registers over those of a block's warps, from the registers of the kernels in
 * the library. docs/accounting.md says which of them were measured. */
static const norm_kernel rms_backward_tuned[] = {
    {512, 1, 4, {6, 5, 5}},
    {768, 1, 4, EVERY(4)},
    {1024, 1, 4, EVERY(3)},
    {2048, 1, 1, EVERY(5)},
    {4096, 1, 1, EVERY(3)},
    {8192, 1, 1, EVERY(2)},
    {0},
};

static const norm_kernel rms_backward_general[] = {
    {128, 1, 4, EVERY(12)},  {512, 1, 4, {4, 4, 5}}, {1024, 1, 4, EVERY(3)},
    {2048, 1, 1, {5, 5, 4}}, {4096, 1, 1, EVERY(3)}, {0},
};

static const norm_kernel layer_backward_tuned[] = {
    {768, 1, 4, EVERY(3)},   {1024, 1, 4, EVERY(2)},
    {1536, 1, 1, EVERY(5)},  {2048, 1, 1, EVERY(4)},
    {2304, 1, 1, EVERY(3)},  {3072, 1, 1, EVERY(3)},
    {3840, 1, 1, EVERY(2)},  {4096, 1, 1, EVERY(2)},
    {5120, 1, 1, EVERY(2)},  {6144, 1, 1, EVERY(1)},
    {8192, 2, 1, EVERY(2)},  {10240, 2, 1, EVERY(2)},
    {12288, 4, 1, EVERY(3)}, {12800, 5, 1, EVERY(4)},
    {15360, 4, 1, EVERY(2)}, {16384, 4, 1, EVERY(2)},
    {18432, 4, 1, EVERY(2)}, {20480, 4, 1, EVERY(2)},
    {24576, 4, 1, EVERY(1)}, {25600, 5, 1, EVERY(2)},
    {30720, 4, 1, EVERY(1)}, {32768, 4, 1, EVERY(1)},
    {40960, 4, 1, EVERY(1)}, {49152, 8, 1, EVERY(1)},
    {65536, 8, 1, EVERY(1)}, {0},
};

static const norm_kernel layer_backward_general[] = {
    {128, 1, 4, EVERY(10)}, {512, 1, 4, EVERY(4)},  {1024, 1, 4, EVERY(2)},
    {2048, 1, 1, EVERY(4)}, {4096, 1, 1, EVERY(2)}, {0},
};

/** Forward kernels matter where several blocks share a row; all others use no
 * workspace. */
static const norm_kernel layer_forward_tuned_half[] = {
    {12288, 2, 1, EVERY(4)}, {12800, 2, 1, EVERY(2)},
    {15360, 2, 1, EVERY(2)}, {16384, 2, 1, EVERY(3)},
    {18432, 2, 1, EVERY(2)}, {20480, 2, 1, EVERY(2)},
    {24576, 2, 1, EVERY(2)}, {25600, 2, 1, EVERY(2)},
    {30720, 4, 1, EVERY(2)}, {32768, 4, 1, EVERY(3)},
    {40960, 4, 1, EVERY(2)}, {49152, 4, 1, EVERY(2)},
    {65536, 8, 1, EVERY(3)}, {0},
};

static const norm_kernel layer_forward_tuned_float[] = {
    {10240, 2, 1, EVERY(3)}, {12288, 2, 1, EVERY(2)}, {12800, 2, 1, EVERY(2)},
    {15360, 2, 1, EVERY(2)}, {16384, 2, 1, EVERY(2)}, {18432, 4, 1, EVERY(3)},
    {20480, 2, 1, EVERY(2)}, {24576, 4, 1, EVERY(2)}, {25600, 4, 1, EVERY(2)},
    {30720, 4, 1, EVERY(2)}, {32768, 4, 1, EVERY(2)}, {40960, 4, 1, EVERY(2)},
    {49152, 8, 1, EVERY(2)}, {65536, 8, 1, EVERY(2)}, {0},
};

static const norm_kernel forward_general[] = {
    {8192, 1, 1, EVERY(2)},
    {0},
};

static const norm_kernel no_kernels[] = {{0}};

static const norm_kernel *tuned_kernels(const me_te_norm_call *call)
{
    if (call->is_backward) {
        return call->is_layer_norm ? layer_backward_tuned : rms_backward_tuned;
    }
    if (!call->is_layer_norm) {
        return no_kernels;
    }
    return call->dtype == ME_DTYPE_FLOAT32 ? layer_forward_tuned_float
                                           : layer_forward_tuned_half;
}

static const norm_kernel *general_kernels(const me_te_norm_call *call)
{
    if (!call->is_backward) {
        return forward_general;
    }
    return call->is_layer_norm ? layer_backward_general : rms_backward_general;
}

static uint64_t occupancy_of(const norm_kernel *kernel, me_dtype dtype)
{
    return dtype == ME_DTYPE_BFLOAT16  ? kernel->blocks.bfloat16
           : dtype == ME_DTYPE_FLOAT16 ? kernel->blocks.float16
                                       : kernel->blocks.float32;
}

/** How a kernel is started: blocks of each row, and how many rows of blocks. */
typedef struct launch_shape {
    uint64_t blocks_per_row;
    uint64_t rows_per_block;
    uint64_t groups;
} launch_shape;

/** TeNormalizationPlan::_build() and the launchers: a tuned kernel fills the
 *  card, a general one takes no more blocks than there are rows. */
static launch_shape shape_of(const me_card *card, const me_te_norm_call *call)
{
    const norm_kernel *kernel = tuned_kernels(call);
    while (kernel->columns != 0 && kernel->columns != call->columns) {
        kernel++;
    }
    const bool is_tuned = kernel->columns != 0;
    if (!is_tuned) {
        kernel = general_kernels(call);
        while (kernel->columns < call->columns && kernel[1].columns != 0) {
            kernel++;
        }
    }
    const uint64_t r = is_tuned ? kernel->blocks_per_row
                                : me_div_up(call->columns, kernel->columns);
    const uint64_t blocks = (uint64_t)(card->multiprocessors - call->margin) *
                            occupancy_of(kernel, call->dtype);
    launch_shape shape = {.blocks_per_row = r,
                          .rows_per_block = kernel->rows_per_block,
                          .groups = blocks / me_max_u64(r, 1)};
    if (!is_tuned) {
        shape.groups = me_min_u64(
            shape.groups, me_div_up(call->rows, kernel->rows_per_block));
    }
    return shape;
}

/** What blocks that share rows tell each other, and the barriers they meet at. */
static uint64_t exchange_bytes(const launch_shape *s)
{
    if (s->blocks_per_row <= 1) {
        return 0;
    }
    const uint64_t statistics =
        16 * s->groups * s->rows_per_block * s->blocks_per_row;
    return me_round_up(statistics + 8 * s->groups, 16);
}

uint64_t me_te_norm_workspace_bytes(const me_card *card,
                                    const me_te_norm_call *call)
{
    if (call->is_backward ? card->te.has_cudnn_norm_backward
                          : card->te.has_cudnn_norm_forward) {
        return me_te_cudnn_norm_workspace_bytes(card, call);
    }
    const launch_shape s = shape_of(card, call);
    uint64_t bytes = exchange_bytes(&s);
    if (call->is_backward) { // float32 sums of each weight's gradient
        const uint64_t sums = call->is_layer_norm ? 2 : 1;
        bytes = me_size_add(
            bytes, me_size_mul(4 * sums, me_size_mul(call->columns, s.groups)));
    }
    return me_max_u64(bytes, 1);
}

/** `fwd_ln_sm_margin`, without gradients `inf_ln_sm_margin`; or the backward's. */
static uint32_t margin_of(const me_engine *e, bool is_backward)
{
    const me_te_settings *te = &me_engine_card(e)->te;
    return is_backward                       ? te->backward_norm_margin
           : me_context_now(e)->is_recording ? te->forward_norm_margin
                                             : te->inference_norm_margin;
}

static me_te_norm_call call_of(const me_engine *e, const me_tensor *x,
                               bool is_layer_norm, bool is_backward)
{
    return (me_te_norm_call){
        .is_layer_norm = is_layer_norm,
        .is_backward = is_backward,
        .dtype = (me_dtype)x->dtype,
        .rows = me_rows(x),
        .columns = me_dim(x, -1),
        .margin = margin_of(e, is_backward),
    };
}

/** The kernel runs with its workspace. @param passes  over the tensor
 *  @return the workspace */
static me_tensor *run_kernel(me_engine *e, const me_tensor *x,
                             bool is_layer_norm, bool is_backward,
                             uint64_t passes)
{
    const me_te_norm_call call = call_of(e, x, is_layer_norm, is_backward);
    const me_card *card = me_engine_card(e);
    if (is_backward && card->te.has_cudnn_norm_backward) {
        me_launch_doubt(e, me_te_cudnn_norm_doubt_bytes(card, &call));
    }
    me_tensor *workspace = me_scratch(e, "norm_workspace",
                                      me_te_norm_workspace_bytes(card, &call));
    me_launch_kernel(e, ME_KERNEL_NORM, me_size_mul(5, me_numel(x)),
                     me_size_mul(passes, me_bytes(x)));
    return workspace;
}

static const char *forward_name(bool is_layer_norm)
{
    return is_layer_norm ? "layernorm_fwd" : "rmsnorm_fwd";
}

static me_tensor *statistic(me_engine *e, const char *op, const me_tensor *x)
{
    return me_empty(e, op, ME_DTYPE_FLOAT32, ME_SHAPE(me_rows(x)));
}

me_te_statistics me_te_norm_statistics(me_engine *e, const me_tensor *x,
                                       bool is_layer_norm)
{
    const char *op = forward_name(is_layer_norm);
    me_te_statistics statistics = {NULL, NULL};
    statistics.mean = is_layer_norm ? statistic(e, op, x) : NULL;
    statistics.rstd = statistic(e, op, x);
    return statistics;
}

me_tensor *me_te_norm_kernel(me_engine *e, const me_tensor *x,
                             bool is_layer_norm)
{
    return run_kernel(e, x, is_layer_norm, false, 2);
}

me_tensor *me_te_normalize(me_engine *e, const me_tensor *x, bool is_layer_norm,
                           me_te_statistics *statistics_out)
{
    *statistics_out = me_te_norm_statistics(e, x, is_layer_norm);
    me_tensor *y =
        me_empty(e, forward_name(is_layer_norm), (me_dtype)x->dtype, x->shape);
    me_drop(e, me_te_norm_kernel(e, x, is_layer_norm));
    return y;
}

void me_te_normalize_backward(me_engine *e, const me_tensor *gy,
                              const me_tensor *weight, bool is_layer_norm,
                              me_tensor *gx[3])
{
    const char *op = is_layer_norm ? "layernorm_bwd" : "rmsnorm_bwd";
    gx[0] = me_empty(e, op, (me_dtype)gy->dtype, gy->shape);
    for (int i = 1; i < (is_layer_norm ? 3 : 2); i++) {
        gx[i] = me_empty(e, op, (me_dtype)weight->dtype, weight->shape);
    }
    me_drop(e, run_kernel(e, gy, is_layer_norm, true, 5));
}

enum {
    OP_NORM_INPUT,
    OP_NORM_MEAN,
    OP_NORM_RSTD,
    OP_NORM_WEIGHT
};

me_tensor *me_te_op_view(me_engine *e, me_tensor *x)
{
    if (x == NULL) {
        return NULL;
    }
    me_tensor *view = me_alias(e, x, x->shape, x->strides);
    me_drop(e, x);
    return view;
}

static const me_op copy_kernel = {"contiguous",
                                  .cost = ME_COST(STRIDED, 0, 1, 1)};

/** `x.contiguous()` off the tape: a copy of what has holes, else NULL. */
static me_tensor *dense_copy(me_engine *e, const me_tensor *x)
{
    return me_tensor_is_contiguous(x)
               ? NULL
               : me_kernel_dense(e, &copy_kernel, ME_TENSORS(x));
}

static void op_norm_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                             me_tensor **gx)
{
    me_tensor *gradients[3] = {NULL, NULL, NULL};
    me_tensor *copy = dense_copy(e, gy[0]);
    me_te_normalize_backward(e, gy[0], node->saved[OP_NORM_WEIGHT],
                             node->data.flag, gradients);
    if (me_saved_is_own(node)) {
        me_clear(e, &node->saved[OP_NORM_INPUT]); // clear_tensor_data() of all
    }
    me_saved_clear_data(e, node, OP_NORM_MEAN);
    me_saved_clear_data(e, node, OP_NORM_RSTD);
    for (int i = 0; i < (node->data.flag ? 3 : 2); i++) {
        gx[i] = me_te_op_view(e, gradients[i]);
    }
    me_drop(e, copy);
    const me_te_op_end *end = node->data.context;
    if (end != NULL) {
        end->run(end->self);
    }
}

static const me_op op_norm_op = {.node =
                                     "_OperationFuserAutogradFunctionBackward",
                                 .backward = op_norm_backward,
                                 .marks_saved = true};

me_tensor *me_te_op_norm(me_engine *e, me_tensor *x, me_tensor *weight,
                         me_tensor *bias, const me_te_op_end *end)
{
    const me_frame frame = me_enter(e);
    me_node *node =
        me_record(e, &op_norm_op, 3, (me_tensor *[]){x, weight, bias});
    const bool is_layer_norm = bias != NULL;
    me_tensor *copy = dense_copy(e, x);
    me_tensor *rows = copy == NULL ? x : copy;
    me_te_statistics statistics;
    me_tensor *y = me_te_normalize(e, rows, is_layer_norm, &statistics);
    me_save(e, node, OP_NORM_INPUT, rows);
    me_save(e, node, OP_NORM_MEAN, statistics.mean);
    me_save(e, node, OP_NORM_RSTD, statistics.rstd);
    me_save(e, node, OP_NORM_WEIGHT, weight);
    if (node != NULL) {
        node->data.flag = is_layer_norm;
        node->data.context = end;
    }
    me_drop(e, copy);
    if (is_layer_norm) {
        me_drop(e, statistics.mean);
    }
    me_drop(e, statistics.rstd);
    return me_leave(e, frame, me_output(e, node, me_te_op_view(e, y)));
}

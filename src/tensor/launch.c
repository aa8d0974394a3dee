/* SPDX-License-Identifier: BSD-3-Clause */
#include "tensor/launch.h"

#include "base/size.h"
#include "tensor/engine_private.h"

#define NAME(constant, name) [constant] = (name),

static const char *const kernel_names[] = {ME_KERNEL_LIST(NAME)};

void me_engine_listen(me_engine *e, me_launch_listener listener)
{
    e->listener = listener;
}

static bool is_heard(const me_engine *e)
{
    return e->listener.on_launch != NULL && !e->is_mute && e->strand <= 0 &&
           e->iteration == e->listener.iteration;
}

void me_launch_mute(me_engine *e, bool is_mute)
{
    e->is_mute = is_mute;
}

void me_launch_tell(me_engine *e, me_launch launch)
{
    if (is_heard(e)) {
        launch.phase = (uint8_t)e->context.phase;
        e->listener.on_launch(e->listener.self, &launch);
    }
}

static void count_work(me_engine *e, uint64_t flops, uint64_t bytes)
{
    me_work *work = &e->work[e->context.phase];
    work->flops = me_size_add(work->flops, flops);
    work->bytes = me_size_add(work->bytes, bytes);
}

void me_launch_kernel(me_engine *e, me_kernel_class kernel, uint64_t flops,
                      uint64_t bytes)
{
    count_work(e, flops, bytes);
    if (is_heard(e)) {
        me_launch_tell(e, (me_launch){.kind = ME_LAUNCH_KERNEL,
                                      .kernel = (uint8_t)kernel,
                                      .flops = flops,
                                      .bytes = bytes});
    }
}

void me_launch_doubt(me_engine *e, uint64_t bytes)
{
    e->doubt_bytes = me_max_u64(e->doubt_bytes, bytes);
}

uint64_t me_launch_doubt_bytes(const me_engine *e)
{
    return e->doubt_bytes;
}

/** @param is_block_scaled  of FP8 operands */
static void launch_product(me_engine *e, me_kernel_class kernel, me_dtype dtype,
                           bool is_block_scaled, uint64_t batch,
                           const uint64_t mnk[3])
{
    const uint64_t m = mnk[0];
    const uint64_t n = mnk[1];
    const uint64_t k = mnk[2];
    const uint64_t mn = me_size_mul(m, n);
    if (mn == 0 || batch == 0) {
        return; // nothing to compute: no kernel
    }
    const uint64_t flops =
        me_size_mul(2, me_size_mul(batch, me_size_mul(mn, k)));
    const uint64_t elements = me_size_mul(
        batch,
        me_size_add(mn, me_size_add(me_size_mul(m, k), me_size_mul(k, n))));
    const uint64_t bytes = me_size_mul(elements, me_dtype_bytes(dtype));
    count_work(e, flops, bytes);
    if (is_heard(e)) {
        me_launch_tell(e, (me_launch){.kind = ME_LAUNCH_KERNEL,
                                      .kernel = (uint8_t)kernel,
                                      .dtype = (uint8_t)dtype,
                                      .is_block_scaled = is_block_scaled,
                                      .flops = flops,
                                      .bytes = bytes,
                                      .batch = batch,
                                      .m = m,
                                      .n = n,
                                      .k = k});
    }
}

void me_launch_product(me_engine *e, me_kernel_class kernel, me_dtype dtype,
                       uint64_t batch, const uint64_t mnk[3])
{
    launch_product(e, kernel, dtype, false, batch, mnk);
}

void me_launch_product_of(me_engine *e, me_kernel_class kernel,
                          me_operands operands, me_dtype dtype,
                          const uint64_t mnk[3])
{
    launch_product(e, kernel,
                   operands == ME_OPERANDS_AS_RESULT ? dtype : ME_DTYPE_UINT8,
                   operands == ME_OPERANDS_FP8_BLOCKS, 1, mnk);
}

void me_launch_attention(me_engine *e, me_kernel_class kernel, me_dtype dtype,
                         uint64_t flops, const uint64_t heads_rows_size[3])
{
    count_work(e, flops, 0);
    me_launch_tell(e, (me_launch){.kind = ME_LAUNCH_KERNEL,
                                  .kernel = (uint8_t)kernel,
                                  .dtype = (uint8_t)dtype,
                                  .flops = flops,
                                  .batch = heads_rows_size[0],
                                  .m = heads_rows_size[1],
                                  .k = heads_rows_size[2]});
}

void me_launch_host(me_engine *e, me_host_work work)
{
    me_launch_tell(e,
                   (me_launch){.kind = ME_LAUNCH_HOST, .host = (uint8_t)work});
}

void me_launch_host_waits(me_engine *e)
{
    me_launch_tell(e, (me_launch){.kind = ME_LAUNCH_HOST_WAITS});
}

void me_launch_stream_waits(me_engine *e)
{
    me_launch_tell(e, (me_launch){.kind = ME_LAUNCH_STREAM_WAITS});
}

const char *me_kernel_class_name(me_kernel_class kernel)
{
    return kernel_names[kernel];
}

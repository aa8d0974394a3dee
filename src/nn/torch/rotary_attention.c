/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/torch/rotary_attention.h"

#include "ops/autocast_casts.h"
#include "ops/flash_attention.h"
#include "ops/rotary.h"
#include "ops/sdpa.h"
#include "ops/view.h"

/** `x = x.view(bs, seqlen, -1, self.head_dim)`. */
static me_tensor *heads_of(me_engine *e, me_tensor *x, uint64_t head_size)
{
    return me_rebind(e, x,
                     me_view(e, x,
                             ME_SHAPE(me_dim(x, 0), me_dim(x, 1),
                                      me_dim(x, 2) / head_size, head_size)));
}

static bool are_heads(me_engine *e, const me_tensor *q, const me_tensor *k,
                      const me_tensor *v, uint64_t head_size)
{
    if (!me_engine_is_ok(e)) {
        return false;
    }
    const uint64_t width = me_dim(k, 2);
    if (q->shape.ndim != 3 || width == 0 || width % head_size != 0 ||
        me_dim(q, 2) % width != 0 || !me_shape_equal(&k->shape, &v->shape)) {
        me_engine_fail(e, ME_ERR_CONFIG,
                       "module %s: rotary_attention needs keys and values of "
                       "equal shape (batch, sequence, width) whose width is a "
                       "multiple of head_dim and divides the queries'",
                       me_module_shown(e));
        return false;
    }
    return true;
}

/** repeat_kv(): @p x itself where there is nothing to repeat. */
static me_tensor *repeat_kv(me_engine *e, me_tensor *x, uint64_t times)
{
    return times == 1 ? me_hold(e, x) : me_repeat_heads(e, x, times);
}

static me_tensor *attend(me_nn *nn, me_tensor *q, me_tensor *k, me_tensor *v)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    v = me_autocast_lower(e, v);
    k = me_autocast_lower(e, k);
    q = me_autocast_lower(e, q);
    const bool is_flash = nn->config->torch.attention == ME_SDPA_FLASH &&
                          q->dtype != ME_DTYPE_FLOAT32;
    return me_leave(e, frame,
                    is_flash ? me_sdpa_flash(e, q, k, v, 0)
                             : me_sdpa(e, q, k, v));
}

me_tensor *me_rotary_attention(me_nn *nn, me_tensor *const projected[3],
                               uint64_t head_size, bool repeats)
{
    me_engine *e = nn->e;
    me_tensor *xq = projected[0];
    me_tensor *xk = projected[1];
    me_tensor *xv = projected[2];
    if (!are_heads(e, xq, xk, xv, head_size)) {
        return me_none(e);
    }
    const me_shape shape = xq->shape;
    const uint64_t times = repeats ? me_dim(xq, 2) / me_dim(xk, 2) : 1;
    xq = heads_of(e, xq, head_size); // (b, s, a, d)
    xk = heads_of(e, xk, head_size); // (b, s, g, d)
    xv = heads_of(e, xv, head_size); // (b, s, g, d)
    me_tensor *turned[2] = {NULL, NULL};
    me_apply_rotary_emb(e, (me_tensor *[]){xq, xk}, turned);
    me_drop(e, xq);
    me_drop(e, xk);
    me_tensor *keys = repeat_kv(e, turned[1], times); // (b, s, a, d)
    me_tensor *values = repeat_kv(e, xv, times);      // (b, s, a, d)
    xq = me_rebind(e, turned[0],
                   me_transpose(e, turned[0], 1, 2)); // (b, a, s, d)
    me_tensor *k = me_transpose(e, keys, 1, 2);
    me_drop(e, turned[1]);
    me_tensor *v = me_transpose(e, values, 1, 2);
    me_drop(e, xv);
    me_tensor *output = attend(nn, xq, k, v); // (b, a, s, d)
    output =
        me_rebind(e, output, me_contiguous(e, me_transpose(e, output, 1, 2)));
    return me_view(e, output, shape);
}

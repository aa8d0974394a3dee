/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/moe_utils.h"
#include "nn/megatron/token_dispatcher.h"
#include "ops/index.h"
#include "ops/view.h"
#include "tensor/launch.h"

static me_dispatched dispatch_preprocess(me_dispatcher *d, me_tensor *tokens,
                                         me_tensor *probs, me_tensor *map)
{
    me_assign(d->nn->e, &d->routing_map, map);
    me_assign(d->nn->e, &d->probs, probs);
    return (me_dispatched){tokens, probs};
}

/** `probs.T.contiguous().masked_select(map.T.contiguous())`. */
static me_tensor *select_probs(me_dispatcher *d, me_tensor *probs)
{
    me_engine *e = d->nn->e;
    const me_frame frame = me_enter(e);
    me_tensor *weights = me_contiguous(e, me_transpose(e, probs, 0, 1));
    me_tensor *flags = me_contiguous(e, me_transpose(e, d->routing_map, 0, 1));
    return me_leave(e, frame, me_masked_select(e, weights, flags, d->n_rows));
}

/** The experts of this rank pick their tokens. */
static me_dispatched dispatch_postprocess(me_dispatcher *d, me_dispatched all)
{
    me_engine *e = d->nn->e;
    me_drop(e, me_count_flags(e, d->routing_map));
    me_launch_host_waits(e);
    const me_permuted p =
        me_permute_tokens(e, all.tokens, d->routing_map, NULL, d->n_rows);
    me_assign(e, &d->row_numbers, p.row_numbers);
    me_drop(e, p.row_numbers);
    me_tensor *probs = select_probs(d, all.probs); // (R)
    me_assign(e, &d->probs, probs);
    return (me_dispatched){p.tokens, probs};
}

static me_tensor *combine_preprocess(me_dispatcher *d, me_tensor *rows)
{
    return me_unpermute(d->nn->e, rows, d->row_numbers, d->n_tokens); // (T, h)
}

const me_dispatcher_kind me_dispatcher_all_gather = {
    .dispatch_preprocess = dispatch_preprocess,
    .dispatch_postprocess = dispatch_postprocess,
    .combine_preprocess = combine_preprocess,
};

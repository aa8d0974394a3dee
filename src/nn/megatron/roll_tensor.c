/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/roll_tensor.h"

#include "nn/communicate.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/view.h"

/** A rank's pieces: from the beginning of the sequence, and from its end. */
enum {
    FIRST,
    SECOND,
    PIECES
};

/** A piece, rolled. */
typedef struct piece {
    me_tensor *rolled;   /**< (b, s/2) */
    me_tensor *sent;     /**< its last column, (b); of one sample a view */
    me_tensor *received; /**< (b); NULL: gone */
} piece;

/** `view.contiguous()` where nobody holds the view itself. */
static me_tensor *make_dense(me_engine *e, me_tensor *view)
{
    me_tensor *dense = me_contiguous(e, view);
    if (dense != view) {
        me_drop(e, view);
    }
    return dense;
}

/** torch.roll() of columns [begin, end), which are copied for it where they have
 *  holes. */
static me_tensor *roll_columns(me_engine *e, me_tensor *x, uint64_t begin,
                               uint64_t end)
{
    me_tensor *dense = make_dense(e, me_slice(e, x, -1, begin, end));
    me_tensor *y = me_pointwise(e, "roll", dense, (me_dtype)x->dtype);
    me_drop(e, dense);
    return y;
}

/** `x.select(-1, -1).contiguous()`: (b, n) to (b). */
static me_tensor *last_column(me_engine *e, const me_tensor *x)
{
    return make_dense(e,
                      me_alias(e, x, ME_SHAPE(me_dim(x, 0)), &x->strides[0]));
}

/** isend() or irecv() of the default group, with the rank @p step places further
 *  among those that share a sequence. */
static void transfer(me_nn *nn, me_collective kind, me_tensor *x, int32_t step)
{
    const me_communicators *comm = nn->comm;
    if (!me_engine_is_ok(nn->e)) {
        return;
    }
    me_record_stream(x);
    me_communicate_lone(
        nn->e, comm,
        (me_call){ME_GROUP_WORLD, kind, x->dtype, me_numel(x),
                  comm->index[ME_GROUP_WORLD] + step * comm->context_stride,
                  true});
}

/** First pieces follow each other upwards, second ones downwards, and the last
 *  rank's first piece is followed by its own second one. */
static void exchange(me_nn *nn, piece *pieces)
{
    const int32_t rank = nn->comm->index[ME_GROUP_CONTEXT];
    const bool is_last = rank == nn->comm->size[ME_GROUP_CONTEXT] - 1;
    if (rank > 0) {
        transfer(nn, ME_COLLECTIVE_SEND, pieces[FIRST].sent, -1);
        transfer(nn, ME_COLLECTIVE_RECV, pieces[SECOND].received, -1);
    }
    if (is_last) {
        me_drop(nn->e, pieces[FIRST].received); // `= tensor_send_list[1]`
        pieces[FIRST].received = NULL;
    } else {
        transfer(nn, ME_COLLECTIVE_RECV, pieces[FIRST].received, 1);
        transfer(nn, ME_COLLECTIVE_SEND, pieces[SECOND].sent, 1);
    }
}

/** Lists go from their ends, but requests hold what they send or receive, and are
 *  variables behind them. */
static void drop_pieces(me_engine *e, const piece *pieces)
{
    const piece *a = &pieces[FIRST];
    const piece *b = &pieces[SECOND];
    const bool is_last = a->received == NULL;
    me_tensor *const order[] = {
        b->rolled,
        a->rolled,
        is_last ? b->sent : a->sent,
        is_last ? a->sent : b->received,
        is_last ? b->received : a->received,
        is_last ? NULL : b->sent,
    };
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        me_drop(e, order[i]);
    }
}

static me_tensor *roll_pieces(me_nn *nn, me_tensor *x, me_tensor **sum_out)
{
    me_engine *e = nn->e;
    const uint64_t half = me_dim(x, -1) / PIECES;
    piece pieces[PIECES];
    for (uint64_t i = 0; i < PIECES; i++) {
        pieces[i] =
            (piece){.rolled = roll_columns(e, x, i * half, (i + 1) * half)};
    }
    for (int i = 0; i < PIECES; i++) {
        pieces[i].sent = last_column(e, pieces[i].rolled);
        pieces[i].received = me_empty_like(e, "empty", pieces[i].sent);
    }
    exchange(nn, pieces);
    me_tensor *y = me_cat_last(e, pieces[FIRST].rolled, pieces[SECOND].rolled);
    *sum_out = me_sum_detached(e, y);
    drop_pieces(e, pieces);
    return y;
}

me_tensor *me_roll_tensor(me_nn *nn, me_tensor *x, me_tensor **sum_out)
{
    me_engine *e = nn->e;
    if (nn->comm->size[ME_GROUP_CONTEXT] > 1 && me_engine_is_ok(e)) {
        return roll_pieces(nn, x, sum_out);
    }
    me_tensor *y = me_pointwise(e, "roll", x, (me_dtype)x->dtype);
    *sum_out = me_sum_detached(e, y);
    return y;
}

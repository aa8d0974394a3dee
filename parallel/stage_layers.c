/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/stage_layers.h"

#include "base/assert.h"

#include <stddef.h>

enum {
    ME_LAYERS_MAX = 1 << 30 /**< beyond this, places may not fit an int */
};

/** Places of layers, those that embedding and head take included. */
typedef struct me_places {
    int32_t first;  /**< of the first rank */
    int32_t middle; /**< of every rank between */
    int32_t last;   /**< of the last rank */
} me_places;

/** Is the split given by the layers of the first or last rank? */
static bool is_uneven(const me_layer_split *split)
{
    return split->first_layers != 0 || split->last_layers != 0;
}

static int64_t n_places(const me_layer_split *split)
{
    return (int64_t)split->n_layers + split->counts_embedding +
           split->counts_loss;
}

/** Ranks whose layers are not given. */
static int32_t n_ranks_left(const me_layer_split *split)
{
    return split->pipeline - (split->first_layers != 0) -
           (split->last_layers != 0);
}

/** Layers that the given ranks leave. */
static int32_t n_layers_left(const me_layer_split *split)
{
    return split->n_layers - split->first_layers - split->last_layers;
}

/**
 * Places of each rank, over all its chunks. Even: places / p. Uneven: those
 * given, and the rest in equal parts.
 */
static me_places rank_places(const me_layer_split *split)
{
    if (!is_uneven(split) || split->pipeline == 1) {
        const int32_t each = (int32_t)(n_places(split) / split->pipeline);
        return (me_places){each, each, each};
    }
    const int32_t ranks = n_ranks_left(split);
    const int32_t each = ranks > 0 ? n_layers_left(split) / ranks : 0;
    return (me_places){
        .first = split->first_layers != 0 ? split->first_layers : each,
        .middle = each,
        .last = split->last_layers != 0 ? split->last_layers : each,
    };
}

static me_status check_even(const me_layer_split *split, me_diag *diag)
{
    if (n_places(split) % split->pipeline != 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "%d layers%s%s are not a multiple of %d pipeline ranks",
                       split->n_layers,
                       split->counts_embedding ? " + 1 for the embedding" : "",
                       split->counts_loss ? " + 1 for the loss" : "",
                       split->pipeline);
    }
    return ME_OK;
}

static me_status check_uneven(const me_layer_split *split, me_diag *diag)
{
    if (split->counts_embedding || split->counts_loss) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "layers of the first or last pipeline rank (%d, %d) "
                       "can't be given when embedding or loss count as layers",
                       split->first_layers, split->last_layers);
    }
    const int64_t left =
        (int64_t)split->n_layers - split->first_layers - split->last_layers;
    const int32_t ranks = n_ranks_left(split);
    if (ranks < 0 || left < 0 || (left == 0) != (ranks == 0)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "%d layers with %d given for the first and %d for the "
                       "last pipeline rank leave %lld layers for %d ranks",
                       split->n_layers, split->first_layers, split->last_layers,
                       (long long)left, ranks);
    }
    if (ranks > 0 && left % ranks != 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "%lld layers left by the first and last pipeline rank "
                       "are not a multiple of the %d other ranks",
                       (long long)left, ranks);
    }
    return ME_OK;
}

static me_status check_chunks(const me_layer_split *split, me_diag *diag)
{
    const me_places places = rank_places(split);
    const int32_t each[] = {places.first, places.middle, places.last};
    // A rank between exists from three ranks on.
    for (int i = 0; i < 3; i++) {
        const bool is_there = i != 1 || split->pipeline > 2;
        if (is_there && each[i] % split->chunks != 0) {
            return me_fail(diag, ME_ERR_CONFIG,
                           "%d layers of a pipeline rank are not a multiple "
                           "of its %d chunks",
                           each[i], split->chunks);
        }
    }
    return ME_OK;
}

static me_status check_layout(const me_layer_split *split, me_diag *diag)
{
    if (is_uneven(split) || split->counts_embedding || split->counts_loss) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "a pipeline layout says all: layers of the first or "
                       "last pipeline rank, and embedding or loss that count "
                       "as layers, can't be given with it");
    }
    const int32_t n_stages = split->layout->n_stages;
    const int32_t n_layers = me_layout_n_layers(split->layout);
    if ((int64_t)split->pipeline * split->chunks != n_stages) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "the pipeline layout has %d stages, not %d pipeline "
                       "ranks x %d chunks",
                       n_stages, split->pipeline, split->chunks);
    }
    if (n_layers != split->n_layers) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "the pipeline layout has %d layers (t), the model %d",
                       n_layers, split->n_layers);
    }
    return ME_OK;
}

me_status me_layer_split_check(const me_layer_split *split, me_diag *diag)
{
    if (split->n_layers < 1 || split->n_layers > ME_LAYERS_MAX ||
        split->pipeline < 1 || split->chunks < 1 || split->first_layers < 0 ||
        split->last_layers < 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "can't split %d layers (first rank %d, last rank %d) "
                       "over %d pipeline ranks with %d chunks each",
                       split->n_layers, split->first_layers, split->last_layers,
                       split->pipeline, split->chunks);
    }
    if (split->layout != NULL) {
        return check_layout(split, diag);
    }
    const me_status status =
        is_uneven(split) ? check_uneven(split, diag) : check_even(split, diag);
    return status == ME_OK ? check_chunks(split, diag) : status;
}

/** First layer and number of layers, by the numbers of the split. */
static void place_by_numbers(const me_layer_split *split, me_stage *stage)
{
    const int32_t p = split->pipeline;
    const int32_t chunk = stage->virtual_stage / p;
    const int32_t rank = stage->virtual_stage % p;
    const me_places ranks = rank_places(split);
    const me_places each = {ranks.first / split->chunks,
                            ranks.middle / split->chunks,
                            ranks.last / split->chunks};
    // A round is chunk k of all ranks.
    const int32_t round =
        p == 1 ? each.first : each.first + (p - 2) * each.middle + each.last;
    const int32_t before_in_round =
        rank == 0 ? 0 : each.first + (rank - 1) * each.middle;
    const int32_t own = rank == 0       ? each.first
                        : rank == p - 1 ? each.last
                                        : each.middle;
    stage->first_layer = chunk * round + before_in_round -
                         (split->counts_embedding && !stage->has_embedding);
    stage->n_layers = own - (split->counts_embedding && stage->has_embedding) -
                      (split->counts_loss && stage->has_head);
}

static void place_by_layout(const me_layout *layout, me_stage *stage)
{
    const int32_t *first = &layout->first_layer[stage->virtual_stage];
    stage->first_layer = first[0];
    stage->n_layers = first[1] - first[0];
}

int32_t me_layer_split_mtp_stage(const me_layer_split *split)
{
    if (!split->has_mtp) {
        return -1;
    }
    return split->layout != NULL ? split->layout->mtp_stage
                                 : split->pipeline * split->chunks - 1;
}

me_stage me_layer_split_stage(const me_layer_split *split, int32_t rank,
                              int32_t chunk)
{
    ME_ASSERT(rank >= 0 && rank < split->pipeline);
    const int32_t held =
        split->chunks * (split->copies > 1 ? split->copies : 1);
    ME_ASSERT(chunk >= 0 && chunk < held);
    const int32_t p = split->pipeline;
    const int32_t at = split->stage_of == NULL
                           ? chunk * p + rank
                           : split->stage_of[rank * held + chunk];
    const bool is_first = at == 0;
    const bool is_last = at == p * split->chunks - 1;
    const int32_t mtp = me_layer_split_mtp_stage(split);
    const bool is_shared = (split->is_tied || mtp >= 0) && p > 1;
    const bool is_copy =
        is_shared && !is_first && ((split->is_tied && is_last) || at == mtp);
    me_stage stage = {
        .virtual_stage = at,
        .has_embedding = is_first,
        .has_head = is_last,
        .has_mtp = at == mtp,
        .is_behind_mtp = mtp >= 0 && at > mtp,
        .has_embedding_copy = is_copy,
        .is_shared_embedding = is_copy || (is_shared && is_first),
    };
    if (split->layout != NULL) {
        place_by_layout(split->layout, &stage);
    } else {
        place_by_numbers(split, &stage);
    }
    return stage;
}

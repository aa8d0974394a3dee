/**
 * @file
 * Which decoder layers a chunk of a pipeline rank holds, and whether it has
 * the embedding or the head of the model.
 *
 * Chunk k of rank r is virtual stage k p + r, unless the schedule places stages
 * otherwise; layers run through the virtual stages in order. As in Megatron-LM
 * core_v0.19.0 (get_num_layers_to_build(), get_transformer_layer_offset()).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_PARALLEL_STAGE_LAYERS_H
#define MEMEST_PARALLEL_STAGE_LAYERS_H

#include "base/status.h"
#include "parallel/layout.h"

#include <stdbool.h>
#include <stdint.h>

/** How layers are split over a pipeline. */
typedef struct me_layer_split {
    int32_t n_layers;      /**< decoder layers of the whole model */
    int32_t pipeline;      /**< pipeline ranks */
    int32_t chunks;        /**< of a rank, 1: not interleaved */
    int32_t first_layers;  /**< of the first rank, 0: not given */
    int32_t last_layers;   /**< of the last rank, 0: not given */
    bool counts_embedding; /**< the embedding takes a layer's place */
    bool counts_loss;      /**< the head takes a layer's place */
    bool is_tied;          /**< embedding and head share one weight */
    bool has_mtp;          /**< depths of multi-token prediction follow the
                                layers, where the layout says, else in the last
                                stage; their stage has an embedding too */
    int32_t copies; /**< of the model in the pipeline, each rank holding chunks
                         of all: 2 with two directions; 0 is 1 */
    const int32_t *stage_of; /**< virtual stage of each rank's chunks, pipeline
                                  x (chunks x copies), where they do not stand
                                  in a loop; borrowed; NULL: chunk x pipeline +
                                  rank */
    const me_layout *layout; /**< layers of each virtual stage, instead of what
                                  the numbers above say; borrowed; NULL: not
                                  given */
} me_layer_split;

/** What one chunk of one rank holds. */
typedef struct me_stage {
    int32_t virtual_stage; /**< 0 to pipeline x chunks - 1 */
    int32_t first_layer;   /**< of the whole model, counted from 0 */
    int32_t n_layers;      /**< may be 0 */
    bool has_embedding;
    bool has_head;            /**< final norm, output layer and loss */
    bool has_mtp;             /**< depths of multi-token prediction */
    bool is_behind_mtp;       /**< of all depths comes what it receives */
    bool has_embedding_copy;  /**< the output layer is tied to an embedding that
                                   another rank holds, or multi-token prediction
                                   needs one: a weight of its own, kept equal
                                   over the embedding group */
    bool is_shared_embedding; /**< embedding or copy takes part in that */
} me_stage;

/**
 * Can the split be made?
 *
 * @return ME_OK; ME_ERR_CONFIG with the numbers that don't divide
 */
me_status me_layer_split_check(const me_layer_split *split,
                               me_diag *diag) ME_MUST_CHECK;

/** Virtual stage of the depths of multi-token prediction; -1: none. */
int32_t me_layer_split_mtp_stage(const me_layer_split *split);

/**
 * What a chunk holds. The split must have passed me_layer_split_check().
 *
 * @param rank   pipeline rank, 0 to pipeline - 1
 * @param chunk  0 to chunks x copies - 1
 */
me_stage me_layer_split_stage(const me_layer_split *split, int32_t rank,
                              int32_t chunk);

#endif /* MEMEST_PARALLEL_STAGE_LAYERS_H */

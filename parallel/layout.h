/**
 * @file
 * A pipeline layout as text: what each virtual stage of a pipeline holds.
 *
 * The language of Megatron-LM core_v0.19.0's --pipeline-model-parallel-layout:
 * `E` is the embedding, `t` a decoder layer, `L` the loss, `|` begins the next
 * stage, `m` a depth of multi-token prediction, `x*n` repeats one of these and
 * `(…)*n` several; commas are skipped. Groups don't nest, as there.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_PARALLEL_LAYOUT_H
#define MEMEST_PARALLEL_LAYOUT_H

#include "base/status.h"

#include <stdint.h>

/** Decoder layers of virtual stage v: first_layer[v] to first_layer[v + 1]. */
typedef struct me_layout {
    int32_t n_stages;
    int32_t *first_layer; /**< n_stages + 1 of them; owned */
    int32_t n_mtp_layers; /**< all of them in one stage */
    int32_t mtp_stage;    /**< which; -1: none */
} me_layout;

/**
 * Read a layout. The text begins with `E` and ends with `L`, both once. Where
 * they stand among stages without decoder layers is not kept: Megatron-LM
 * itself makes the embedding in the first stage and the loss in the last.
 * Local.
 *
 * @param text        the whole text
 * @param layout_out  for me_layout_fini(), also on failure
 * @return ME_OK; ME_ERR_CONFIG with what is wrong, at which character of the
 *         text; ME_ERR_NOMEM
 */
me_status me_layout_init(const char *text, me_diag *diag,
                         me_layout *layout_out) ME_MUST_CHECK;

/** Give back what a layout holds. Local. */
void me_layout_fini(me_layout *layout);

/** Decoder layers of all stages. Local. */
int32_t me_layout_n_layers(const me_layout *layout);

#endif /* MEMEST_PARALLEL_LAYOUT_H */

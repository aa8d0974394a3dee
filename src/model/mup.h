/**
 * @file
 * Maximal update parametrisation (--use-mup): what of a model it scales, as
 * TransformerConfig.__post_init__() derives it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_MODEL_MUP_H
#define MEMEST_MODEL_MUP_H

#include "model/job.h"

/** Is the model of another width than the one its learning rates are for? */
static inline bool me_model_is_mup_scaled(const me_model_config *m)
{
    return m->use_mup && m->mup_base_hidden_size != 0 &&
           m->mup_base_hidden_size != m->hidden_size;
}

/** Are logits scaled? By one over the width's multiple, unless it is said. */
static inline bool me_model_scales_logits(const me_model_config *m)
{
    return m->use_mup &&
           (m->mup_output_mult != 1.0 || me_model_is_mup_scaled(m));
}

/** Is what the embedding makes? */
static inline bool me_model_scales_embeddings(const me_model_config *m)
{
    return m->use_mup && m->mup_embedding_mult != 1.0;
}

#endif /* MEMEST_MODEL_MUP_H */

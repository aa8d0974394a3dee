/**
 * @file
 * The keys of config.json and what each is to memest; see huggingface.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_HUGGINGFACE_HUGGINGFACE_PRIVATE_H
#define MEMEST_CONFIG_HUGGINGFACE_HUGGINGFACE_PRIVATE_H

#include "model/effect.h"

#include <stdbool.h>

/** What is done with a key whose value is not null. */
typedef enum me_hf_use {
    ME_HF_OPTION,      /**< sets the rule's option */
    ME_HF_NO_EFFECT,   /**< does not change memory */
    ME_HF_UNMODELLED,  /**< is listed, unless its value is neutral */
    ME_HF_REFUSED,     /**< is an error, unless its value is neutral */
    ME_HF_TIED,        /**< embedding and output layer share a weight */
    ME_HF_BIAS,        /**< attention_bias and mlp_bias together */
    ME_HF_ROPE,        /**< an object that says how positions are scaled */
    ME_HF_WINDOW,      /**< sliding_window, where it is used */
    ME_HF_LAYER_TYPES, /**< a list, one word a layer */
    ME_HF_DROPOUT      /**< of the embedding; must be that of the residuals */
} me_hf_use;

/** What holds for some keys. Lists of these end with NULL keys. */
typedef struct me_hf_rule {
    const char *keys; /**< bars between them */
    me_hf_use use;
    const char *option;  /**< that the value sets, or NULL */
    const char *neutral; /**< values, bars between them, or NULL */
    const char *note;    /**< one phrase for the report, or NULL */
    me_effect effect;    /**< of what is not modelled */
} me_hf_rule;

/** An architecture. All texts are static. */
typedef struct me_hf_architecture {
    const char *name;       /**< of the class, in `architectures` */
    const char *model_type; /**< for files without `architectures` */
    const char *required;   /**< keys, bars between them */
    const char *settings;   /**< option=value, blanks between them */
    const me_hf_rule *own;  /**< before `rules`, or NULL */
    const me_hf_rule *rules;
    bool is_windowed; /**< sliding_window counts without use_sliding_window */
} me_hf_architecture;

/** The rule of a key of an architecture, or NULL. Local. */
const me_hf_rule *me_hf_rule_find(const me_hf_architecture *architecture,
                                  const char *key);

/** The architecture called @p name, or of @p model_type, or NULL. Local. */
const me_hf_architecture *me_hf_architecture_find(const char *name,
                                                  const char *model_type);

#endif /* MEMEST_CONFIG_HUGGINGFACE_HUGGINGFACE_PRIVATE_H */

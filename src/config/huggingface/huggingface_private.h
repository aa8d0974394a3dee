/**
 * @file
 * Architectures, the keys of their config.json and what each is to memest; see
 * huggingface.h.
 *
 * A new architecture is a row of huggingface_architectures.c; a key that no
 * other has, a rule of huggingface_keys.c; what several keys say together, a
 * function of huggingface_experts.c that its row names.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_HUGGINGFACE_HUGGINGFACE_PRIVATE_H
#define MEMEST_CONFIG_HUGGINGFACE_HUGGINGFACE_PRIVATE_H

#include "config/config.h"
#include "model/effect.h"

#include <jansson.h>
#include <stdbool.h>

/** What is done with a key whose value is not null. */
typedef enum me_hf_use {
    ME_HF_OPTION,      /**< sets the rule's option, unless it is neutral */
    ME_HF_DERIVED,     /**< is read by the architecture's derive() */
    ME_HF_NO_EFFECT,   /**< does not change memory */
    ME_HF_UNMODELLED,  /**< is listed, unless its value is neutral */
    ME_HF_REFUSED,     /**< is an error, unless its value is neutral */
    ME_HF_INVERSE,     /**< sets a yes-or-no option to the other one */
    ME_HF_BIAS,        /**< attention_bias and mlp_bias together */
    ME_HF_ROPE,        /**< an object that says how positions are scaled */
    ME_HF_YARN,        /**< the same, where yarn may be */
    ME_HF_LATENT_ROPE, /**< the same, of multi-latent attention */
    ME_HF_WINDOW,      /**< sliding_window, where it is used */
    ME_HF_LAYER_TYPES, /**< a list, one word a layer */
    ME_HF_DROPOUT,     /**< of the embedding; must be that of the residuals */
    ME_HF_QUANTIZED,   /**< how weights are stored; neutral: training unpacks */
    ME_HF_DEPTHS       /**< of multi-token prediction, which the class drops */
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

/** What all models of a class have, no key says, and is not modelled. Lists of
 *  these end with a NULL note. */
typedef struct me_hf_lack {
    const char *note;
    me_effect effect;
} me_hf_lack;

enum {
    ME_HF_RULES = 5 /**< lists of rules of an architecture, at most, and NULL */
};

typedef struct me_hf_reading me_hf_reading;

/** An architecture. All texts are static. */
typedef struct me_hf_architecture {
    const char *name;       /**< of the class, in `architectures` */
    const char *others;     /**< further names, bars between them, or NULL */
    const char *model_type; /**< for files without `architectures`; bars */
    const char *missing;    /**< why it is refused, or NULL: it is read */
    const char *text;     /**< key of the language model's part, or NULL: all */
    const char *required; /**< keys, bars between them; a slash: either */
    const char *settings; /**< option=value, blanks between them: the class's
                               defaults that are not the options' own */
    const me_hf_rule *rules[ME_HF_RULES];  /**< in the order they are asked */
    me_status (*derive)(me_hf_reading *r); /**< after the keys, or NULL */
    const me_hf_lack *lacks;               /**< or NULL */
    bool is_windowed; /**< sliding_window counts without use_sliding_window */
} me_hf_architecture;

/** One reading of a file. */
struct me_hf_reading {
    me_config *config;
    const char *where;
    const char *text; /**< of the whole file */
    const char *from; /**< where the language model's part of it begins */
    json_t *root;     /**< of the language model */
    const me_hf_architecture *architecture;
    me_diag *diag;
};

/** The rule of a key of an architecture, or NULL. Local. */
const me_hf_rule *me_hf_rule_find(const me_hf_architecture *architecture,
                                  const char *key);

/** The rule of a key beside the language model's part, or NULL. Local. */
const me_hf_rule *me_hf_outer_rule_find(const char *key);

/** The architecture called @p name, or of @p model_type, or NULL. Local. */
const me_hf_architecture *me_hf_architecture_find(const char *name,
                                                  const char *model_type);

/** What an unknown architecture has that is not modelled, by the first of its
 *  keys that tells; NULL: no key does. Local. */
const char *me_hf_telltale(const json_t *root, const char **key_out);

/** Do what @p rule says with @p key, whose value is not null. */
me_status me_hf_read_by_rule(me_hf_reading *r, const char *key,
                             const me_hf_rule *rule,
                             const json_t *value) ME_MUST_CHECK;

/** @name Put @p key into the list of what changes nothing, or is not modelled
 *  @{ */
me_status me_hf_list_no_effect(me_hf_reading *r, const char *key,
                               const char *note) ME_MUST_CHECK;
me_status me_hf_list_unmodelled(me_hf_reading *r, const char *key,
                                const char *note,
                                me_effect effect) ME_MUST_CHECK;
/** @} */

/** The line that a key is on, 0 if it is not found as it is written here. */
int me_hf_line_of(const me_hf_reading *r, const char *key);

/** Text of the file for messages and lists: one line of plain letters. */
const char *me_hf_shown(const char *text, char buffer[64]);

/** "a list", "text" and so on; static. */
const char *me_hf_type_of(const json_t *value);

/** `KEY is a list: must be RIGHT`. */
me_status me_hf_fail_type(const me_hf_reading *r, const char *key,
                          const json_t *value, const char *right);

/** @name derive() of architectures
 *  @{ */
me_status me_hf_derive_deepseek_experts(me_hf_reading *r);
me_status me_hf_derive_qwen_experts(me_hf_reading *r);
me_status me_hf_derive_llama4_experts(me_hf_reading *r);
me_status me_hf_derive_ernie_experts(me_hf_reading *r);
me_status me_hf_derive_minimax(me_hf_reading *r);
me_status me_hf_derive_chatglm(me_hf_reading *r);
/** @} */

#endif /* MEMEST_CONFIG_HUGGINGFACE_HUGGINGFACE_PRIVATE_H */

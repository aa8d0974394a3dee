/**
 * @file
 * The flag of Megatron-LM's that a key of a YAML job stands for by its name.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_MEGATRON_LEAF_FLAGS_H
#define MEMEST_CONFIG_MEGATRON_LEAF_FLAGS_H

#include "base/arena.h"
#include "base/yaml_text.h"
#include "config/flags.h"

#include <stdbool.h>

enum {
    ME_LEAF_FLAG_BYTES = 128 /**< of a flag's name, its end included */
};

/** `--the-key` of `the_key`; keys that begin with dashes, as in the MODEL_ARGS of
 *  Megatron-LM's own tests, are flags as they are. Local. */
void me_leaf_flag_name(const me_yaml_leaf *leaf, char name[ME_LEAF_FLAG_BYTES]);

/** A flag of today's Megatron-LM or a fork's: keys of older ones are no flags.
 *  Local. */
bool me_leaf_flag_find(const char *name, me_flag *flag);

/**
 * The words of a leaf for a flag that takes several: of a list, or of "[a b]", as
 * the MODEL_ARGS of Megatron-LM's tests have lists (_run_training.sh). Local.
 *
 * @param words_out  the leaf's own, or of the arena
 * @return how many; 0: it is one value
 */
int me_leaf_words(const me_yaml_leaf *leaf, me_arena *arena,
                  const char *const **words_out);

/** `--no-key` or `--disable-key`, or false: there is none. Local. */
bool me_leaf_flag_negation(const char *name, char out[ME_LEAF_FLAG_BYTES]);

/** Is the key a flag that takes any text, such as a path? Local. */
bool me_leaf_is_text(const me_yaml_leaf *leaf);

/** Is the key a flag's name, or the opposite of one? Local. */
bool me_leaf_is_flag(const me_yaml_leaf *leaf);

#endif /* MEMEST_CONFIG_MEGATRON_LEAF_FLAGS_H */

/**
 * @file
 * Words that options may have as values, for the table (options.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_OPTIONS_WORDS_H
#define MEMEST_CONFIG_OPTIONS_WORDS_H

#include "config/options.h"

/** @name Ends with a word that is NULL
 *  @{ */
extern const me_option_word me_normalization_words[];
extern const me_option_word me_activation_words[];
extern const me_option_word me_position_words[];
extern const me_option_word me_rope_type_words[];
extern const me_option_word me_dispatcher_words[];
extern const me_option_word me_load_balancing_words[];
extern const me_option_word me_dtype_words[];
extern const me_option_word me_optimizer_words[];
extern const me_option_word me_granularity_words[];
extern const me_option_word me_method_words[];
extern const me_option_word me_norm_words[];
extern const me_option_word me_framework_words[];
extern const me_option_word me_placement_words[];
extern const me_option_word me_loader_words[];
extern const me_option_word me_torch_input_dtype_words[];
extern const me_option_word me_torch_autocast_words[];
extern const me_option_word me_torch_policy_words[];
extern const me_option_word me_torch_data_parallel_words[];
extern const me_option_word me_torch_target_words[];
extern const me_option_word me_torch_sdpa_words[];
extern const me_option_word me_core_attention_words[];
extern const me_option_word me_state_words[];
extern const me_option_word me_optimizer_impl_words[];
/** @} */

#endif /* MEMEST_CONFIG_OPTIONS_WORDS_H */

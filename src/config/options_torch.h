/**
 * @file
 * Words of plain PyTorch's options, and of kernels that are PyTorch's, for the
 * table (options.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_OPTIONS_TORCH_H
#define MEMEST_CONFIG_OPTIONS_TORCH_H

#include "config/options.h"

/** @name Ends with a word that is NULL
 *  @{ */
extern const me_option_word me_torch_input_dtype_words[];
extern const me_option_word me_torch_autocast_words[];
extern const me_option_word me_torch_policy_words[];
extern const me_option_word me_torch_data_parallel_words[];
extern const me_option_word me_torch_target_words[];
extern const me_option_word me_torch_sdpa_words[];
extern const me_option_word me_core_attention_words[];
extern const me_option_word me_optimizer_impl_words[];
/** @} */

#endif /* MEMEST_CONFIG_OPTIONS_TORCH_H */

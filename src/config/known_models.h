/**
 * @file
 * Models by the names that others have for them: of Hugging Face's Hub
 * (`meta-llama/Llama-3.1-8B-Instruct`), of recipes (`llama31_8b`) and files of
 * presets (`llama3.1_8B.yaml`), as files of `configs/models`.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_KNOWN_MODELS_H
#define MEMEST_CONFIG_KNOWN_MODELS_H

#include "base/str.h"

#include <stdbool.h>

/**
 * The model of `configs/models` that has the shapes of @p name. Local.
 *
 * @param name       a path before the last part of it does not matter
 * @param model_out  appended to, on success only; the caller gives it back, and
 *                   asks it whether there was memory to look
 * @return false: none is known
 *
 * Of a model with an encoder of images the language model's:
 * me_known_model_sees_images().
 */
bool me_known_model(const char *name, me_str *model_out);

/** Has a model of that name an encoder of images beside its language model
 *  (`Qwen/Qwen2.5-VL-7B-Instruct`)? Local. */
bool me_known_model_sees_images(const char *name);

/**
 * What of the models of a name is not modelled, where the name alone tells:
 * `Qwen/Qwen3-Next-80B-A3B` has layers of gated delta nets. Local.
 *
 * @return static, `layers of …`; NULL: nobody knows
 */
const char *me_known_model_lacks(const char *name);

#endif /* MEMEST_CONFIG_KNOWN_MODELS_H */

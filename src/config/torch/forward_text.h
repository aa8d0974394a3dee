/**
 * @file
 * Reads the forward of a module, a few lines of Python's expressions:
 *
 *     h = x + attention(attention_norm(x)); return h + mlp(mlp_norm(h))
 *
 * Names are variables or children; what else can be called is in
 * docs/modules.md. Each variable lives as long as Python's would.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_TORCH_FORWARD_TEXT_H
#define MEMEST_CONFIG_TORCH_FORWARD_TEXT_H

#include "base/arena.h"
#include "base/str.h"
#include "model/layer.h"

/** What a forward may name besides its own variables. */
typedef struct me_forward_scope {
    const char *const *parameters; /**< the first variables */
    uint32_t n_parameters;
    const me_layer_spec *children; /**< of its module, borrowed */
    uint32_t n_children;
    bool must_return; /**< what it gives stands behind `return`: of a function,
                           as against an expression such as a loss */
} me_forward_scope;

/**
 * Read a forward. Local.
 *
 * @param why          appended to: what is wrong and what would be right
 * @param forward_out  lives in the arena
 * @return ME_OK, ME_ERR_CONFIG with the reason in @p why, ME_ERR_NOMEM
 */
me_status me_forward_parse(me_arena *arena, const char *text,
                           const me_forward_scope *scope, me_str *why,
                           me_forward *forward_out) ME_MUST_CHECK;

#endif /* MEMEST_CONFIG_TORCH_FORWARD_TEXT_H */

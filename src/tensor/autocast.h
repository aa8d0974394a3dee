/**
 * @file
 * `with torch.autocast("cuda", dtype)`: whether operations cast what they are
 * given, and the casts of leaves, of parameters above all, that are kept until
 * the outermost context ends (torch/amp/autocast_mode.py,
 * aten/src/ATen/autocast_mode.cpp, PyTorch 2.11). What each operation casts is
 * its own matter (ops/autocast_casts.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TENSOR_AUTOCAST_H
#define MEMEST_TENSOR_AUTOCAST_H

#include "tensor/engine.h"

/** What a context is entered with. */
typedef struct me_autocast_state {
    bool is_enabled;
    me_dtype dtype; /**< of lower precision */
} me_autocast_state;

/** A parameter and its cast. */
typedef struct me_cached_cast {
    const me_tensor *source; /**< borrowed: leaves outlive the context */
    me_tensor *cast;         /**< owned */
} me_cached_cast;

/** The engine's contexts. */
typedef struct me_autocast {
    me_autocast_state state;
    uint32_t depth; /**< contexts inside each other */
    me_cached_cast *casts;
    uint32_t count;
    uint32_t capacity;
} me_autocast;

/** Enter a context. @return the state before it, for me_autocast_exit() */
me_autocast_state me_autocast_enter(me_engine *e, me_autocast_state state);

/** Leave it; the cached casts go with the outermost one. */
void me_autocast_exit(me_engine *e, me_autocast_state before);

/** What the running context says; not enabled outside of any. */
me_autocast_state me_autocast_now(const me_engine *e);

/** The cast of @p source that the running context has made; NULL: none. */
me_tensor *me_autocast_cached(const me_engine *e, const me_tensor *source);

/** Keep a cast until the outermost context ends. */
void me_autocast_cache(me_engine *e, const me_tensor *source, me_tensor *cast);

/** Give back the list's own memory. */
void me_autocast_fini(me_autocast *autocast);

#endif /* MEMEST_TENSOR_AUTOCAST_H */

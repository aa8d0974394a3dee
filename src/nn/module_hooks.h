/**
 * @file
 * Forward hooks of a module, as FSDP registers them
 * (torch.nn.Module.register_forward_pre_hook, register_forward_hook).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MODULE_HOOKS_H
#define MEMEST_NN_MODULE_HOOKS_H

#include "tensor/tensor.h"

typedef struct me_module_hooks {
    /** Before the forward. @return the input, or what takes its place: a new
     *  variable of the running frame */
    me_tensor *(*pre_forward)(void *self, me_tensor *x);
    /** After it, with the output; the forward's own variables are gone. @return
     *  the output, or what takes its place, as above. NULL: nothing */
    me_tensor *(*post_forward)(void *self, me_tensor *y);
    void *self;
} me_module_hooks;

/** Run the first of them; @p hooks may be NULL. */
static inline me_tensor *me_pre_forward(const me_module_hooks *hooks,
                                        me_tensor *x)
{
    return hooks == NULL ? x : hooks->pre_forward(hooks->self, x);
}

/** Run the second of them; @p hooks may be NULL. */
static inline me_tensor *me_post_forward(const me_module_hooks *hooks,
                                         me_tensor *y)
{
    return hooks == NULL || hooks->post_forward == NULL
               ? y
               : hooks->post_forward(hooks->self, y);
}

#endif /* MEMEST_NN_MODULE_HOOKS_H */

/**
 * @file
 * PyTorch's plain layers, built and run from a tree (model/layer.h): Linear,
 * Embedding, norms, activations, Dropout, Sequential, ModuleList, and modules
 * with a forward of their own.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_TORCH_LAYERS_H
#define MEMEST_NN_TORCH_LAYERS_H

#include "model/layer.h"
#include "nn/checkpoint.h"
#include "nn/module_hooks.h"
#include "nn/nn.h"
#include "ops/vision.h"

typedef struct me_layer me_layer;

enum {
    ME_LAYER_STYLES = 2 /**< of a module, at most: what goes in and out */
};

/** A module; the engine's memory. */
struct me_layer {
    const me_layer_spec *spec;
    me_nn *nn;
    me_module_id module;
    me_parameter *weight; /**< NULL: none */
    me_parameter *bias;
    me_tensor *buffer;        /**< of a Buffer; the engine's memory */
    me_running_stats running; /**< of a BatchNorm2d; the engine's memory */
    me_layer *children;
    uint32_t n_children;
    me_section section;           /**< itself, for a re-entrant checkpoint */
    const me_module_hooks *hooks; /**< borrowed; NULL: none */
    const me_style *styles[ME_LAYER_STYLES]; /**< of the plan; borrowed */
    uint32_t n_styles;
};

/**
 * Build a model as its constructor does: parameters in the order of
 * registration, on the device unless the tree is built on the host; then
 * `.to()`.
 *
 * @param name  of the root in the tree of modules; NULL: it has none
 * @return the root; NULL after a failure of the engine
 */
me_layer *me_layers_build(me_nn *nn, const me_layer_tree *tree,
                          const char *name);

/** What a dotted path of children names, "" itself; NULL: nothing. */
me_layer *me_layer_find(me_layer *layer, const char *path);

/** Call a module. @return its output, a variable of the running frame */
me_tensor *me_layer_forward(const me_layer *layer, me_tensor *x);

/**
 * Run a forward that has no children, such as a loss.
 *
 * @param parameters  its first variables; borrowed
 */
me_tensor *me_forward_run(me_nn *nn, const me_forward *forward,
                          uint32_t n_parameters, me_tensor *const *parameters);

#endif /* MEMEST_NN_TORCH_LAYERS_H */

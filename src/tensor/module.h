/**
 * @file
 * The tree of modules of one rank, with PyTorch's names.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TENSOR_MODULE_H
#define MEMEST_TENSOR_MODULE_H

#include <stdint.h>

/** Index of a module in its tree; 0 is the root, whose name is "". */
typedef uint32_t me_module_id;

typedef struct me_module_info {
    const char *name;       /**< own name, such as "3" or "mlp" */
    const char *path;       /**< dotted, such as "decoder.layers.3.mlp" */
    const char *class_name; /**< of the module, static or the model's; NULL:
                                 not known */
    const char *where;      /**< the user's file that it is written in, and */
    int line;               /**< the line; NULL, 0: not known */
    me_module_id parent;
    uint32_t depth;      /**< 0 for the root */
    uint64_t parameters; /**< elements of its own and its children's */
    uint64_t parameter_bytes;
    uint32_t entered; /**< how often it runs now: 0 or 1 but for recursion */
    uint64_t parameter_blocks; /**< their bytes, each rounded to a block of
                                    PyTorch's allocator; shared ones too */
    uint64_t buffer_blocks;    /**< the same of its buffers */
} me_module_info;

/** All modules of one rank in the order they were made; parents come first. */
typedef struct me_module_tree {
    me_module_info *modules;
    uint32_t count;
    uint32_t capacity;
} me_module_tree;

#endif /* MEMEST_TENSOR_MODULE_H */

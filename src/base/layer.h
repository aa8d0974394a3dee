/**
 * @file
 * A model written as a tree of PyTorch's layers: what each layer's constructor
 * is given, and the forward of the modules that are no layer of torch.nn.
 * Read from a `.cfg` file (docs/modules.md), read-only afterwards.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_BASE_LAYER_H
#define MEMEST_BASE_LAYER_H

#include "base/dtype.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** X(constant, class, has children): the classes of layers, as torch.nn names
 *  them. */
#define ME_LAYER_LIST(X)                                                       \
    X(ME_LAYER_MODULE, "Module", true)                                         \
    X(ME_LAYER_SEQUENTIAL, "Sequential", true)                                 \
    X(ME_LAYER_MODULE_LIST, "ModuleList", true)                                \
    X(ME_LAYER_LINEAR, "Linear", false)                                        \
    X(ME_LAYER_EMBEDDING, "Embedding", false)                                  \
    X(ME_LAYER_LAYER_NORM, "LayerNorm", false)                                 \
    X(ME_LAYER_RMS_NORM, "RMSNorm", false)                                     \
    X(ME_LAYER_RELU, "ReLU", false)                                            \
    X(ME_LAYER_GELU, "GELU", false)                                            \
    X(ME_LAYER_SILU, "SiLU", false)                                            \
    X(ME_LAYER_DROPOUT, "Dropout", false)

typedef enum me_layer_kind {
#define ME_LAYER_ENUM(constant, name, has_children) constant,
    ME_LAYER_LIST(ME_LAYER_ENUM)
#undef ME_LAYER_ENUM
    ME_LAYER_COUNT
} me_layer_kind;

/** What an expression of a forward does. */
typedef enum me_expression_kind {
    ME_EXPRESSION_NAME,      /**< variable `index` */
    ME_EXPRESSION_CALL,      /**< child `index` of one operand */
    ME_EXPRESSION_ADD,       /**< a + b */
    ME_EXPRESSION_SUB,       /**< a - b */
    ME_EXPRESSION_MUL,       /**< a * b */
    ME_EXPRESSION_SQUARE,    /**< a ** 2 */
    ME_EXPRESSION_CAST,      /**< a.float() and the like: to `index`, a dtype */
    ME_EXPRESSION_SUM,       /**< a.sum() */
    ME_EXPRESSION_MEAN,      /**< a.mean() */
    ME_EXPRESSION_ARANGE,    /**< arange(a.size(index)): int64 */
    ME_EXPRESSION_ATTENTION, /**< scaled_dot_product_attention(a, b, c,
                                  n_heads=index): heads of (batch, sequence,
                                  width) are viewed, attended and viewed back */
} me_expression_kind;

enum {
    ME_EXPRESSION_OPERANDS = 3,
    ME_FORWARD_VARIABLES = 16,
    ME_FORWARD_RETURNS = INT32_MAX
};

typedef struct me_expression {
    me_expression_kind kind;
    uint32_t index;
    const struct me_expression *operands[ME_EXPRESSION_OPERANDS];
} me_expression;

/** `variable = value`, or the end of the forward. */
typedef struct me_statement {
    uint32_t variable; /**< ME_FORWARD_RETURNS: the value is returned */
    const me_expression *value;
} me_statement;

/** A forward as Python would run it; parameters are the first variables. */
typedef struct me_forward {
    const char *text; /**< as written */
    me_statement *statements;
    uint32_t n_statements;
    uint32_t n_variables;
} me_forward;

/** One module of the tree. */
typedef struct me_layer_spec {
    me_layer_kind kind;
    const char *name;     /**< its own: an attribute's, or a number in a list */
    me_dtype dtype;       /**< of its parameters */
    uint64_t inputs;      /**< in_features, num_embeddings, normalized_shape */
    uint64_t outputs;     /**< out_features, embedding_dim */
    bool has_bias;        /**< of Linear */
    double p;             /**< of Dropout */
    bool is_checkpointed; /**< called through torch.utils.checkpoint with
                               use_reentrant=False */
    bool is_sharded;      /**< fully_shard() is called for it */
    const char *tied_to;  /**< path of the module whose weight is its own; NULL:
                               none */
    me_forward forward;   /**< of Module */
    struct me_layer_spec *children;
    uint32_t n_children;
} me_layer_spec;

/** A whole model. */
typedef struct me_layer_tree {
    me_layer_spec root;
    bool is_built_on_host; /**< and moved to the device once it is built */
    bool has_cast;         /**< `.to(cast)` once it is built */
    me_dtype cast;
} me_layer_tree;

/** The name of a class; static. */
const char *me_layer_kind_name(me_layer_kind kind);

/** Can it have children? */
bool me_layer_kind_has_children(me_layer_kind kind);

#ifdef __cplusplus
}
#endif

#endif /* MEMEST_BASE_LAYER_H */

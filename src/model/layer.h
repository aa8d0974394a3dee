/**
 * @file
 * A model written as a tree of PyTorch's layers: what each layer's constructor
 * is given, and the forward of the modules that are no layer of torch.nn.
 * Read from a `.cfg` file (docs/modules.md), read-only afterwards.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_MODEL_LAYER_H
#define MEMEST_MODEL_LAYER_H

#include "model/dtype.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** X(constant, class, has children): the classes of layers, as torch.nn names
 *  them. Parameter and Buffer are no modules: what a module of its own forward
 *  registers besides its children. */
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
    X(ME_LAYER_DROPOUT, "Dropout", false)                                      \
    X(ME_LAYER_CONV2D, "Conv2d", false)                                        \
    X(ME_LAYER_BATCH_NORM2D, "BatchNorm2d", false)                             \
    X(ME_LAYER_MAX_POOL2D, "MaxPool2d", false)                                 \
    X(ME_LAYER_ADAPTIVE_AVG_POOL2D, "AdaptiveAvgPool2d", false)                \
    X(ME_LAYER_FLATTEN, "Flatten", false)                                      \
    X(ME_LAYER_PARAMETER, "Parameter", false)                                  \
    X(ME_LAYER_BUFFER, "Buffer", false)

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
    ME_EXPRESSION_ROTARY_ATTENTION,         /**< apply_rotary_emb, repeat_kv and
                                  scaled_dot_product_attention of heads of
                                  `index` elements */
    ME_EXPRESSION_GROUPED_ROTARY_ATTENTION, /**< without repeat_kv: enable_gqa */
    ME_EXPRESSION_CROSS_ENTROPY, /**< cross_entropy(a, b): a (…, classes) */
    ME_EXPRESSION_PARAMETER,     /**< the Parameter that is child `index` */
    ME_EXPRESSION_ADD_NUMBER, /**< a + a number, `index` 1: 0.5 and the like */
    ME_EXPRESSION_RSQRT,      /**< a.rsqrt() */
    ME_EXPRESSION_MEAN_LAST,  /**< a.mean(-1), the dimension kept */
    ME_EXPRESSION_TYPE_AS,    /**< a.type_as(b) */
    ME_EXPRESSION_RELU,       /**< relu(a) of torch.nn.functional */
    ME_EXPRESSION_VIEW,       /**< a.view(sizes), of `index` dimensions */
    ME_EXPRESSION_RESHAPE,    /**< a.reshape(sizes) */
} me_expression_kind;

enum {
    ME_EXPRESSION_OPERANDS = 3,
    ME_EXPRESSION_SIZES = 5,
    ME_FORWARD_VARIABLES = 16,
    ME_FORWARD_RETURNS = INT32_MAX
};

typedef struct me_expression {
    me_expression_kind kind;
    uint32_t index;
    const struct me_expression *operands[ME_EXPRESSION_OPERANDS];
    int64_t sizes[ME_EXPRESSION_SIZES]; /**< one of them may be -1: the rest */
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

/** How a DTensor lies on the tensor-parallel ranks: whole on each, a summand on
 *  each, or cut along a dimension, -1 for the last. */
typedef enum me_dlayout {
    ME_DLAYOUT_NONE, /**< not given; of a tensor: no DTensor */
    ME_DLAYOUT_REPLICATE,
    ME_DLAYOUT_PARTIAL,
    ME_DLAYOUT_SHARD_LAST, /**< Shard(-1) */
    ME_DLAYOUT_SHARD_0,    /**< Shard(0), Shard(1) and so on follow */
    ME_DLAYOUT_END = ME_DLAYOUT_SHARD_0 + 5
} me_dlayout;

/** Has a tensor-parallel rank a part of it, by a dimension that is known? */
static inline bool me_dlayout_is_part(me_dlayout layout)
{
    return (int)layout >= (int)ME_DLAYOUT_SHARD_0;
}

/** X(constant, class): torch.distributed.tensor.parallel's styles. */
#define ME_STYLE_LIST(X)                                                       \
    X(ME_STYLE_COLWISE, "ColwiseParallel")                                     \
    X(ME_STYLE_ROWWISE, "RowwiseParallel")                                     \
    X(ME_STYLE_SEQUENCE, "SequenceParallel")                                   \
    X(ME_STYLE_PREPARE_INPUT, "PrepareModuleInput")                            \
    X(ME_STYLE_PREPARE_OUTPUT, "PrepareModuleOutput")

typedef enum me_style_kind {
#define ME_STYLE_ENUM(constant, name) constant,
    ME_STYLE_LIST(ME_STYLE_ENUM)
#undef ME_STYLE_ENUM
    ME_STYLE_COUNT
} me_style_kind;

/** One entry of a parallelize_plan; layouts that PyTorch has a default for are
 *  filled in. */
typedef struct me_style {
    const char *path; /**< each part of it a pattern of fnmatch() */
    me_style_kind kind;
    me_dlayout input; /**< what a plain tensor that comes in is */
    me_dlayout desired_input;
    me_dlayout output; /**< what goes out; of PrepareModuleOutput: what a plain
                           tensor is */
    me_dlayout desired_output; /**< of PrepareModuleOutput */
    bool use_local_output;
} me_style;

/** One module of the tree. */
typedef struct me_layer_spec {
    me_layer_kind kind;
    const char *name; /**< its own: an attribute's, or a number in a list */
    const char *class_name; /**< of the user's; NULL: that of its kind */
    const char *where;      /**< file that it is written in, and */
    int line;               /**< the line of its group or its forward */
    me_dtype dtype;         /**< of its parameters */
    uint64_t inputs;        /**< in_features, in_channels, num_embeddings,
                               normalized_shape, num_features, elements of a
                               Parameter or Buffer */
    uint64_t outputs;       /**< out_features, out_channels, embedding_dim */
    bool has_bias;          /**< of Linear and Conv2d */
    double p;               /**< of Dropout */
    uint64_t kernel;        /**< of Conv2d and MaxPool2d, square */
    uint64_t stride;        /**< of theirs; 0: MaxPool2d's kernel, else 1 */
    uint64_t padding;       /**< of theirs */
    bool is_in_place;       /**< of ReLU */
    bool is_checkpointed;   /**< called through torch.utils.checkpoint */
    bool is_reentrant;      /**< its checkpoint has use_reentrant=True */
    bool is_selective;      /**< its checkpoint keeps the results of attention
                               and of every other matrix product */
    bool has_early_stop;    /**< early_stop is given */
    bool is_recomputed_to_end; /**< its checkpoint has early_stop=False */
    bool is_sharded;           /**< fully_shard() is called for it */
    bool keeps_unsharded;      /**< with reshard_after_forward=False */
    const char *tied_to; /**< path of the module whose weight is its own; NULL:
                               none */
    me_forward forward;  /**< of Module */
    struct me_layer_spec *children;
    uint32_t n_children;
} me_layer_spec;

/** A whole model. */
typedef struct me_layer_tree {
    me_layer_spec root;
    bool is_built_on_host; /**< and moved to the device once it is built */
    bool stays_on_host;    /**< not then, but by fully_shard() */
    bool is_meta;          /**< built without memory, which it gets once it is
                                wrapped (to_empty()) */
    bool has_cast;         /**< `.to(cast)` once it is built */
    me_dtype cast;
    me_style *plan; /**< parallelize_module()'s */
    uint32_t n_styles;
} me_layer_tree;

/** The name of a style's class; static. */
const char *me_style_kind_name(me_style_kind kind);

/** The name of a class; static. */
const char *me_layer_kind_name(me_layer_kind kind);

/** Can it have children? */
bool me_layer_kind_has_children(me_layer_kind kind);

#ifdef __cplusplus
}
#endif

#endif /* MEMEST_MODEL_LAYER_H */

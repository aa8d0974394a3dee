/**
 * @file
 * What all modules of a rank share: the job, the rank's groups, and the list of
 * parameters.
 *
 * The letters of shape comments: b micro-batch, s sequence, h hidden, a
 * attention heads, g query groups, d head size, f MLP width, v padded
 * vocabulary, t tensor-parallel size, E experts, K experts of a token, p
 * expert-parallel size, u tensor-parallel size of an expert; rows of
 * activations outside of the tensor-parallel regions are s/t under sequence
 * parallelism.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_NN_H
#define MEMEST_NN_NN_H

#include "model/job.h"
#include "nn/communicate.h"
#include "parallel/routing.h"
#include "tensor/tensor.h"

/** partition_dim: what tensor ranks have parts of, as Transformer Engine marks a
 *  linear layer's weight, be it cut or not. */
typedef enum me_partition {
    ME_PARTITION_NONE,
    ME_PARTITION_ROWS,
    ME_PARTITION_COLUMNS
} me_partition;

/** A parameter and what the framework marks on it. */
typedef struct me_parameter {
    me_tensor *tensor; /**< owned by the list */
    me_module_id module;
    const char *name; /**< own name, "weight" or "bias"; static */
    uint64_t numel;
    me_shape shape;
    me_dtype dtype;       /**< that its module was built with */
    bool is_made_on_host; /**< moved to the device after the model is built */
    bool is_made_in_params_dtype; /**< there, and so not cast any more */
    bool is_tensor_sharded;       /**< each tensor rank has another part, as
                                       `tensor_model_parallel` says */
    me_partition partition;
    bool is_qkv;               /**< the weight of queries, keys and values */
    bool is_sequence_parallel; /**< its gradient is summed over tensor ranks */
    bool is_qk_norm;           /**< of the norm of queries or keys */
    bool is_shared_embedding;  /**< tied word embeddings under a pipeline */
    bool is_replica_of_tied;   /**< the last stage's copy of them */
    bool is_embedding_or_output; /**< of word embeddings or output layer */
    bool is_position_embedding;
    bool is_expert;      /**< of experts that are spread over expert ranks */
    bool is_made_later;  /**< its gradient: the wrapper's hook is its module's
                              (skip_backward_post_hook) */
    const me_kind *kind; /**< NULL: a plain one; begins with its tensor's, see
                              tensor/kind.h */
    bool is_tied;        /**< two modules have it */
    struct me_parameter
        *parted_from; /**< one with this until fully_shard() parts them; NULL */
    me_tensor *spare; /**< while a parallelize_plan is applied: what the
                               other module has of a tied one; owned */
    int32_t chunk;    /**< model chunk that it belongs to */
    uint32_t index;   /**< in registration order */
} me_parameter;

/** A module's registered buffer: cast like parameters, and nothing else. */
typedef struct me_module_buffer {
    me_tensor **tensor;  /**< where its module keeps it; borrowed */
    uint32_t parameters; /**< that are registered before it */
    bool stays_float32;  /**< cast back after the model is cast */
} me_module_buffer;

/** A rank's parameters and buffers in registration order. */
typedef struct me_parameter_list {
    me_parameter **parameters;
    uint32_t count;
    uint32_t capacity;
    me_module_buffer *buffers;
    uint32_t n_buffers;
    uint32_t buffers_capacity;
} me_parameter_list;

/** Kernels that Transformer Engine sorts tokens with. */
typedef enum me_te_permutation {
    ME_TE_PERMUTE,
    ME_TE_UNPERMUTE,
    ME_TE_SORT_CHUNKS,
    ME_TE_PERMUTATIONS
} me_te_permutation;

/** Rows that each rank of an expert group gets in the dispatch that was asked for
 *  last, as far as they have been. */
typedef struct me_dispatch_rows {
    int32_t iteration;
    int32_t layer;
    int32_t microbatch;
    uint64_t balanced; /**< as the two others of me_token_exchange */
    uint64_t most;
    uint64_t *rows; /**< by member, UINT64_MAX: not asked for; NULL: none is
                         kept yet; the engine's */
    uint64_t *sent; /**< rows that go to each member, and behind them those that
                         come from each; the engine's */
    bool is_shared; /**< `sent` is of this dispatch */
} me_dispatch_rows;

/** What the routers and dispatchers of a process share. */
typedef struct me_moe_state {
    me_dispatch_rows dispatch;
    me_tensor *losses[ME_ROUTER_LOSSES]; /**< each layer's, for the log; owned;
                                              NULL: none yet */
    bool has_recorded[ME_ROUTER_LOSSES]; /**< a router has told one */
    bool has_routed;                     /**< a router has run */
    bool is_count_eager; /**< the first one had no tape: see count_tokens() */
    uint64_t n_biased;   /**< routers with biases of the experts' scores */
    bool is_tuned[ME_TE_PERMUTATIONS][2]; /**< without weights, with: a kernel
                                               was timed */
} me_moe_state;

/** What makes room for the main gradient of a weight before a product adds to it
 *  (get_main_grad()); all NULL: it is there. */
typedef struct me_main_grads {
    void (*get)(void *self, const me_parameter *weight);
    void *self;
} me_main_grads;

/** What every module of a rank is built with and runs on. */
typedef struct me_nn {
    me_engine *e;
    const me_config *config; /**< the job; borrowed */
    const me_communicators *comm;
    me_parameter_list *parameters;
    me_moe_state *moe;
    const bool *is_moe_layer; /**< of each of the model's; borrowed */
    const bool
        *is_window_layer; /**< whose attention looks at a window, of each of
                                      the model's; borrowed; NULL: none */
    const bool *is_no_rope_layer; /**< whose attention has no rotary embedding,
                                      likewise */
    const me_routing *routing;    /**< who gets how many tokens; borrowed */
    int32_t chunk;                /**< that is being built */
    bool is_evaluating;           /**< module.eval() */
    bool is_loss_parallel;        /**< runs in PyTorch's loss_parallel() */
    struct me_weight_gradients
        *weights; /**< where split backwards keep theirs; NULL:
                                       no backward is split */
    struct me_rope_cache *rope_cache;     /**< the rank's; NULL: unlimited */
    struct me_fine_offload *fine_offload; /**< the process's; NULL: none */
    struct me_te_state *te;               /**< the process's Transformer Engine;
                                           NULL: none */
    const me_main_grads *main_grads;      /**< the wrapper's; NULL: none */
    struct me_cuda_graphs *graphs;        /**< of its layers; NULL: none */
} me_nn;

/** How a parameter is made. */
typedef struct me_parameter_spec {
    const char *name;
    me_module_id module;
    me_shape shape; /**< this rank's part */
    bool is_drawn;  /**< with random numbers; else filled with one number */
    bool is_made_on_host;
    bool is_made_in_params_dtype; /**< there; else float32 */
    bool names_its_device;        /**< its module makes it on the card, under
                                `torch.device("meta")` as well */
    bool is_tensor_sharded;
    me_partition partition;
    bool is_sequence_parallel;
    bool is_expert;
    bool is_made_later; /**< its gradient, as in me_parameter */
} me_parameter_spec;

/**
 * Make a parameter and register it. On the device it is made at once in the
 * model's dtype; one made on the host takes no device memory until
 * me_parameters_to_device().
 *
 * @return owned by the list; NULL after a failure of the engine
 */
me_parameter *me_parameter_create(me_nn *nn, const me_parameter_spec *spec);

/** torch.nn.Module.register_buffer(): @p tensor, a place that does not move,
 *  holds it; the module owns it.
 *
 *  @param stays_float32  it is cast with the model, and then back */
void me_buffer_register(me_nn *nn, me_tensor **tensor, bool stays_float32);

/** As me_parameter_create() in a dtype of its own. */
me_parameter *me_parameter_create_as(me_nn *nn, const me_parameter_spec *spec,
                                     me_dtype dtype);

/** A module's attribute is bound to another parameter: the one that it had
 *  goes, if it was registered last, and is not counted any more. */
void me_parameter_remove(me_nn *nn, me_parameter *parameter);

/** Move one parameter that is on the host, as @p dtype; its module runs then. */
void me_parameter_to_device(me_nn *nn, me_parameter *parameter, me_dtype dtype);

/** Move the parameters that were made on the host, each as float32. */
void me_parameters_to_device(me_nn *nn);

/** Cast those, and buffers, to the model's dtype (Float16Module), one after
 *  another. */
void me_parameters_to_half(me_nn *nn);

/** `module.to("cuda")` or `.to(dtype)`: every parameter, in the order of
 *  registration, moved from the host or cast, one after another.
 *
 *  @param dtype  NULL: each stays as it is */
void me_parameters_to(me_nn *nn, const me_dtype *dtype);

/** `module.to(dtype)` of a model on the meta device, where nothing has memory:
 *  parameters will be made in @p dtype. */
void me_parameters_cast_on_meta(me_nn *nn, me_dtype dtype);

/** Let go of all parameters and the list's memory. */
void me_parameter_list_fini(me_engine *e, me_parameter_list *list);

/** Width of what experts are given and make. */
static inline uint64_t me_expert_hidden_size(const me_nn *nn)
{
    const uint64_t latent = nn->config->moe.latent_size;
    return latent > 0 ? latent : nn->config->model.hidden_size;
}

/** @p whole over the tensor-parallel ranks. */
static inline uint64_t me_over_tensor(const me_nn *nn, uint64_t whole)
{
    return whole / (uint64_t)nn->config->parallel.tensor;
}

#endif /* MEMEST_NN_NN_H */

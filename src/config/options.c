/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/options.h"

#include "base/nearest.h"
#include "base/parse.h"
#include "config/attention_options.h"
#include "config/config_private.h"
#include "config/ddp_options.h"
#include "config/fp8_options.h"
#include "config/fsdp_options.h"
#include "config/impl_options.h"
#include "config/moe_options.h"
#include "config/muon_options.h"
#include "config/offload_options.h"
#include "config/tp_overlap_options.h"

/** Upper bounds keep each product of two sizes far from 64 bits; validate.c
 * checks the products of more. */
static const double ranks_max = 1 << 24;
static const double layers_max = 100000;
static const double width_max = 1 << 24;
static const double experts_max = 1 << 16;
static const double tokens_max = 1 << 28;
static const double batch_max = 1 << 30;
static const double scale_max = 3.4e38; // float32's

/* clang-format off */
#define WHERE(field) \
    offsetof(me_config, field), sizeof(((me_config *)NULL)->field)
#define NUMBER(type, name, text, min, max, unit, zero, field, help) \
    {name, type, text, min, max, NULL, unit, zero, help, WHERE(field)}
#define INT(name, text, min, max, unit, zero, field, help) \
    NUMBER(ME_OPTION_INT, name, text, min, max, unit, zero, field, help)
#define COUNT(name, text, min, max, unit, zero, field, help) \
    NUMBER(ME_OPTION_COUNT, name, text, min, max, unit, zero, field, help)
#define SIZE(name, text, min, max, zero, field, help) \
    NUMBER(ME_OPTION_SIZE, name, text, min, max, "bytes", zero, field, help)
#define DOUBLE(name, text, min, max, field, help) \
    NUMBER(ME_OPTION_DOUBLE, name, text, min, max, "", NULL, field, help)
#define BOOL(name, text, field, help) BOOL_OR(name, text, NULL, field, help)
#define BOOL_OR(name, text, zero, field, help) \
    {name, ME_OPTION_BOOL, text, 0, 0, NULL, "", zero, help, WHERE(field)}
#define ENUM(name, text, words, field, help) \
    {name, ME_OPTION_ENUM, text, 0, 0, words, "", NULL, help, WHERE(field)}
#define STRING(name, text, field, help) \
    {name, ME_OPTION_STRING, text, 0, 0, NULL, "", NULL, help, WHERE(field)}

static const me_option options[] = {
STRING("name", "", name, "Name of the job, for the report's head."),
ENUM("framework", "megatron", me_framework_choices, framework,
    "Whose training loop: Megatron-LM's, or plain PyTorch's for the layers of "
    "the `module` group (docs/modules.md)."),

INT("model.num_layers", "0", 1, layers_max, "layers", "required",
    model.num_layers, "Transformer layers of the whole model."),
COUNT("model.hidden_size", "0", 1, width_max, "elements", "required",
    model.hidden_size, "Width of the residual stream."),
COUNT("model.ffn_hidden_size", "0", 1, width_max, "elements",
    "4 x hidden_size; swiglu: two thirds of it, a multiple of 64",
    model.ffn_hidden_size, "Width of the MLP; of each half where it is gated."),
COUNT("model.num_attention_heads", "0", 1, width_max, "heads", "required",
    model.num_attention_heads, "Attention heads (queries)."),
COUNT("model.num_query_groups", "0", 1, width_max, "groups",
    "num_attention_heads", model.num_query_groups,
    "Key and value heads; fewer than query heads is grouped-query attention."),
COUNT("model.kv_channels", "0", 1, width_max, "elements",
    "hidden_size / num_attention_heads", model.kv_channels,
    "Size of one head."),
BOOL("model.use_mup", "false", model.use_mup,
    "Maximal update parametrisation: widths scale learning rates and logits."),
COUNT("model.mup_base_hidden_size", "0", 1, width_max, "elements", "hidden_size",
    model.mup_base_hidden_size, "Width of the model that learning rates are for."),
DOUBLE("model.mup_embedding_mult", "1.0", -ME_OPTION_REAL_MAX, ME_OPTION_REAL_MAX, model.mup_embedding_mult,
    "What the embedding's output is multiplied by; 1 leaves it."),
DOUBLE("model.mup_output_mult", "1.0", -ME_OPTION_REAL_MAX, ME_OPTION_REAL_MAX, model.mup_output_mult,
    "What logits are multiplied by; 1 is mup_base_hidden_size over hidden_size."),
COUNT("model.seq_length", "0", 1, tokens_max, "tokens", "required",
    model.seq_length, "Tokens of one sample."),
COUNT("model.max_position_embeddings", "0", 1, tokens_max, "tokens",
    "seq_length", model.max_position_embeddings,
    "Rows of the learned position table; at least seq_length."),
COUNT("model.vocab_size", "0", 1, tokens_max, "tokens", "required",
    model.vocab_size, "Vocabulary of the tokenizer, before padding."),
COUNT("model.make_vocab_size_divisible_by", "128", 1, tokens_max, "tokens",
    NULL, model.make_vocab_size_divisible_by,
    "The vocabulary is padded to a multiple of this times the tensor size."),
COUNT("model.padded_vocab_size", "0", 1, tokens_max, "tokens",
    "padded as make_vocab_size_divisible_by says", model.padded_vocab_size,
    "Rows of the embedding table over all tensor-parallel ranks."),
ENUM("model.normalization", "LayerNorm", me_normalization_choices,
    model.normalization, "Norm before attention, MLP and output."),
ENUM("model.norm_placement", "pre", me_norm_placement_choices,
    model.norm_placement,
    "Norms before attention and MLP, after them (OLMo 2), or both (Gemma 2)."),
ENUM("model.activation", "gelu", me_activation_choices, model.activation,
    "Activation of the MLP; swiglu, quick_geglu and geglu are gated."),
BOOL("model.add_bias_linear", "true", model.add_bias_linear,
    "Biases of all linear layers."),
BOOL("model.add_qkv_bias", "false", model.add_qkv_bias,
    "Bias of the query-key-value projection; implied by add_bias_linear."),
BOOL("model.attention_output_gate", "false", model.attention_output_gate,
    "Attention's output is multiplied by a gate that the projection makes."),
BOOL("model.qk_layernorm", "false", model.qk_layernorm,
    "Norms of queries and keys, one head at a time."),
BOOL("model.qk_layernorm_across_heads", "false",
    model.qk_layernorm_across_heads,
    "These norms are of all heads at once, as OLMo 2 has them."),
ENUM("model.position_embedding_type", "learned_absolute", me_position_embedding_choices,
    model.position_embedding, "How positions enter the model."),
BOOL("model.rotary_interleaved", "false", model.rotary_interleaved,
    "Columns that turn together are neighbours, not half a head apart."),
BOOL("model.use_rope_scaling", "false", model.use_rope_scaling,
    "Rotary frequencies are scaled as Llama 3.1's."),
DOUBLE("model.rotary_percent", "1.0", 0.0, 1.0, model.rotary_percent,
    "Share of each head that rotary embeddings turn."),
BOOL("model.multi_latent_attention", "false", model.multi_latent_attention,
    "Queries, keys and values come from a latent each (MLA)."),
BOOL("model.mla_down_proj_fusion", "false", model.mla_down_proj_fusion,
    "Transformer Engine: one layer, with the norm before it, makes both latents."),
COUNT("model.q_lora_rank", "0", 1, width_max, "elements", "no latent",
    model.q_lora_rank, "Query latent of multi-latent attention."),
COUNT("model.kv_lora_rank", "32", 1, width_max, "elements", NULL,
    model.kv_lora_rank, "Key and value latent of multi-latent attention."),
COUNT("model.qk_head_dim", "128", 1, width_max, "elements", NULL,
    model.qk_head_dim,
    "Columns of a query's or key's head without position, where it is latent."),
COUNT("model.qk_pos_emb_head_dim", "64", 1, width_max, "elements", NULL,
    model.qk_pos_emb_head_dim,
    "Columns of a query's or key's head that rotate, where it is latent."),
COUNT("model.v_head_dim", "128", 1, width_max, "elements", NULL,
    model.v_head_dim, "Size of a value's head, where it is latent."),
ENUM("model.rope_type", "yarn", me_rope_type_choices, model.rope_type,
    "Rotary embedding of multi-latent attention."),
INT("model.mtp_num_layers", "0", 0, layers_max, "layers", NULL,
    model.mtp_num_layers,
    "Depths of multi-token prediction, a transformer layer each."),
BOOL("model.mtp_use_repeated_layer", "false", model.mtp_use_repeated_layer,
    "All depths of multi-token prediction share one layer."),
BOOL("model.untie_embeddings_and_output_weights", "false",
    model.untie_embeddings_and_output_weights,
    "The output layer has a weight of its own."),
DOUBLE("model.attention_dropout", "0.1", 0.0, 1.0, model.attention_dropout,
    "Dropout of attention probabilities; 0 removes it and its masks."),
DOUBLE("model.hidden_dropout", "0.1", 0.0, 1.0, model.hidden_dropout,
    "Dropout of embeddings and sub-layer outputs; 0 removes it and its masks."),
BOOL("model.attention_softmax_in_fp32", "false", model.attention_softmax_in_fp32,
    "The unfused attention casts its scores to float32."),
BOOL("model.query_key_layer_scaling", "false", model.query_key_layer_scaling,
    "Unfused scores are divided by a layer's number, and multiplied by it in "
    "float32; Transformer Engine does it in float16 only."),
ENUM("model.softmax_type", "vanilla", me_softmax_type_choices, model.softmax_type,
    "What the softmax of attention sums beside its scores."),
COUNT("model.yarn_positions", "4096", 1, tokens_max, "positions", NULL,
    model.yarn_positions, "Positions of yarn's tables of cosines and sines."),
DOUBLE("model.activation_clamp_value", "0", 0.0, ME_OPTION_REAL_MAX, model.activation_clamp_value,
    "Halves of gated units are clamped to it; 0: they are not."),
ME_ATTENTION_OPTIONS
BOOL("model.fp32_residual_connection", "false", model.fp32_residual_connection,
    "The residual stream is float32 in a half precision job."),

ME_MOE_OPTIONS

INT("parallel.world_size", "0", 1, ranks_max, "ranks",
    "the MPI processes if more than one, else tensor x pipeline x context",
    parallel.world_size, "Ranks of the job, one GPU each."),
INT("parallel.tensor", "1", 1, ranks_max, "ranks", NULL, parallel.tensor,
    "Ranks that share each layer (tensor model parallel size)."),
INT("parallel.pipeline", "1", 1, ranks_max, "ranks", NULL, parallel.pipeline,
    "Pipeline stages (pipeline model parallel size)."),
INT("parallel.context", "1", 1, ranks_max, "ranks", NULL, parallel.context,
    "Ranks that share each sequence (context parallel size)."),
ENUM("parallel.cp_comm_type", "p2p", me_cp_comm_type_choices, parallel.cp_comm_type,
    "How their attention communicates (--cp-comm-type), in all layers."),
STRING("parallel.cp_comm_layers", "", parallel.cp_comm_layers,
    "The same as words, one for each layer; empty: all as parallel.cp_comm_type."),
INT("parallel.context_heads", "0", 1, ranks_max, "ranks",
    "not given", parallel.context_heads,
    "Of a2a+p2p: ranks next to each other that share heads; the ring is over the rest "
    "(--hierarchical-context-parallel-sizes)."),
INT("parallel.expert", "1", 1, ranks_max, "ranks", NULL, parallel.expert,
    "Ranks that share the experts (expert model parallel size)."),
INT("parallel.expert_tensor", "0", 1, ranks_max, "ranks", "parallel.tensor",
    parallel.expert_tensor,
    "Ranks that share each expert (expert tensor parallel size)."),
BOOL("parallel.sequence", "false", parallel.sequence,
    "Split norms and dropouts along the sequence; ignored at tensor size 1."),
INT("parallel.virtual_pipeline", "1", 1, layers_max, "chunks", NULL,
    parallel.virtual_pipeline,
    "Model chunks of a rank; more than 1 is the interleaved schedule, if "
    "pipeline.schedule says no other."),
INT("parallel.num_layers_per_virtual_pipeline_stage", "0", 1, layers_max,
    "layers", "as virtual_pipeline says",
    parallel.num_layers_per_virtual_pipeline_stage,
    "Layers of a chunk: the other way to give virtual_pipeline."),
INT("parallel.microbatch_group_size", "0", 1, batch_max, "micro-batches",
    "pipeline", parallel.microbatch_group_size,
    "Micro-batches that run through one chunk in a row when interleaved."),
BOOL("parallel.tp_pp_dp_mapping", "false", parallel.tp_pp_dp_mapping,
    "Number ranks tensor, pipeline, data instead of tensor, data, pipeline."),
BOOL("parallel.overlap_p2p_comm", "true", parallel.overlap_p2p_comm,
    "Overlap sends and receives with work; only when interleaved."),
BOOL("parallel.overlap_p2p_comm_warmup_flush", "false",
    parallel.overlap_p2p_comm_warmup_flush,
    "Overlap those of the schedule's first and last steps as well."),
INT("parallel.decoder_first_pipeline_num_layers", "0", 1, layers_max, "layers",
    "an even share", parallel.decoder_first_pipeline_num_layers,
    "Layers of the first pipeline stage."),
INT("parallel.decoder_last_pipeline_num_layers", "0", 1, layers_max, "layers",
    "an even share", parallel.decoder_last_pipeline_num_layers,
    "Layers of the last pipeline stage."),
BOOL("parallel.account_for_embedding_in_pipeline_split", "false",
    parallel.account_for_embedding_in_pipeline_split,
    "The embedding counts as a layer when layers are dealt to stages."),
BOOL("parallel.account_for_loss_in_pipeline_split", "false",
    parallel.account_for_loss_in_pipeline_split,
    "The output layer counts as a layer when layers are dealt to stages."),
STRING("parallel.pipeline_layout", "", parallel.pipeline_layout,
    "What each stage holds, in the language of Megatron-LM's layouts; "
    "virtual_pipeline follows from it."),
ME_TP_OVERLAP_OPTIONS
ME_FSDP_OPTIONS

STRING("pipeline.schedule", "", pipeline.name,
    "Order of forwards and backwards, a name of `memest schedule list`; empty: "
    "none, 1f1b or interleaved, as parallel.* implies."),
STRING("pipeline.schedule_file", "", pipeline.file,
    "An order of one's own instead: a CSV file as PyTorch writes schedules, looked "
    "up beside the .cfg that names it, then in the working directory."),
INT("pipeline.memory_limit", "0", 1, batch_max, "chunk micro-batches", "as many as 1f1b",
    pipeline.memory_limit, "What a rank may hold under the schedules zb_auto and v_auto."),

COUNT("train.micro_batch_size", "0", 1, batch_max, "samples", "required",
    train.micro_batch_size, "Samples of one forward on one rank."),
COUNT("train.global_batch_size", "0", 1, batch_max, "samples",
    "micro_batch_size x data parallel size", train.global_batch_size,
    "Samples of one optimizer step over all ranks."),
COUNT("train.eval_micro_batch_size", "0", 1, batch_max, "samples", "micro_batch_size",
    train.eval_micro_batch_size, "Samples of one forward of evaluation on a rank."),
COUNT("train.eval_global_batch_size", "0", 1, batch_max, "samples", "global_batch_size",
    train.eval_global_batch_size, "Samples of one iteration of evaluation over all ranks."),
COUNT("train.eval_iters", "100", 0, batch_max, "iterations", NULL, train.eval_iters,
    "Iterations of one evaluation; 0: the job never evaluates."),
BOOL("train.full_validation", "false", train.full_validation,
    "An evaluation takes all of the validation data, whatever train.eval_iters is."),
BOOL("train.decrease_batch_size_if_needed", "false", train.decrease_batch_size_if_needed,
    "A global batch that the ranks do not divide is made as much smaller."),
INT("train.iterations", "2", 2, 16, "iterations", NULL, train.iterations,
    "Iterations to simulate: the first makes the optimizer's state, the second "
    "is the steady one, and every later one repeats it."),
ENUM("train.params_dtype", "float32", me_params_dtype_choices, train.params_dtype,
    "Type of parameters and activations."),
BOOL("train.grad_reduce_in_bf16", "false", train.grad_reduce_in_bf16,
    "bfloat16 jobs keep and reduce gradients in bfloat16, not float32."),
BOOL("train.accumulate_allreduce_grads_in_fp32", "false", train.accumulate_allreduce_grads_in_fp32,
    "Gradients are float32; implied by bfloat16 without grad_reduce_in_bf16."),
DOUBLE("train.loss_scale", "0", 0.0, scale_max, train.loss_scale,
    "Fixed loss scale; 0 is float16's dynamic one, and none of others."),
DOUBLE("train.initial_loss_scale", "4294967296", 0.0, scale_max, train.initial_loss_scale,
    "Where float16's dynamic loss scale begins; above 65504 the first steps overflow."),
BOOL("train.create_attention_mask_in_dataloader", "true", train.create_attention_mask_in_dataloader,
    "Each batch brings its attention mask to the GPU."),
BOOL("train.torch_compile", "true", train.torch_compile,
    "Functions that Megatron-LM compiles are compiled; false, as with "
    "TORCH_COMPILE_DISABLE=1: they run op by op."),
BOOL("train.log_params_norm", "false", train.log_params_norm,
    "After each step the norm of all parameters, for the log."),
INT("train.timing_log_level", "0", 0, 2, "level", NULL, train.timing_log_level,
    "From 1 on parts of a step are timed, each behind a barrier."),
BOOL("train.barrier_with_level_1_timing", "true", train.barrier_with_level_1_timing,
    "Ranks meet before such a part begins."),
INT("train.empty_unused_memory_level", "0", 0, 2, "times", NULL, train.empty_unused_memory_level,
    "torch.cuda.empty_cache() before the optimizer's step, at 2 after it too."),
ENUM("train.load_checkpoint", "nothing", me_checkpoint_load_choices, train.load_checkpoint,
    "Of a torch_dist checkpoint, before the first iteration (--load); other: of another, "
    "which is not modelled."),
BOOL_OR("train.compile_cache_is_warm", "true", "not known, taken for filled", train.compile_cache_is_warm,
    "An earlier run has timed the compiled kernels: their timings are cached."),
BOOL("train.bias_gelu_fusion", "true", train.bias_gelu_fusion,
    "Compiled bias and gelu; only with linear biases."),
BOOL("train.bias_swiglu_fusion", "true", train.bias_swiglu_fusion,
    "Compiled bias and swiglu."),
BOOL("train.bias_dropout_fusion", "true", train.bias_dropout_fusion,
    "Compiled bias, dropout and residual sum."),
BOOL("train.apply_rope_fusion", "true", train.apply_rope_fusion,
    "Transformer Engine's rotary kernel; only with rope."),
BOOL("train.masked_softmax_fusion", "true", train.masked_softmax_fusion,
    "One kernel for scaling, mask and softmax of the unfused attention."),
BOOL("train.gradient_accumulation_fusion", "true", train.gradient_accumulation_fusion,
    "Weight gradients are added to the gradient buffer by the matrix product."),
BOOL("train.cross_entropy_loss_fusion", "false", train.cross_entropy_loss_fusion,
    "Compiled vocabulary-parallel cross entropy, Megatron-LM's native one."),
ENUM("train.cross_entropy_fusion_impl", "native", me_cross_entropy_impl_choices, train.cross_entropy_fusion_impl,
    "Whose it is then: Megatron-LM's compiled one, or Transformer Engine's."),
BOOL("train.defer_embedding_wgrad_compute", "false", train.defer_embedding_wgrad_compute,
    "The output layer's weight gradients wait for the pipeline's flush."),
COUNT("train.wgrad_deferral_limit", "0", 0, 1e6, "micro-batches", "all", train.wgrad_deferral_limit,
    "Micro-batches whose output layer's weight gradient waits."),
BOOL("train.calculate_per_token_loss", "false", train.calculate_per_token_loss,
    "Gradients of the sum over tokens, divided by their number once all exist."),
ME_FP8_OPTIONS
BOOL("train.deterministic_mode", "false", train.deterministic_mode,
    "Kernels whose results repeat to the bit, which take more scratch memory."),
BOOL("train.check_for_large_grads", "false", train.check_for_large_grads,
    "Each bucket's norm of gradients is looked at for its size."),
BOOL("train.check_for_nan_in_loss_and_grad", "true", train.check_for_nan_in_loss_and_grad,
    "Look for NaN; off where float16 scales the loss dynamically."),

ENUM("optimizer.kind", "adam", me_optimizer_kind_choices, optimizer.kind,
    "The optimizer; Megatron-LM's adam is AdamW, and plain PyTorch's default is "
    "adamw."),
BOOL("optimizer.distributed", "false", optimizer.distributed,
    "Split main parameters and states over the data-parallel ranks."),
INT("optimizer.num_distributed_optimizer_instances", "1", 1, ranks_max,
    "instances", NULL, optimizer.num_instances,
    "Copies of the distributed optimizer, each over a part of the data-parallel "
    "ranks."),
ME_DDP_OPTIONS
BOOL("optimizer.saves_fully_reshardable", "false",
    optimizer.saves_fully_reshardable,
    "A checkpoint is saved for which every data-parallel rank gathers the "
    "distributed optimizer's buckets on its GPU."),
DOUBLE("optimizer.clip_grad", "1.0", 0.0, ME_OPTION_REAL_MAX, optimizer.clip_grad,
    "Norm that gradients are clipped to; 0 does not clip."),
ME_STEP_OPTIONS
BOOL("optimizer.decoupled_lr", "false", optimizer.decoupled_lr,
    "Word embeddings and output layer have a learning rate of their own, and so "
    "a parameter group."),
BOOL("optimizer.decoupled_min_lr", "false", optimizer.decoupled_min_lr,
    "They have a least one as well."),
BOOL("optimizer.apply_wd_to_qk_layernorm", "false",
    optimizer.apply_wd_to_qk_layernorm,
    "Norms of queries and keys have weight decay."),
BOOL("optimizer.log_num_zeros_in_grad", "false",
    optimizer.log_num_zeros_in_grad,
    "Zeros in the gradients are counted before each step."),
BOOL("optimizer.precision_aware", "false", optimizer.precision_aware,
    "Transformer Engine's FusedAdam holds the main parameters, and states in "
    "types of their own."),
ENUM("optimizer.main_grads_dtype", "fp32", me_state_dtype_choices,
    optimizer.main_grads_dtype,
    "Type of main gradients under precision_aware: fp32 or bf16."),
ENUM("optimizer.main_params_dtype", "fp32", me_state_dtype_choices,
    optimizer.main_params_dtype,
    "Type of main parameters under precision_aware: fp32 or fp16."),
ENUM("optimizer.exp_avg_dtype", "fp32", me_state_dtype_choices,
    optimizer.exp_avg_dtype, "Type of Adam's first moments."),
ENUM("optimizer.exp_avg_sq_dtype", "fp32", me_state_dtype_choices,
    optimizer.exp_avg_sq_dtype, "Type of Adam's second moments."),
BOOL("optimizer.cpu_offload", "false", optimizer.cpu_offload,
    "The host keeps and steps a part of what precision_aware has."),
DOUBLE("optimizer.offload_fraction", "1.0", 0.0, 1.0,
    optimizer.offload_fraction, "That part of all elements."),
BOOL("optimizer.overlap_cpu_optimizer_d2h_h2d", "false",
    optimizer.overlap_cpu_optimizer_d2h_h2d,
    "Copies of cpu_offload run on streams of their own."),
BOOL("optimizer.pin_cpu_grads", "true", optimizer.pin_cpu_grads,
    "The host's gradients of cpu_offload are pinned."),

ENUM("recompute.granularity", "none", me_recompute_choices,
    recompute.granularity, "What the backward computes again."),
ENUM("recompute.method", "uniform", me_recompute_method_choices, recompute.method,
    "Full recomputation: all layers in groups, or only the first few."),
INT("recompute.num_layers", "0", 0, layers_max, "layers",
    "required for full", recompute.num_layers,
    "Full recomputation: layers of a group, or layers of a chunk that are "
    "recomputed, which may be none."),
BOOL("recompute.core_attn", "true", recompute.core_attn,
    "Selective recomputation: the core attention."),
BOOL("recompute.layernorm", "false", recompute.layernorm,
    "Selective recomputation: the layers' two norms."),
BOOL("recompute.mla_up_proj", "false", recompute.mla_up_proj,
    "Selective recomputation: what makes heads of the latents."),
BOOL("recompute.mlp", "false", recompute.mlp,
    "Selective recomputation: the MLP; without linear biases."),
BOOL("recompute.moe", "false", recompute.moe,
    "Selective recomputation: whole layers of experts."),
BOOL("recompute.moe_act", "false", recompute.moe_act,
    "Selective recomputation: the activation of grouped experts."),
BOOL("recompute.shared_experts", "false", recompute.shared_experts,
    "Selective recomputation: shared experts."),
BOOL("recompute.distribute_saved_activations", "false",
    recompute.distribute_saved_activations,
    "Split saved layer inputs over the tensor-parallel ranks."),
ME_OFFLOAD_OPTIONS
STRING("torch.input_shape", "", torch.input_shape,
    "Shape of what one forward is given, \"(8, 1024)\"; its first dimension "
    "is the micro-batch."),
ENUM("torch.input_dtype", "float32", me_input_dtype_choices, torch.input_dtype,
    "Its type; int64 are token numbers."),
STRING("torch.called_module", "", torch.called_module,
    "The module that the loop calls in the model's place, by its path, \"0\" "
    "or \"encoder.layers\"; empty: the model."),
STRING("torch.loss", "y.sum()", torch.loss,
    "The loss: an expression of y, the model's output, and target."),
ENUM("torch.target", "output", me_torch_target_choices, torch.target,
    "What target is: in pipelines a tensor like the output; int64 labels of the "
    "input's shape; or int64 classes, one a sample."),
BOOL("torch.keeps_output", "true", torch.keeps_output,
    "The loop names the model's output, which lives through the backward."),
BOOL("torch.keeps_last_output", "false", torch.keeps_last_output,
    "The name stays: the output lives on until the next forward has returned, in "
    "the next iteration, as in a loop in no function of its own."),
BOOL("torch.loss_parallel", "false", torch.loss_parallel,
    "The loop runs in loss_parallel(): cross_entropy of logits whose classes "
    "the tensor-parallel ranks share."),
ENUM("torch.attention", "cudnn", me_sdpa_backend_choices, torch.attention,
    "Kernel of scaled_dot_product_attention for 16-bit heads."),
ENUM("torch.autocast", "none", me_autocast_dtype_choices, torch.autocast,
    "Forward and loss run under torch.autocast to this type."),
BOOL("torch.autocast_backward", "false", torch.autocast_backward,
    "The context is around the backward as well: a pipeline's whole step."),
BOOL("torch.grad_scaler", "false", torch.grad_scaler,
    "A GradScaler scales the loss, unscales gradients and steps."),
ENUM("torch.data_parallel", "none", me_data_parallel_choices, torch.data_parallel,
    "What spreads a batch over ranks: DistributedDataParallel or FSDP2."),
INT("torch.data_parallel_replicate", "1", 1, ranks_max, "copies", NULL, torch.data_parallel_replicate,
    "HSDP: copies of fully_shard's shards, whose gradients are all-reduced."),
INT("torch.data_parallel_shard", "0", 0, ranks_max, "ranks", NULL, torch.data_parallel_shard,
    "Ranks that share each copy of what fully_shard shards; 0: those there are."),
INT("torch.num_microbatches", "1", 1, ranks_max, "micro-batches", NULL,
    torch.num_microbatches,
    "Micro-batches of each rank's step where train.global_batch_size does not say it."),
BOOL("torch.unshard_stages", "true", torch.unshard_stages,
    "Pipelines of several stages a rank gather whole stages of fully_shard ahead, "
    "as PyTorch 2.11 does; false: each module as it runs, as in 2024."),
BOOL("torch.returns_outputs", "true", torch.returns_outputs,
    "A pipeline's step returns the outputs of all micro-batches in one tensor "
    "(return_outputs), and keeps them until then."),
BOOL("torch.gradient_as_bucket_view", "false", torch.gradient_as_bucket_view,
    "DistributedDataParallel: gradients are views of its buckets."),
BOOL("torch.replicate", "false", torch.replicate,
    "DDP is that of replicate(), which makes it in the first forward."),
DOUBLE("torch.bucket_cap_mb", "0", 0.0, 1e6, torch.bucket_cap_mb,
    "DistributedDataParallel: MiB at which a bucket is full; 0: 25, and the "
    "first one 1."),
BOOL("torch.find_unused_parameters", "false", torch.find_unused_parameters,
    "DistributedDataParallel looks for parameters that a forward did not use."),
BOOL("torch.static_graph", "false", torch.static_graph,
    "DistributedDataParallel: every iteration uses the same parameters."),
BOOL("torch.broadcast_buffers", "true", torch.broadcast_buffers,
    "DistributedDataParallel sends the buffers of rank 0 before a forward."),
BOOL("torch.no_sync", "false", torch.no_sync,
    "Passes before a step, but for the last, run in DistributedDataParallel's "
    "no_sync()."),
BOOL("torch.zero_grad_set_to_none", "true", torch.zero_grad_set_to_none,
    "zero_grad() sets gradients to None; false: to zeros, in place."),
BOOL("torch.requires_gradient_sync", "true", torch.requires_gradient_sync,
    "Each pass before a step reduces gradients; false: the last one alone."),
BOOL("torch.requires_all_reduce", "true", torch.requires_all_reduce,
    "Each pass all-reduces them over copies; false: the last one alone."),
BOOL("torch.cpu_offload", "false", torch.cpu_offload,
    "fully_shard's CPUOffloadPolicy: shards, their gradients and the "
    "optimizer's state are the host's."),
BOOL("torch.pin_memory", "true", torch.pin_memory,
    "CPUOffloadPolicy pins what the host has of shards and gradients."),
BOOL("torch.wrap_one_rank", "true", torch.wrap_one_rank,
    "Wrap the model also where one rank has the whole batch."),
BOOL("torch.reshard_after_forward", "true", torch.reshard_after_forward,
    "fully_shard frees gathered parameters after each forward."),
ENUM("torch.param_dtype", "none", me_policy_dtype_choices, torch.param_dtype,
    "fully_shard's MixedPrecisionPolicy: type of gathered parameters."),
ENUM("torch.reduce_dtype", "none", me_policy_dtype_choices, torch.reduce_dtype,
    "fully_shard's MixedPrecisionPolicy: type of reduced gradients."),

ME_IMPL_OPTIONS

STRING("device.name", "h200-141gb", device.name,
    "The card: a name of configs/cards, a file of one, or auto."),
INT("device.gpus_per_node", "8", 1, ranks_max, "ranks", NULL,
    device.gpus_per_node, "Ranks of a node; groups over nodes cost less."),
SIZE("device.memory", "0", ME_LEAST_MEMORY_BYTES, 1e18, "as device.name says",
    device.memory_bytes, "Memory of the card."),
SIZE("device.memory_limit", "0", ME_LEAST_MEMORY_BYTES, 1e18, "what the card has left",
    device.memory_limit_bytes, "What PyTorch's allocator may reserve."),
SIZE("device.host_memory", "0", ME_LEAST_MEMORY_BYTES, 1e18, "nobody knows",
    device.host_memory_bytes, "What the job may have of the memory of a node's host."),
STRING("device.alloc_conf", "", device.alloc_conf,
    "Settings of PyTorch's allocator, as in PYTORCH_CUDA_ALLOC_CONF."),

STRING("machine.file", "", machine.file,
    "What joins GPUs and nodes: a name of configs/machines, a file of one, or "
    "hwloc's XML of a node (docs/time.md)."),
ENUM("machine.placement", "block", me_rank_placement_choices, machine.placement,
    "Ranks fill one node after the other, or are dealt to all in turn."),

ENUM("time.loader", "none", me_loader_choices, time.loader,
    "What the host takes for data in predicted times: nothing, or what "
    "Megatron-LM's mock data set takes to make its masks."),
};
/* clang-format on */

_Static_assert(sizeof options / sizeof options[0] <= ME_OPTION_MAX,
               "the private part of a job has one flag an option");

const me_option *me_options(size_t *count_out)
{
    *count_out = sizeof options / sizeof options[0];
    return options;
}

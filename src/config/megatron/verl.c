/* SPDX-License-Identifier: BSD-3-Clause */
/* verl's Hydra overrides for a Megatron-LM actor: verl/trainer/config/actor,
 * engine/megatron.yaml, optim/megatron.yaml; what the worker makes of them:
 * verl/workers/megatron_workers.py, verl/utils/megatron_utils.py. */
#include "base/parse.h"
#include "config/config_private.h"
#include "config/megatron/trainers.h"
#include "config/megatron/verl_model.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    PATH_BYTES = 256,
    VALUE_BYTES = 1024,
    VALUES_MAX = 64
};

/** clang-format off */
static const me_yaml_field fields[] = {
    {"megatron.param_offload|megatron.grad_offload|megatron.optimizer_offload",
     NULL, .flags = ""},
    {"optim.lr_warmup_steps|optim.lr_warmup_steps_ratio|"
     "optim.total_training_steps|optim.lr_decay_steps|optim.lr_wsd_decay_steps|"
     "optim.lr_decay_style|optim.weight_decay_incr_style|"
     "optim.lr_wsd_decay_style|optim.betas",
     NULL, .flags = ""},
    {"megatron.dtype", "bfloat16", .flags = "--bf16"},
    {"megatron.dtype", "float16",
     .flags = "--fp16 --use-precision-aware-optimizer"},
    {"megatron.use_mbridge|megatron.vanilla_mbridge|"
     "megatron.use_dist_checkpointing|megatron.dist_checkpointing_path|"
     "megatron.dist_checkpointing_prefix|megatron.seed|"
     "megatron.use_remove_padding|megatron.forward_only",
     NULL, .flags = ""},
    {"recompute_modules", NULL, .flags = "--recompute-modules"},
    {"deallocate_pipeline_outputs|variable_seq_lengths", NULL, .flags = ""},
    {"num_layers_in_first_pipeline_stage", NULL,
     .flags = "--decoder-first-pipeline-num-layers"},
    {"num_layers_in_last_pipeline_stage", NULL,
     .flags = "--decoder-last-pipeline-num-layers"},
    {"bias_dropout_fusion", "true", .flags = ""},
    {"overlap_p2p_comm|batch_p2p_comm", NULL, .flags = ""},
    {.key = NULL},
};

/** Megatron-LM's own are otherwise. */
static const me_leaf_default defaults[] = {
    {"use_distributed_optimizer", "true", .only = NULL},
    {"bf16", "true", .unless = "dtype"},
    {"attention_backend", "flash", .only = NULL},
    {"accumulate_allreduce_grads_in_fp32", "true", .only = NULL},
    {"moe_token_dispatcher_type", "alltoall", .only = "num_experts"},
    {"create_attention_mask_in_dataloader", "false", .only = NULL},
    {.key = NULL},
};
/* clang-format on */

static const me_trainer trainer = {.fields = fields, .defaults = defaults};

static const char where[] = "verl's overrides";
static const char actor[] = "actor_rollout_ref.actor.";

/** Parts of the tree that are fields of Megatron-LM's, below the actor. */
static const char *const parts[] = {
    "megatron.",
    "optim.",
};

/** `'a'`, `"a"` and `[a,b]` as values; @p text is taken apart. */
static int split(char *text, const char *values[VALUES_MAX])
{
    size_t length = strlen(text);
    int n = 0;
    if (length > 1 && text[0] == '[' && text[length - 1] == ']') {
        text[length - 1] = '\0';
        for (char *at = text + 1; at != NULL && n < VALUES_MAX;) {
            char *comma = strchr(at, ',');
            if (comma != NULL) {
                *comma = '\0';
            }
            at += strspn(at, " '\"");
            at[strcspn(at, "'\"")] = '\0';
            values[n++] = at;
            at = comma == NULL ? NULL : comma + 1;
        }
        return n;
    }
    const bool is_quoted = length > 1 && (text[0] == '\'' || text[0] == '"') &&
                           text[length - 1] == text[0];
    if (is_quoted) {
        text[length - 1] = '\0';
    }
    values[0] = text + is_quoted;
    return 1;
}

/** `+a.b=c`, `++a.b=c` and `a.b=c`; words of Hydra's own and what is taken away
 *  are passed over. */
static me_status add_override(me_leaf_list *list, const char *word,
                              me_diag *diag)
{
    char path[PATH_BYTES];
    char text[VALUE_BYTES];
    const char *values[VALUES_MAX];
    const char *name = word + strspn(word, "+");
    const size_t length = strcspn(name, "=");
    if (word[0] == '-' || word[0] == '~' || name[length] == '\0' ||
        length >= sizeof path || strlen(name + length + 1) >= sizeof text) {
        return word[0] == '-' || word[0] == '~' || name[length] != '\0'
                   ? ME_OK
                   : me_fail(diag, ME_ERR_SYNTAX,
                             "'%.80s' is no override of Hydra's, such as "
                             "trainer.nnodes=2",
                             word);
    }
    (void)snprintf(path, sizeof path, "%.*s", (int)length, name);
    (void)snprintf(text, sizeof text, "%s", name + length + 1);
    const int n = split(text, values);
    return me_leaf_list_add(list, path, values, n, where, diag);
}

/** What of the overrides is Megatron-LM's. */
static me_status pick(const me_leaf_list *all, me_leaf_list *picked,
                      me_diag *diag)
{
    me_status status = ME_OK;
    for (size_t i = 0; status == ME_OK && i < all->yaml.count; i++) {
        const me_yaml_leaf *leaf = &all->yaml.leaves[i];
        const size_t n = sizeof actor - 1;
        if (strncmp(leaf->path, actor, n) != 0) {
            continue;
        }
        for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
            if (strncmp(leaf->path + n, parts[k], strlen(parts[k])) == 0) {
                status = me_leaf_list_add(picked, leaf->path, leaf->values,
                                          leaf->n_values, where, diag);
                break;
            }
        }
    }
    return status;
}

static uint64_t number(const me_leaf_list *all, const char *path,
                       uint64_t other)
{
    return me_leaf_list_number(all, path, other);
}

/** What the shapes and ranks come from. */
static const char *const numbers[] = {
    "data.max_prompt_length",
    "data.max_response_length",
    "actor_rollout_ref.actor.ppo_max_token_len_per_gpu",
    "actor_rollout_ref.actor.ppo_mini_batch_size",
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu",
    "actor_rollout_ref.rollout.n",
    "trainer.nnodes",
    "trainer.n_gpus_per_node",
    NULL,
};

static bool is_true(const me_leaf_list *all, const char *path, bool other)
{
    const me_yaml_leaf *leaf = me_leaf_list_find(all, path);
    bool value = false;
    return leaf == NULL ? other : me_yaml_bool(leaf, &value) && value;
}

/** Tokens and samples of a micro-batch, and samples of a step. */
static me_status add_shape(const me_leaf_list *all, me_leaf_list *picked,
                           me_config *config, me_diag *diag)
{
    const uint64_t sample = number(all, "data.max_prompt_length", 512) +
                            number(all, "data.max_response_length", 512);
    const bool is_dynamic =
        is_true(all, "actor_rollout_ref.actor.use_dynamic_bsz", false);
    const uint64_t context = number(
        all, "actor_rollout_ref.actor.megatron.context_parallel_size", 1);
    const uint64_t row =
        number(all, "actor_rollout_ref.actor.ppo_max_token_len_per_gpu",
               16384) *
        context;
    const uint64_t tokens = is_dynamic && row > sample ? row : sample;
    const uint64_t samples =
        number(all, "actor_rollout_ref.actor.ppo_mini_batch_size", 256) *
        number(all, "actor_rollout_ref.rollout.n", 1);
    const uint64_t micro =
        is_dynamic
            ? 1
            : number(all,
                     "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu", 1);

    const struct {
        const char *key;
        uint64_t value;
    } rows[] = {
        {"seq_length", tokens},
        {"max_position_embeddings", tokens},
        {"micro_batch_size", micro},
        {"global_batch_size", samples},
    };

    me_status status = ME_OK;
    for (size_t i = 0; status == ME_OK && i < sizeof rows / sizeof *rows; i++) {
        status = me_leaf_list_add_number(picked, rows[i].key, rows[i].value,
                                         where, diag);
    }
    return status != ME_OK
               ? status
               : me_config_assume(
                     config, diag,
                     is_dynamic
                         ? "a micro-batch has %" PRIu64
                           " tokens, all that ppo_max_token_len_per_gpu lets be "
                           "in one"
                         : "a sample has %" PRIu64
                           " tokens, the longest prompt with the longest "
                           "response: shorter ones take less",
                     tokens);
}

/** Is the model's configuration verl's own, or mbridge's? */
static bool is_own(const me_leaf_list *all)
{
    return !is_true(all, "actor_rollout_ref.actor.megatron.use_mbridge", true);
}

/** … or Megatron-Bridge's? */
static bool is_plain(const me_leaf_list *all)
{
    return is_own(all) ||
           is_true(all, "actor_rollout_ref.actor.megatron.vanilla_mbridge",
                   true);
}

/** The model's configuration is made without Megatron-LM's command line, by
 *  mbridge (core/llm_bridge.py) or verl's own converter
 *  (models/mcore/config_converter.py): of TransformerConfig's fusions they turn
 *  on few, and experts' auxiliary loss off. Megatron-Bridge, without
 *  vanilla_mbridge, turns fusions on. Sequence parallelism is verl's own default
 *  of a tensor group of several. */
static me_status add_configuration(const me_leaf_list *all,
                                   me_leaf_list *picked,
                                   const me_config *config, me_diag *diag)
{
    const bool has_experts = config->moe.num_experts > 0;
    const bool is_split = number(all,
                                 "actor_rollout_ref.actor.megatron."
                                 "tensor_model_parallel_size",
                                 1) > 1;
    const me_leaf_setting rows[] = {
        {is_split, "sequence_parallel", "true", .gives_way = true},
        {is_plain(all), "gradient_accumulation_fusion", "false",
         .gives_way = true},
        {is_plain(all), "apply_rope_fusion", "false", .gives_way = true},
        {is_plain(all) && !has_experts, "bias_activation_fusion", "false",
         .gives_way = true},
        {is_plain(all) && !has_experts, "bias_dropout_fusion", "false",
         .gives_way = true},
        {has_experts && !(is_own(all) && config->model.multi_latent_attention),
         "moe_router_load_balancing_type", "none", .gives_way = true},
    };
    return me_leaf_list_settle(picked, rows, sizeof rows / sizeof *rows, where,
                               diag);
}

/** What shares the cards with the step that is answered. */
static me_status note(const me_leaf_list *all, me_config *config, me_diag *diag)
{
    const me_effect more = ME_HIGHER(ANY);
    const me_effect some = ME_HIGHER(SOME);
    const me_yaml_leaf *estimator =
        me_leaf_list_find(all, "algorithm.adv_estimator");
    const bool has_reference =
        is_true(all, "actor_rollout_ref.actor.use_kl_loss", false) ||
        is_true(all, "algorithm.use_kl_in_reward", false);
    const bool has_critic =
        estimator == NULL || strcmp(estimator->values[0], "gae") == 0;

    const struct {
        bool is_there;
        const char *name;
        const char *note;
        me_effect effect;
    } rows[] = {
        {true, "the rollout engine",
         "its weights and cache, as far as it keeps them while the actor trains",
         more},
        {has_reference, "the reference model",
         "its weights, unless ref.megatron.param_offload takes them away",
         more},
        {has_critic, "the critic",
         "its weights, gradients and states, unless they are offloaded", more},
        {true, "verl's losses",
         "of log-probabilities and entropies of the logits; the step is "
         "estimated as pretrain_gpt.py's",
         some},
        {number(all, "actor_rollout_ref.model.lora.rank", 0) > 0,
         "actor_rollout_ref.model.lora.rank", "adapters alone are trained",
         ME_LOWER(ANY)},
        {is_true(all, "actor_rollout_ref.model.mtp.enable", false),
         "actor_rollout_ref.model.mtp.enable",
         "depths of multi-token prediction; none is estimated", ME_HIGHER(ANY)},
    };

    me_status status = ME_OK;
    for (size_t i = 0; status == ME_OK && i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].is_there) {
            status = me_config_add_not_modelled(
                config, rows[i].name, rows[i].note, rows[i].effect, diag);
        }
    }
    return status;
}

/** The strategy has no default in the actor's file: the configuration's name gives
 *  it, or the keys below `actor.megatron`. */
static me_status check_strategy(const me_leaf_list *all,
                                const me_leaf_list *picked, int argc,
                                const char *const *argv, me_diag *diag)
{
    const me_yaml_leaf *strategy =
        me_leaf_list_find(all, "actor_rollout_ref.actor.strategy");
    bool is_megatron = false;
    for (int i = 0; i < argc; i++) {
        is_megatron |= strstr(argv[i], "megatron_trainer") != NULL;
    }
    for (size_t i = 0; i < picked->yaml.count; i++) {
        is_megatron |=
            strstr(picked->yaml.leaves[i].path, ".megatron.") != NULL;
    }
    if (strategy != NULL) {
        is_megatron = strcmp(strategy->values[0], "megatron") == 0;
    }
    return is_megatron
               ? ME_OK
               : me_fail(
                     diag, ME_ERR_UNSUPPORTED,
                     "verl's actor with the strategy %.40s is not modelled: "
                     "of them Megatron-LM's is "
                     "(--config-name=ppo_megatron_trainer)",
                     strategy == NULL ? "fsdp" : strategy->values[0]);
}

static me_status read_lists(const me_leaf_list *all, me_leaf_list *picked,
                            me_config *config, me_diag *diag)
{
    const me_yaml_leaf *model =
        me_leaf_list_find(all, "actor_rollout_ref.model.path");
    me_status status =
        model != NULL && model->n_values == 1
            ? me_trainer_read_model(config, "actor_rollout_ref.model.path",
                                    model->values[0], diag, NULL)
        : me_config_is_set(config, "model.num_layers")
            ? ME_OK
            : me_fail(diag, ME_ERR_CONFIG,
                      "actor_rollout_ref.model.path is not given: it names the "
                      "model");
    if (status == ME_OK) {
        status = me_leaf_list_add_model(picked, config, where, diag);
    }
    if (status == ME_OK) {
        status = me_verl_model_read(all, picked, where, config, diag);
    }
    if (status == ME_OK) {
        status =
            is_plain(all) ? me_verl_model_keep_vocabulary(config, diag) : ME_OK;
    }
    if (status == ME_OK) {
        status = add_shape(all, picked, config, diag);
    }
    if (status == ME_OK) {
        status = add_configuration(all, picked, config, diag);
    }
    if (status == ME_OK) {
        status = me_megatron_read_leaves(config, where, &picked->yaml, &trainer,
                                         picked->arena, diag);
    }
    if (status == ME_OK) {
        status = me_trainer_set_ranks(config, number(all, "trainer.nnodes", 1),
                                      number(all, "trainer.n_gpus_per_node", 8),
                                      diag);
    }
    return status == ME_OK ? note(all, config, diag) : status;
}

me_status me_verl_read(me_config *config, int argc, const char *const *argv,
                       me_diag *diag)
{
    me_leaf_list all = {.arena = NULL};
    me_leaf_list picked = {.arena = NULL};
    me_status status = me_leaf_list_init(&all, diag);
    if (status == ME_OK) {
        status = me_leaf_list_init(&picked, diag);
    }
    for (int i = 0; status == ME_OK && i < argc; i++) {
        status = add_override(&all, argv[i], diag);
    }
    if (status == ME_OK) {
        status = pick(&all, &picked, diag);
    }
    if (status == ME_OK) {
        status = me_leaf_list_check_numbers(&all, numbers, diag);
    }
    if (status == ME_OK) {
        status = check_strategy(&all, &picked, argc, argv, diag);
    }
    if (status == ME_OK) {
        status = read_lists(&all, &picked, config, diag);
    }
    me_arena_destroy(picked.arena);
    me_arena_destroy(all.arena);
    return status;
}

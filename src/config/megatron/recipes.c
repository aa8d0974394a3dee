/* SPDX-License-Identifier: BSD-3-Clause */
/* Recipes are functions in Python that fill a configuration: of NeMo's, as
 * `nemo llm pretrain --factory llama3_8b key=value` names them, and of
 * Megatron-Bridge's run_recipe.py. Of a name the model is known; what else the
 * function sets has to be said behind it. The words are read as the YAML that they
 * stand for. */
#include "base/parse.h"
#include "config/config_private.h"
#include "config/known_models.h"
#include "config/megatron/megatron_yaml.h"
#include "config/megatron/trainers.h"
#include "config/rank_counts.h"

#include <stdio.h>
#include <string.h>

enum {
    OVERRIDES_MAX = 256,
    NAME_BYTES = 128
};

/** An option, or an argument of the recipe's function, and the key that it is. */
typedef struct option {
    const char *names; /**< blanks between them */
    const char *key;   /**< NULL: it says nothing */
    int n_values;
} option;

/** Whose recipes. */
typedef struct kind {
    const char *command;
    const char *factory; /**< options that name the recipe */
    const option *options;
    const char *group;  /**< of the degrees of parallelism */
    const char *data;   /**< of sizes of batches */
    const char *length; /**< of that of a sequence */
    bool has_nodes;     /**< the configuration starts the ranks */
} kind;

static const option nemo_options[] = {
    {"num_nodes", "trainer.num_nodes", 1},
    {"num_gpus_per_node", "trainer.devices", 1},
    {"-y --yes --dryrun --direct --detach --tail-logs --verbose", NULL, 0},
    {.names = NULL},
};

static const option bridge_options[] = {
    {"-tp --tensor_model_parallel_size", "model.tensor_model_parallel_size", 1},
    {"-pp --pipeline_model_parallel_size", "model.pipeline_model_parallel_size",
     1},
    {"-cp --context_parallel_size", "model.context_parallel_size", 1},
    {"-vp --virtual_pipeline_model_parallel_size",
     "model.virtual_pipeline_model_parallel_size", 1},
    {"-ep --expert_model_parallel_size", "model.expert_model_parallel_size", 1},
    {"-etp --expert_tensor_parallel_size", "model.expert_tensor_parallel_size",
     1},
    {"-gb --global_batch_size", "train.global_batch_size", 1},
    {"-mb --micro_batch_size", "train.micro_batch_size", 1},
    {"-sl --seq_length", "dataset.seq_length", 1},
    {"--mode", "peft", 1}, // of its words some are adapters'
    {"-ms --max_steps --step-func --step_func --dataset --lr --min_lr "
     "--warmup_iters --pretrained_checkpoint --save_dir --load_dir "
     "--save_interval",
     NULL, 1},
    {"--dry-run --dry_run --dump-env --dump_env", NULL, 0},
    {"--deterministic", "deterministic_mode", 0},
    {.names = NULL},
};

static const kind nemo = {.command = "nemo llm",
                          .factory = "--factory -f",
                          .options = nemo_options,
                          .group = "trainer.strategy",
                          .data = "data",
                          .length = "data",
                          .has_nodes = true};

static const kind bridge = {.command = "run_recipe.py",
                            .factory = "--recipe --model",
                            .options = bridge_options,
                            .group = "model",
                            .data = "train",
                            .length = "dataset"};

/** A command as it is read. */
typedef struct reading {
    const kind *kind;
    char recipe[NAME_BYTES]; /**< "": not named yet */
    const char *keys[OVERRIDES_MAX];
    size_t lengths[OVERRIDES_MAX]; /**< of the keys */
    const char *values[OVERRIDES_MAX];
    size_t sizes[OVERRIDES_MAX]; /**< of the values */
    int count;
    me_diag *diag;
} reading;

static me_status add(reading *r, const char *key, size_t length,
                     const char *value, size_t size)
{
    if (r->count == OVERRIDES_MAX) {
        return me_fail(r->diag, ME_ERR_CONFIG, "%s: more than %d settings",
                       r->kind->command, OVERRIDES_MAX);
    }
    key += strspn(key, "+~");
    length = strcspn(key, "=") < length ? strcspn(key, "=") : length;
    r->keys[r->count] = key;
    r->lengths[r->count] = length;
    r->values[r->count] = value;
    r->sizes[r->count++] = size;
    return ME_OK;
}

static const option *find_option(const kind *k, const char *word, size_t length)
{
    for (const option *o = k->options; o->names != NULL; o++) {
        if (me_names_have(o->names, word, length)) {
            return o;
        }
    }
    return NULL;
}

/** `llama3_8b(num_nodes=2, num_gpus_per_node=8)` */
static me_status take_recipe(reading *r, const char *text)
{
    me_status status = ME_OK;
    const char *at = text + strcspn(text, "(");
    (void)snprintf(r->recipe, sizeof r->recipe, "%.*s", (int)(at - text), text);
    at += *at == '(';
    while (status == ME_OK && *at != '\0' && *at != ')') {
        at += strspn(at, " ,");
        const size_t length = strcspn(at, "=,)");
        const char *value = at + length + (at[length] == '=');
        const size_t size = strcspn(value, ",)");
        const option *o = find_option(r->kind, at, length);
        if (o == NULL || at[length] != '=') {
            status = me_fail(r->diag, ME_ERR_CONFIG,
                             "%s %.80s: of a recipe's own arguments num_nodes "
                             "and num_gpus_per_node are read",
                             r->kind->command, text);
        } else {
            status = add(r, o->key, strlen(o->key), value, size);
        }
        at = value + size;
    }
    return status;
}

/** An option with its value. @return words that it takes; 0: it failed */
static int take_option(reading *r, int left, const char *const *words,
                       me_status *status_out)
{
    const char *word = words[0];
    const size_t length = strcspn(word, "=");
    const bool is_recipe = me_names_have(r->kind->factory, word, length);
    const option *o = find_option(r->kind, word, length);
    const bool is_attached = word[length] == '=';
    const int n_values = is_recipe ? 1 : o == NULL ? 0 : o->n_values;
    const char *value = is_attached     ? word + length + 1
                        : n_values == 0 ? "true"
                        : left > 1      ? words[1]
                                        : NULL;
    if ((o == NULL && !is_recipe) || value == NULL) {
        *status_out = me_fail(
            r->diag, ME_ERR_CONFIG, "%s %.60s: %s", r->kind->command, word,
            value == NULL ? "has no value"
                          : "is no option of it that memest knows");
        return 0;
    }
    *status_out = is_recipe ? take_recipe(r, value)
                  : o->key == NULL
                      ? ME_OK
                      : add(r, o->key, strlen(o->key), value, strlen(value));
    return *status_out != ME_OK ? 0 : is_attached ? 1 : 1 + n_values;
}

static me_status take_words(reading *r, int argc, const char *const *argv)
{
    me_status status = ME_OK;
    for (int i = 0; status == ME_OK && i < argc;) {
        const char *equals = strchr(argv[i], '=');
        if (argv[i][0] == '-') {
            i += take_option(r, argc - i, argv + i, &status);
        } else if (equals == NULL) {
            status = me_fail(r->diag, ME_ERR_SYNTAX,
                             "%s: '%.60s' is no setting, such as "
                             "%s.context_parallel_size=1",
                             r->kind->command, argv[i], r->kind->group);
        } else {
            status = add(r, argv[i], (size_t)(equals - argv[i]), equals + 1,
                         strlen(equals + 1));
            i++;
        }
    }
    return status;
}

/** The last setting of a key by the last part of its name; -1: there is none. */
static int find_last(const reading *r, const char *name)
{
    const size_t n = strlen(name);
    int found = -1;
    for (int i = 0; i < r->count; i++) {
        const size_t length = r->lengths[i];
        const char *end = r->keys[i] + length;
        if (length >= n && strncmp(end - n, name, n) == 0 &&
            (length == n || end[-(ptrdiff_t)n - 1] == '.')) {
            found = i;
        }
    }
    return found;
}

static bool is_one(const reading *r, const char *name)
{
    const int i = find_last(r, name);
    return i >= 0 && r->sizes[i] == 1 && r->values[i][0] == '1';
}

/** Settings that every recipe has its own of. */
static me_status check_settings(const reading *r)
{
    const kind *k = r->kind;

    const struct {
        const char *name;
        const char *group;
    } needed[] = {
        {"tensor_model_parallel_size", k->group},
        {"pipeline_model_parallel_size", k->group},
        {"context_parallel_size", k->group},
        {"sequence_parallel", k->group},
        {"micro_batch_size", k->data},
        {"global_batch_size", k->data},
        {"seq_length", k->length},
    };

    me_str missing = {0};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        const char *name = needed[i].name;
        const bool is_needless = strcmp(name, "sequence_parallel") == 0 &&
                                 is_one(r, "tensor_model_parallel_size");
        const bool is_length = strcmp(name, "seq_length") == 0 &&
                               find_last(r, "sequence_length") >= 0;
        if (find_last(r, name) < 0 && !is_needless && !is_length) {
            me_str_printf(&missing, "%s%s.%s", missing.length == 0 ? "" : ", ",
                          needed[i].group, name);
        }
    }
    const me_status status =
        me_str_status(&missing) != ME_OK
            ? me_fail(r->diag, ME_ERR_NOMEM, "no memory for a recipe")
        : missing.length == 0
            ? ME_OK
            : me_fail(r->diag, ME_ERR_CONFIG,
                      "%s %.60s: the recipe is code that is not here: give %s, "
                      "or --model the YAML that it writes",
                      r->kind->command, r->recipe, me_str_text(&missing));
    me_str_fini(&missing);
    return status;
}

static void append_setting(me_str *yaml, const char *key, size_t length,
                           const char *value, size_t size)
{
    const bool is_plain =
        size > 0 &&
        strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRS"
                      "TUVWXYZ0123456789_.+-/[], ") >= size;
    me_str_printf(yaml, "%.*s: %s", (int)length, key, is_plain ? "" : "'");
    for (size_t i = 0; i < size; i++) {
        const bool is_quote = !is_plain && value[i] == '\'';
        me_str_append_n(yaml, value[i] == '\n' ? " " : value + i, 1);
        me_str_append(yaml, is_quote ? "'" : "");
    }
    me_str_append(yaml, is_plain ? "\n" : "'\n");
}

/** What all recipes set, where no setting says otherwise. */
static void append_usual(const reading *r, me_str *yaml)
{
    static const char *const usual[] = {
        "bf16",
        "use_distributed_optimizer",
        "accumulate_allreduce_grads_in_fp32",
        "overlap_grad_reduce",
        "overlap_param_gather",
    };
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++) {
        if (find_last(r, usual[i]) < 0) {
            me_str_printf(yaml, "%s: true\n", usual[i]);
        }
    }
}

/** `llama3_8b` of `llama3_8b_pretrain_8gpu_h100_bf16_config`. */
static size_t length_of_model(const char *recipe)
{
    static const char *const ends[] = {
        "_pretrain", "_finetune", "_sft", "_lora", "_dora", "_peft", "_config"};
    size_t length = strlen(recipe);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        const char *at = strstr(recipe, ends[i]);
        if (at != NULL && (size_t)(at - recipe) < length) {
            length = (size_t)(at - recipe);
        }
    }
    return length;
}

/** A recipe whose model nobody knows, or of which something is not modelled. */
static me_status check_model(const reading *r, const me_config *config,
                             const char *model, me_diag *diag)
{
    me_str known = {0};
    const char *lacks = me_known_model_lacks(model);
    const bool is_known = me_known_model(model, &known);
    const bool has_memory = me_str_status(&known) == ME_OK;
    me_str_fini(&known);
    if (is_known || !has_memory ||
        me_config_is_set(config, "model.num_layers")) {
        return ME_OK; // who reads the model says that there was none
    }
    return lacks != NULL
               ? me_fail(diag, ME_ERR_UNSUPPORTED,
                         "%s %.60s: its model has %s, which are not modelled",
                         r->kind->command, r->recipe, lacks)
               : me_fail(diag, ME_ERR_CONFIG,
                         "%s %.60s: of this recipe's model nothing is known by "
                         "its name: give --model the YAML that it writes",
                         r->kind->command, r->recipe);
}

/** Adapters, which NeMo's `peft=` and Megatron-Bridge's names ask for. */
static me_status note_adapters(const reading *r, me_config *config,
                               me_diag *diag)
{
    char value[16] = "";
    const int i = find_last(r, "peft");
    if (i >= 0) {
        (void)snprintf(value, sizeof value, "%.*s", (int)r->sizes[i],
                       r->values[i]);
    }
    const bool is_asked =
        strstr(value, "lora") != NULL || strstr(value, "dora") != NULL;
    const bool is_named = strstr(r->recipe, "_lora") != NULL ||
                          strstr(r->recipe, "_dora") != NULL ||
                          strstr(r->recipe, "_peft") != NULL;
    return is_asked || is_named
               ? me_config_add_not_modelled(config, "adapters",
                                            "they alone are trained",
                                            (me_effect)ME_LOWER(ANY), diag)
               : ME_OK;
}

static me_status read_yaml(const reading *r, me_config *config, me_diag *diag)
{
    char model[NAME_BYTES];
    me_str yaml = {0};
    char where[NAME_BYTES + 32];
    (void)snprintf(where, sizeof where, "%s %s", r->kind->command, r->recipe);
    (void)snprintf(model, sizeof model, "%.*s", (int)length_of_model(r->recipe),
                   r->recipe);
    me_str_printf(&yaml, "_target_: '%s'\n", model);
    append_usual(r, &yaml);
    for (int i = 0; i < r->count; i++) {
        append_setting(&yaml, r->keys[i], r->lengths[i], r->values[i],
                       r->sizes[i]);
    }
    me_status status = check_model(r, config, model, diag);
    if (status == ME_OK) {
        status = me_str_status(&yaml) == ME_OK
                     ? me_megatron_read_yaml(config, where, me_str_text(&yaml),
                                             yaml.length, diag)
                     : me_fail(diag, ME_ERR_NOMEM, "no memory for a recipe");
    }
    me_str_fini(&yaml);
    return status == ME_OK ? note_adapters(r, config, diag) : status;
}

static me_status read_recipe(const kind *k, me_config *config, int argc,
                             const char *const *argv, me_diag *diag)
{
    reading r = {.kind = k, .diag = diag};
    me_status status = take_words(&r, argc, argv);
    if (status == ME_OK && r.recipe[0] == '\0') {
        status = me_fail(diag, ME_ERR_CONFIG, "%s: names no recipe: give %s",
                         k->command, k->factory);
    }
    if (status == ME_OK) {
        status = check_settings(&r);
    }
    if (status == ME_OK && k->has_nodes &&
        (find_last(&r, "num_nodes") < 0 || find_last(&r, "devices") < 0)) {
        status = me_config_leave_world_open(
            config, diag,
            "%s %.60s: the recipe says how many ranks there are: give "
            "trainer.num_nodes and trainer.devices, or memest's --world-size",
            k->command, r.recipe);
    }
    if (status == ME_OK) {
        status = read_yaml(&r, config, diag);
    }
    return status == ME_OK
               ? me_config_assume(config, diag,
                                  "the recipe %.60s trains in bfloat16 with "
                                  "Transformer Engine, a distributed optimizer "
                                  "and gradients in float32, as most do",
                                  r.recipe)
               : status;
}

me_status me_nemo_read(me_config *config, int argc, const char *const *argv,
                       me_diag *diag)
{
    const bool is_llm =
        argc > 1 && strcmp(argv[0], "llm") == 0 &&
        (strcmp(argv[1], "pretrain") == 0 || strcmp(argv[1], "finetune") == 0);
    return is_llm ? read_recipe(&nemo, config, argc - 2, argv + 2, diag)
                  : me_fail(diag, ME_ERR_UNSUPPORTED,
                            "'nemo %.40s' is not read: of its commands "
                            "`nemo llm pretrain` and `nemo llm finetune` are",
                            argc > 0 ? argv[0] : "");
}

me_status me_bridge_read(me_config *config, int argc, const char *const *argv,
                         me_diag *diag)
{
    return read_recipe(&bridge, config, argc, argv, diag);
}

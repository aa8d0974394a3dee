/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/launch_script.h"

#include "base/input.h"
#include "base/parse.h"
#include "config/config_private.h"
#include "config/megatron/megatron_arguments.h"
#include "config/megatron/trainers.h"
#include "config/torchtitan/torchtitan.h"
#include "config/wrappers.h"

#include <string.h>

/** Scripts by name; of one name those first whose flag has to follow. */
static const me_launch_script scripts[] = {
    {"pretrain_gpt.py", "pretrain_gpt", me_megatron_read, ME_PASTE_MEGATRON,
     NULL},
    {"train.py", "slime.train", me_slime_read, ME_PASTE_MEGATRON,
     "--actor-num-nodes"},
    {"train_async.py", "slime.train_async", me_slime_read, ME_PASTE_MEGATRON,
     "--actor-num-nodes"},
    {"train.py", "miles.train", me_slime_read, ME_PASTE_MEGATRON,
     "--hf-checkpoint"},
    {"train.py", "torchtitan.train", me_torchtitan_read_flags,
     ME_PASTE_TORCHTITAN, NULL},
    {"main_ppo.py", "verl.trainer.main_ppo", me_verl_read, ME_PASTE_SET, NULL},
    {"main_dapo.py", "recipe.dapo.main_dapo", me_verl_read, ME_PASTE_SET, NULL},
    {"nemo", "nemo", me_nemo_read, ME_PASTE_SET, "pretrain"},
    {"nemo", "nemo", me_nemo_read, ME_PASTE_SET, "finetune"},
    {"run_recipe.py", "run_recipe", me_bridge_read, ME_PASTE_SET, NULL},
    {"cli/main.py", "primus.cli.main", me_yaml_command_read, ME_PASTE_SET,
     "--config"},
    {"megatron/pretrain.py", "examples.megatron.pretrain", me_yaml_command_read,
     ME_PASTE_SET, "--config"},
    {"run.py", "run", me_flagscale_read, ME_PASTE_SET, "--config-name"},
    {"megatron_gpt_pretraining.py", "megatron_gpt_pretraining",
     me_yaml_command_read, ME_PASTE_SET, "--config-name"},
    {"megatron", "megatron", me_swift_read, ME_PASTE_MEGATRON, "sft"},
    {"megatron", "megatron", me_swift_read, ME_PASTE_MEGATRON, "pt"},
    {"megatron", "megatron", me_swift_read, ME_PASTE_MEGATRON, "rlhf"},
    {"_megatron/sft.py", "swift.cli._megatron.sft", me_swift_read,
     ME_PASTE_MEGATRON, NULL},
    {"_megatron/pt.py", "swift.cli._megatron.pt", me_swift_read,
     ME_PASTE_MEGATRON, NULL},
    {"_megatron/rlhf.py", "swift.cli._megatron.rlhf", me_swift_read,
     ME_PASTE_MEGATRON, NULL},
};

/** Words in the names of scripts and classes of models that are no GPT, of
 *  Megatron-LM core_v0.19.0, its forks and those who train with its core. */
static const char *const models[] = {
    "bert",      "t5",    "vlm",    "vl",         "vision",    "retro",
    "ict",       "mamba", "hybrid", "multimodal", "realm",     "biencoder",
    "diffusion", "rwkv",  "llava",  "pi0",        "robotics",  "omni",
    "audio",     "asr",   "ssm",    "hyena",      "nemotronh", "falcon_h1",
};

/** And of scripts alone. */
static const char *const others[] = {
    "mimo", "rl",       "generation", "server",  "inference",
    "eval", "evaluate", "export",     "convert",
};

/** Of them those with Mamba's layers. */
static const char *const hybrids[] = {"mamba", "hybrid"};

/** And for GPTs that are built from flags. */
static const char *const decoders[] = {
    "gpt",       "llama",    "qwen",     "mistral",  "mixtral",
    "deepseek",  "baichuan", "internlm", "yi",       "falcon",
    "starcoder", "glm",      "moe",      "pretrain", "train",
};

const me_launch_script *me_launch_script_default(void)
{
    return &scripts[0];
}

/** Is the last part of a path @p name? */
static bool is_called(const char *word, const char *name)
{
    const size_t before = strlen(word) - strlen(name);
    return me_ends_with(word, name) &&
           (before == 0 || word[before - 1] == '/' || strlen(name) > 10);
}

static bool has_flag(int argc, const char *const *argv, const char *flag)
{
    const size_t length = strlen(flag);
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], flag, length) == 0 &&
            (argv[i][length] == '\0' || argv[i][length] == '=')) {
            return true;
        }
    }
    return false;
}

static const me_launch_script *find(int argc, const char *const *argv)
{
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        const me_launch_script *script = &scripts[i];
        if ((is_called(argv[0], script->path) ||
             is_called(argv[0], script->module)) &&
            (script->flag == NULL || has_flag(argc, argv, script->flag))) {
            return script;
        }
    }
    return NULL;
}

/** Is it a train.py of somebody else? torchtitan's is started as a module, lies
 *  in its package or has its flags, `--table.key`, behind it. */
static bool is_foreign(const me_launch_script *script, int argc,
                       const char *const *argv)
{
    if (script->read != me_torchtitan_read_flags ||
        is_called(argv[0], script->module) ||
        strstr(argv[0], "torchtitan/") != NULL) {
        return false;
    }
    for (int i = 1; i < argc; i++) {
        const size_t name = strcspn(argv[i], "=");
        if (strncmp(argv[i], "--", 2) == 0 &&
            memchr(argv[i], '.', name) != NULL) {
            return false;
        }
    }
    return true;
}

/** Is one of @p words a part of @p name between `_`, `-`, `.` and digits? */
static bool names_one(const char *name, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const size_t length = strlen(words[i]);
        for (const char *at = strstr(name, words[i]); at != NULL;
             at = strstr(at + 1, words[i])) {
            const bool begins = at == name || strchr("_-.", at[-1]) != NULL;
            const bool ends = at[length] == '\0' ||
                              strchr("_-.0123456789", at[length]) != NULL;
            if (begins && ends) {
                return true;
            }
        }
    }
    return false;
}

/** Say that it is read as another script; what a name does not tell at all may
 *  be anything. */
static me_status say(me_config *config, const char *name, me_diag *diag)
{
    const me_effect effect = ME_EITHER(ANY);
    if (names_one(name, decoders, sizeof decoders / sizeof decoders[0])) {
        return me_config_assume(
            config, diag,
            "%.80s builds what Megatron-LM's pretrain_gpt.py "
            "builds of these flags",
            name);
    }
    return me_config_add_not_modelled(
        config, name, "read as Megatron-LM's pretrain_gpt.py", effect, diag);
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

bool me_launch_names_other_model(const char *name)
{
    return names_one(name, models, sizeof models / sizeof models[0]);
}

/** Refuse one that is of another model, or does not train it. */
static me_status refuse(const char *path, me_diag *diag)
{
    const char *name = name_of(path);
    if (me_launch_names_other_model(name) ||
        names_one(name, others, sizeof others / sizeof others[0])) {
        const bool has_states = names_one(name, hybrids, 2);
        return me_fail(
            diag, ME_ERR_UNSUPPORTED,
            "'%.80s' builds no GPT, or does not train it, by its name%s: of "
            "Megatron-LM's scripts pretrain_gpt.py is modelled",
            name,
            has_states ? ", but state-space layers (Mamba's), which are not "
                         "modelled"
                       : "");
    }
    return ME_OK;
}

me_status me_launch_script_fail(const char *path, me_diag *diag)
{
    const me_status status = refuse(path, diag);
    return status != ME_OK
               ? status
               : me_fail(diag, ME_ERR_UNSUPPORTED,
                         "'%.200s' is not modelled: the scripts that are, are "
                         "Megatron-LM's pretrain_gpt.py and torchtitan's "
                         "train.py; of a job that Python code sets up (NeMo, "
                         "Megatron-Bridge) give --model the YAML that it "
                         "writes",
                         path);
}

me_status me_launch_program_fail(const char *word, me_diag *diag)
{
    const bool is_lost = me_ends_with(word, ".sh") && !me_input_is_file(word);
    return me_fail(diag, ME_ERR_UNSUPPORTED,
                   "launch command: '%.80s' is no program that memest knows%s: "
                   "begin at torchrun, srun, mpirun or python",
                   word, is_lost ? ", and no file here" : "");
}

me_status me_launch_script_say(me_config *config, const char *path,
                               me_diag *diag)
{
    const char *name = name_of(path);
    me_status status = refuse(path, diag);
    if (status == ME_OK) {
        status = me_megatron_keep_sign(config, name, diag);
    }
    return status == ME_OK ? say(config, name, diag) : status;
}

static bool has_flags_of_megatron(int argc, const char *const *argv)
{
    return me_ends_with(argv[0], ".py") &&
           has_flag(argc, argv, "--num-layers") &&
           has_flag(argc, argv, "--hidden-size");
}

/** A script with a name of its own, but Megatron-LM's flags. */
static me_status guess(me_config *config, int argc, const char *const *argv,
                       me_diag *diag, const me_launch_script **script_out)
{
    if (!has_flags_of_megatron(argc, argv)) {
        return ME_OK;
    }
    if (argc > 1 && argv[1][0] != '-' && me_ends_with(argv[1], ".py")) {
        return me_fail(diag, ME_ERR_UNSUPPORTED,
                       "'%.80s' is not read, which has '%.80s' behind it: if "
                       "it starts that, give the command without it",
                       argv[0], argv[1]);
    }
    const me_status status = me_launch_script_say(config, argv[0], diag);
    *script_out = status == ME_OK ? me_launch_script_default() : NULL;
    return status;
}

bool me_launch_script_is_known(int argc, const char *const *argv)
{
    return find(argc, argv) != NULL || has_flags_of_megatron(argc, argv);
}

me_status me_launch_script_choose(me_config *config, int argc,
                                  const char *const *argv, me_diag *diag,
                                  const me_launch_script **script_out)
{
    const me_launch_script *found = find(argc, argv);
    const bool foreign = found != NULL && is_foreign(found, argc, argv);
    *script_out = foreign ? NULL : found;
    me_status status = *script_out == NULL
                           ? guess(config, argc, argv, diag, script_out)
                           : ME_OK;
    if (status == ME_OK && *script_out == me_launch_script_default()) {
        status = me_megatron_look_at_folder(config, argv[0], diag);
    }
    if (status != ME_OK || *script_out != NULL || !foreign) {
        return status;
    }
    return me_fail(diag, ME_ERR_UNSUPPORTED,
                   "'%.80s' has no flag of torchtitan's behind it, such as "
                   "--job.config_file FILE: of scripts with this name "
                   "torchtitan's alone is modelled; of Primus' and FlagScale's "
                   "give --model the YAML",
                   argv[0]);
}

int me_launch_site_words(int argc, const char *const *argv)
{
    int n = 1;
    if (argc < 1 || !me_ends_with(argv[0], ".py") ||
        me_launch_script_is_known(1, argv)) {
        return 0;
    }
    while (n < argc && strcmp(argv[n], "--") != 0) {
        n++;
    }
    return n + 1 < argc && me_wrapper_find(argv[n + 1]) != NULL ? n : 0;
}

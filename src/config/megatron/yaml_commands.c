/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands that name the YAML file of their job: Primus' `train pretrain --config
 * FILE --key value`, and Hydra's `--config-path DIR --config-name NAME key=value`
 * of FlagScale's run.py and NeMo 1's scripts. What stands behind it is read as
 * lines at the file's end, which go before those above. */
#include "base/input.h"
#include "base/parse.h"
#include "config/config_private.h"
#include "config/megatron/megatron_yaml.h"
#include "config/megatron/trainers.h"

#include <string.h>

/** One reading of a command. */
typedef struct command {
    const char *folder; /**< NULL: the file's name has it */
    const char *file;
    me_str lines;
    me_diag *diag;
} command;

/** Options with a value; the rest of Primus' are keys. */
static const char *const folder_names[] = {"--config-path", "--config-dir",
                                           "-cp"};
static const char *const file_names[] = {"--config-name", "--config", "--exp",
                                         "-cn"};
static const char *const without_effect[] = {"--data_path", "--backend_path",
                                             "--export_config"};

static bool is_of(const char *word, size_t length, const char *const *list,
                  size_t count)
{
    return me_is_one_of(word, length, list, count);
}

/** A line of the file's: `KEY: VALUE`. */
static void add_line(command *c, const char *key, size_t length,
                     const char *value)
{
    me_str_append(&c->lines, "\n");
    me_str_append_n(&c->lines, key, length);
    me_str_printf(&c->lines, ": %s", value);
}

/** Hydra's `key=value`, `+key=value` and `~key`: of one without a dot nobody can
 *  tell whether it names a file. */
static me_status take_override(command *c, const char *word)
{
    const bool is_removed = word[0] == '~';
    const char *key = word + strspn(word, "+~");
    const size_t length = strcspn(key, "=");
    if (memchr(key, '.', length) == NULL) {
        return strncmp(key, "action=", 7) == 0
                   ? ME_OK
                   : me_fail(c->diag, ME_ERR_UNSUPPORTED,
                             "'%.80s' may name another file, which is not read "
                             "here: give --model the YAML that comes of it",
                             word);
    }
    if (memchr(key, '@', length) != NULL ||
        (key[length] == '\0' && !is_removed)) {
        return me_fail(c->diag, ME_ERR_SYNTAX,
                       "'%.80s' is no setting, such as experiment.key=value",
                       word);
    }
    add_line(c, key, length,
             is_removed || key[length] == '\0' ? "null" : key + length + 1);
    return ME_OK;
}

/** An option and its value, in one word or two. @return words taken */
static int take_option(command *c, int n, const char *const *words)
{
    const size_t length = strcspn(words[0], "=");
    const bool has_own = words[0][length] == '=';
    const bool has_next = n > 1 && strncmp(words[1], "--", 2) != 0;
    const char *value = has_own    ? words[0] + length + 1
                        : has_next ? words[1]
                                   : "true";
    if (is_of(words[0], length, folder_names,
              sizeof folder_names / sizeof *folder_names)) {
        c->folder = value;
    } else if (is_of(words[0], length, file_names,
                     sizeof file_names / sizeof *file_names)) {
        c->file = value;
    } else if (!is_of(words[0], length, without_effect,
                      sizeof without_effect / sizeof *without_effect)) {
        add_line(c, words[0] + 2, length - 2, value);
    }
    return has_own || !has_next ? 1 : 2;
}

static me_status read_words(command *c, int argc, const char *const *argv)
{
    me_status status = ME_OK;
    int at = 0;
    while (at < argc && argv[at][0] != '-' && strchr(argv[at], '=') == NULL) {
        at++; // Primus' `train pretrain`
    }
    while (status == ME_OK && at < argc) {
        if (argv[at][0] == '-') {
            at += take_option(c, argc - at, argv + at);
        } else {
            status = take_override(c, argv[at++]);
        }
    }
    return status != ME_OK || c->file != NULL
               ? status
               : me_fail(c->diag, ME_ERR_CONFIG,
                         "names no YAML file: give --config, or --config-path "
                         "and --config-name");
}

static me_status read_file(command *c, me_config *config)
{
    me_str path = {0};
    me_str text = {0};
    const bool has_end =
        me_ends_with(c->file, ".yaml") || me_ends_with(c->file, ".yml");
    me_str_printf(&path, "%s%s%s%s", c->folder == NULL ? "" : c->folder,
                  c->folder == NULL ? "" : "/", c->file,
                  has_end ? "" : ".yaml");
    me_status status = me_str_status(&path);
    if (status != ME_OK) {
        status = me_fail(c->diag, status, "no memory for a file's name");
    } else {
        status = me_input_read(me_str_text(&path), ME_INPUT_MAX_BYTES, c->diag,
                               &text);
    }
    if (status == ME_OK) {
        me_str_append_n(&text, me_str_text(&c->lines), c->lines.length);
        me_str_append(&text, "\n");
        status = me_str_status(&text) == ME_OK
                     ? me_megatron_read_yaml(config, me_str_text(&path),
                                             me_str_text(&text), text.length,
                                             c->diag)
                     : me_fail(c->diag, ME_ERR_NOMEM, "no memory for a file");
    }
    me_str_fini(&text);
    me_str_fini(&path);
    return status;
}

static me_status read_command(me_config *config, int argc,
                              const char *const *argv, me_diag *diag)
{
    command c = {.diag = diag};
    me_status status = read_words(&c, argc, argv);
    config->own->has_launch = true;
    if (status == ME_OK) {
        status = read_file(&c, config);
    }
    me_str_fini(&c.lines);
    return status;
}

me_status me_yaml_command_read(me_config *config, int argc,
                               const char *const *argv, me_diag *diag)
{
    const int32_t launched = config->parallel.world_size;
    const me_status status = read_command(config, argc, argv, diag);
    return status != ME_OK || launched == 0
               ? status
               : me_trainer_set_ranks(config, 1, (uint64_t)launched, diag);
}

me_status me_flagscale_read(me_config *config, int argc,
                            const char *const *argv, me_diag *diag)
{
    return read_command(config, argc, argv, diag);
}

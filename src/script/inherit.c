/* SPDX-License-Identifier: BSD-3-Clause */
#include "script/inherit.h"

#include "base/parse.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    FILE_BYTES = 1 << 20 /**< that are read of a file of variables */
};

/** What an option does, or a program without one. */
typedef enum effect {
    CLEAN,      /**< nothing is passed on */
    PASS,       /**< all is, after all */
    SET,        /**< NAME=VALUE; a name alone is passed on */
    SET_LIST,   /**< the same, with commas between them */
    SET_FILE,   /**< a line each, as they are */
    SET_SHELL,  /**< a line each, as a shell writes them */
    SET_ABSENT, /**< … which change nothing that is there */
    SET_PREFIX, /**< a variable's beginning: what follows it is set */
    EXPORT      /**< me_inherit_list() */
} effect;

typedef struct rule {
    const char *programs;
    const char *options; /**< NULL: always */
    effect effect;
} rule;

/* clang-format off */

/** By the programs' manuals. Others pass all on, and no option sets a variable. */
static const rule rules[] = {
    {"docker podman podman-hpc nerdctl nvidia-docker enroot kubectl oc", NULL, CLEAN},
    {"sudo doas", NULL, CLEAN},
    {"podman podman-hpc", "--env-host", PASS},
    {"sudo", "-E --preserve-env", PASS},
    {"apptainer singularity", "-e --cleanenv -C --containall --compat", CLEAN},
    {"shifter", "--clearenv", CLEAN},
    {"pixi mamba micromamba", "--clean-env", CLEAN},
    {"docker podman podman-hpc nerdctl nvidia-docker enroot shifter sarus mamba "
     "micromamba",
     "-e --env", SET},
    {"kubectl oc", "--env", SET},
    {"strace", "-E --env", SET},
    {"flux", "--env", SET},
    {"ch-run", "--set-env", SET},
    {"apptainer singularity", "--env", SET_LIST},
    {"nsys", "-e --env-var", SET_LIST},
    {"bsub", "-env", EXPORT},
    {"docker podman podman-hpc nerdctl nvidia-docker shifter", "--env-file", SET_FILE},
    {"apptainer singularity", "--env-file", SET_SHELL},
    {"uv", "--env-file", SET_ABSENT},
    {"apptainer singularity", "SINGULARITYENV_ APPTAINERENV_", SET_PREFIX},
};

/** What stays where all else goes: the machine's, memest's, and who says which
 *  rank of how many this is. */
static const char stays[] =
    "HOME HOSTNAME LANG LOGNAME OLDPWD PATH PWD SHELL SHLVL TERM TMPDIR TZ USER";
static const char *const begins[] = {
    "MEMEST_", "BASH_FUNC_", "SLURM", "SPANK_", "OMPI_", "PMI_", "PMIX_",
    "PBS_", "LSB_", "FLUX_", "JSM_", "ALPS_", "PALS_", "MPI_LOCAL"};

/* clang-format on */

static bool is_of(const rule *r, const char *program)
{
    return me_names_have(r->programs, program, strlen(program));
}

/** `NAME=VALUE` as it is; of a name, or podman's `NAME*`, what is there now. */
static void add(me_str *to, const char *text, size_t length)
{
    const bool has_value = memchr(text, '=', length) != NULL;
    if (length == 0 || has_value) {
        me_str_append_n(to, text, length);
        me_str_append_n(to, "", length == 0 ? 0 : 1);
        return;
    }
    const bool is_begin = text[length - 1] == '*';
    const size_t n = length - (is_begin ? 1 : 0);
    for (char **at = environ; *at != NULL; at++) {
        if (strncmp(*at, text, n) == 0 && (is_begin || (*at)[n] == '=')) {
            me_str_append_n(to, *at, strlen(*at) + 1);
        }
    }
}

static void add_list(me_str *to, const char *list)
{
    while (*list != '\0') {
        list += strspn(list, " ");
        const size_t n = strcspn(list, ",");
        add(to, list, n);
        list += n + (list[n] == ',');
    }
}

static void add_prefixed(me_str *to, const char *prefix, size_t length)
{
    for (char **at = environ; *at != NULL; at++) {
        const char *name = *at + length;
        const bool is_one = strncmp(*at, prefix, length) == 0 && *name != '=';
        const size_t n = is_one ? strcspn(name, "=") : 0;
        if (is_one && !me_names_have("HOME PATH", name, n)) {
            add(to, name, strlen(name));
        }
    }
}

/** One line of a file, without its end. */
static void add_line(me_str *to, effect how, const char *line, size_t length)
{
    static const char word[] = "export ";
    const char *end = line + length;
    while (line < end && (*line == ' ' || *line == '\t')) {
        line++;
    }
    end -= line < end && end[-1] == '\r';
    if (line == end || *line == '#') {
        return;
    }
    const char *equals = memchr(line, '=', (size_t)(end - line));
    if (how == SET_FILE || equals == NULL) {
        add(to, line, (size_t)(end - line));
        return;
    }
    line += strncmp(line, word, sizeof word - 1) == 0 ? sizeof word - 1 : 0;
    const char *value = equals + 1;
    const bool is_quoted = end - value > 1 &&
                           (*value == '"' || *value == '\'') &&
                           end[-1] == *value;
    me_str text = {0};
    me_str_append_n(&text, line, (size_t)(equals - line));
    if (how != SET_ABSENT || getenv(me_str_text(&text)) == NULL) {
        me_str_append(&text, "=");
        me_str_append_n(&text, value + (is_quoted ? 1 : 0),
                        (size_t)(end - value) - (is_quoted ? 2 : 0));
        add(to, me_str_text(&text), text.length);
    }
    me_str_fini(&text);
}

int me_inherit_open(const char *path)
{
    struct stat about;
    if (lstat(path, &about) == 0 && S_ISFIFO(about.st_mode)) {
        return -1;
    }
    return openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
}

static bool add_file(me_str *to, effect how, const char *path)
{
    char block[4096];
    me_str text = {0};
    ssize_t n = 0;
    const int fd = me_inherit_open(path);
    while (fd >= 0 && text.length < FILE_BYTES &&
           (n = read(fd, block, sizeof block)) > 0) {
        me_str_append_n(&text, block, (size_t)n);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    for (const char *at = me_str_text(&text); *at != '\0';) {
        const size_t length = strcspn(at, "\n");
        add_line(to, how, at, length);
        at += length + (at[length] == '\n');
    }
    me_str_fini(&text);
    return fd >= 0 && n == 0;
}

static void take(me_inherit *inherit, effect what, const char *value)
{
    switch (what) {
    case CLEAN: inherit->is_clean = true; return;
    case PASS: inherit->passes_all = true; return;
    case SET: add(&inherit->sets, value, strlen(value)); return;
    case SET_LIST: add_list(&inherit->sets, value); return;
    case EXPORT: me_inherit_list(inherit, value); return;
    case SET_FILE:
    case SET_SHELL:
    case SET_ABSENT:
        if (!add_file(&inherit->files, what, value)) {
            inherit->wrong = value;
        }
        return;
    case SET_PREFIX: break;
    }
}

void me_inherit_begin(me_inherit *inherit, const char *program)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        const rule *r = &rules[i];
        const char *names = r->options;
        size_t n = 0;
        if (!is_of(r, program)) {
            continue;
        }
        if (names == NULL) {
            take(inherit, r->effect, "");
        }
        for (const char *one =
                 r->effect == SET_PREFIX ? me_name_next(&names, &n) : NULL;
             one != NULL; one = me_name_next(&names, &n)) {
            add_prefixed(&inherit->files, one, n);
        }
    }
}

/** The rule of an option's name. */
static const rule *find(const char *program, const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (rules[i].options != NULL && is_of(&rules[i], program) &&
            me_names_have(rules[i].options, name, length)) {
            return &rules[i];
        }
    }
    return NULL;
}

static bool has_value(const rule *r)
{
    return r != NULL && r->effect != CLEAN && r->effect != PASS;
}

/** The letter of `-e` in `-ite VALUE` or `-eVALUE`: behind letters that have no
 *  value. @return its place in the word; 0: it has none */
static size_t find_letter(const char *program, const char *word,
                          const rule **rule_out)
{
    size_t at = 1;
    while (word[at] != '\0' && strchr("diqtP", word[at]) != NULL) {
        at++;
    }
    const char name[] = {'-', word[at], '\0'};
    *rule_out = word[at] == '\0' ? NULL : find(program, name, 2);
    return has_value(*rule_out) ? at : 0;
}

int me_inherit_option(me_inherit *inherit, const char *program, int argc,
                      char *const *argv)
{
    const char *word = argv[0];
    const size_t length = strcspn(word, "=");
    const rule *r = word[0] == '-' ? find(program, word, length) : NULL;
    const char *value = word[length] == '=' ? word + length + 1 : NULL;
    if (r == NULL && word[0] == '-' && word[1] != '-') {
        const size_t at = find_letter(program, word, &r);
        r = at == 0 ? NULL : r;
        value = at == 0 || word[at + 1] == '\0' ? NULL : word + at + 1;
    }
    if (r == NULL) {
        return 1;
    }
    if (!has_value(r)) {
        take(inherit, r->effect, "");
        return 1;
    }
    const int n_words = value == NULL && argc > 1 ? 2 : 1;
    take(inherit, r->effect,
         n_words == 2    ? argv[1]
         : value == NULL ? ""
                         : value);
    return n_words;
}

void me_inherit_list(me_inherit *inherit, const char *list)
{
    inherit->is_clean = true;
    for (const char *at = list; *at != '\0';) {
        at += strspn(at, " ");
        const size_t n = strcspn(at, ",");
        inherit->passes_all |= n == 3 && strncasecmp(at, "all", n) == 0;
        at += n + (at[n] == ',');
    }
    add_list(&inherit->sets, list);
}

/** Does a variable stay where all else goes? */
static bool is_kept(const char *variable)
{
    bool is_own = me_names_have(stays, variable, strcspn(variable, "="));
    for (size_t i = 0; !is_own && i < sizeof begins / sizeof begins[0]; i++) {
        is_own = strncmp(variable, begins[i], strlen(begins[i])) == 0;
    }
    return is_own;
}

static void clean(void)
{
    me_str gone = {0};
    for (char **at = environ; *at != NULL; at++) {
        if (!is_kept(*at)) {
            me_str_append_n(&gone, *at, strcspn(*at, "="));
            me_str_append_n(&gone, "", 1);
        }
    }
    for (size_t at = 0; at < gone.length; at += strlen(gone.text + at) + 1) {
        (void)unsetenv(gone.text + at);
    }
    me_str_fini(&gone);
}

static void set_all(me_str *texts)
{
    for (size_t at = 0; at < texts->length;) {
        char *text = texts->text + at;
        char *equals = strchr(text, '=');
        at += strlen(text) + 1;
        if (equals != NULL && equals != text) {
            *equals = '\0';
            (void)setenv(text, equals + 1, 1);
        }
    }
    me_str_fini(texts);
}

void me_inherit_apply(me_inherit *inherit)
{
    if (inherit->is_clean && !inherit->passes_all) {
        clean();
    }
    set_all(&inherit->files);
    set_all(&inherit->sets);
    *inherit = (me_inherit){.is_clean = false};
}

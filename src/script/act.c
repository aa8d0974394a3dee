/* SPDX-License-Identifier: BSD-3-Clause */
#include "script/act.h"

#include "base/parse.h"
#include "base/str.h"
#include "config/launch_command.h"
#include "config/slurm_options.h"
#include "config/wrappers.h"
#include "script/act_private.h"
#include "script/carry.h"
#include "script/guise.h"
#include "script/inherit.h"
#include "script/interpreter.h"
#include "script/order.h"
#include "script/place.h"
#include "script/record.h"
#include "script/srun_step.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    WORDS_MAX = 1 << 14 /**< of a command */
};

/** The path that this program was started by. */
static const char *started_as(void)
{
    const unsigned long at = getauxval(AT_EXECFN);
    // The kernel hands the address over as a number.
    // NOLINTNEXTLINE(performance-no-int-to-ptr): that is its interface.
    return at == 0 ? "" : (const char *)at;
}

bool me_guise_is_worn(void)
{
    const char *path = started_as();
    const char *folder = strstr(path, "/memest-");
    return folder != NULL && strstr(folder, "/bin/") != NULL &&
           me_record_is_there();
}

bool me_guise_path_of(const char *name, char *path, size_t size)
{
    const char *own = started_as();
    const int folder = (int)(me_guise_base(own) - own);
    const int n =
        snprintf(path, size, "%.*s%s", folder, own, me_guise_base(name));
    return n > 0 && (size_t)n < size;
}

int me_guise_start_own(const char *name, char **argv)
{
    char path[PATH_MAX];
    if (me_guise_path_of(name, path, sizeof path)) {
        (void)execv(path, argv);
    }
    return ME_GUISE_NOT_FOUND;
}

void me_guise_set(const char *assignment, unsigned length)
{
    me_str copy = {0};
    me_str_append_n(&copy, assignment, length);
    char *equals = copy.text == NULL ? NULL : strchr(copy.text, '=');
    if (equals != NULL && equals != copy.text) {
        *equals = '\0';
        (void)setenv(copy.text, equals + 1, 1);
    }
    me_str_fini(&copy);
}

int me_guise_nothing(int argc, char **argv)
{
    me_words words = {.count = 0};
    me_words_add(&words, ME_RECORD_NOTHING);
    for (int i = 0; i < argc; i++) {
        me_words_add(&words, argv[i]);
    }
    (void)me_record_send(&words);
    me_words_fini(&words);
    return 0;
}

/** Words of launchers around this command, in front of its own. */
static uint32_t add_before(me_words *words)
{
    uint32_t count = 0;
    const char *before = getenv(ME_GUISE_BEFORE);
    while (before != NULL && *before != '\0') {
        const size_t n = strcspn(before, "\x1f");
        me_str_append_n(&words->text, before, n);
        me_str_append_n(&words->text, "", 1);
        before += n;
        before += *before != '\0';
        count++;
    }
    return count;
}

static bool is_of_memest(const char *variable)
{
    return (strncmp(variable, "MEMEST_", 7) == 0 &&
            strncmp(variable, "MEMEST_GRES=", 12) != 0 &&
            strncmp(variable, "MEMEST_CONSTRAINT=", 18) != 0 &&
            strncmp(variable, "MEMEST_ASSUMED_NODES=", 21) != 0) ||
           strncmp(variable, "BASH_FUNC_", 10) == 0;
}

/** Tell of a launch: its words and the environment that it would have. */
static int tell(int argc, char **argv)
{
    char count[16];
    me_str order = {0};
    me_words before = {.count = 0};
    me_words words = {.count = 0};
    const uint32_t n_before = add_before(&before);
    me_words_add(&words, ME_RECORD_LAUNCH);
    me_order_append(&order);
    me_words_add(&words, me_str_text(&order));
    me_str_fini(&order);
    (void)snprintf(count, sizeof count, "%u", n_before + (unsigned)argc);
    me_words_add(&words, count);
    for (int i = 0; i < argc; i++) {
        me_carry_word(argv[i], &before.text);
        me_str_append_n(&before.text, "", 1);
    }
    me_str_append_n(&words.text, me_str_text(&before.text), before.text.length);
    for (char **variable = environ; *variable != NULL; variable++) {
        const char *told = me_step_variable_outside(*variable);
        if (told != NULL && !is_of_memest(told)) {
            me_words_add(&words, told);
        }
    }
    me_carry_folder(&words);
    me_carry_files(&before.text, &words);
    const bool is_told = me_record_send(&words);
    me_words_fini(&before);
    me_words_fini(&words);
    return is_told ? 0 : 1;
}

/** Of a list with semicolons between them. */
static void set_variables(const char *list)
{
    for (const char *at = list; *at != '\0';) {
        const size_t n = strcspn(at, ";");
        me_guise_set(at, (unsigned)n);
        at += n + (at[n] == ';');
    }
}

/** Words that an option of a launcher takes; variables that it sets are set. */
static int step_option(const me_wrapper *wrapper, char **argv, int left)
{
    const char *attached = NULL;
    const me_wrapper_option *option =
        me_wrapper_option_of(wrapper, argv[0], &attached);
    if (option != NULL && attached == NULL &&
        me_wrapper_lacks_number(wrapper, option, left > 1 ? argv[1] : NULL)) {
        attached = "";
    }
    const bool is_attached = attached != NULL;
    const int n = option == NULL || is_attached ? 1 : 1 + option->n_values;
    const char *value = is_attached ? attached : argv[1];
    if (option == NULL || n > left || value == NULL) {
        return n < left ? n : left;
    }
    if (option->use == ME_WRAPPER_ASSIGNMENT) {
        me_guise_set(value, (unsigned)strlen(value));
    } else if (option->use == ME_WRAPPER_PAIR && n == 3) {
        (void)setenv(value, argv[2], 1);
    } else if (option->use == ME_WRAPPER_PARAMETER && n == 3 &&
               strcmp(value, ME_WRAPPER_ENV_LIST) == 0) {
        set_variables(argv[2]);
    }
    return n;
}

/** … of srun's. @param export_out  the value of --export, which is followed and
 *  then left out of its words. @param folder_out  of --chdir */
static int step_srun(char **argv, int left, me_step *step,
                     const char **export_out, const char **folder_out)
{
    static char left_out[] = "--";
    me_slurm_words words = {.program = ME_SLURM_SRUN,
                            .argc = left,
                            .argv = (const char *const *)argv};
    me_slurm_read read = ME_SLURM_OPTION;
    do {
        read = me_slurm_words_next(&words);
        if (read == ME_SLURM_OPTION) {
            me_step_take(step, words.name, words.value);
        }
        if (read == ME_SLURM_OPTION && strcmp(words.name, "export") == 0) {
            *export_out = words.value;
            for (int i = 0; i < words.at; i++) {
                argv[i] = left_out;
            }
        } else if (read == ME_SLURM_OPTION &&
                   (strcmp(words.name, "container-image") == 0 ||
                    strcmp(words.name, "container-name") == 0)) {
            me_guise_enter_elsewhere();
        } else if (read == ME_SLURM_OPTION &&
                   strcmp(words.name, "chdir") == 0) {
            *folder_out = words.value;
        }
    } while (read == ME_SLURM_OPTION && words.letter > 0);
    return words.at > 0 ? words.at
                        : 1; // who reads the launch says what is wrong
}

/** What a step has of the environment: as its option says, else variables. */
static void export(const char *list)
{
    const char *const said[] = {list, getenv("SRUN_EXPORT_ENV"),
                                getenv("SLURM_EXPORT_ENV")};
    me_inherit inherit = {.is_clean = false};
    size_t i = 0;
    while (i < sizeof said / sizeof *said && said[i] == NULL) {
        i++;
    }
    if (i < sizeof said / sizeof *said) {
        me_inherit_list(&inherit, said[i]);
    }
    me_inherit_apply(&inherit);
}

/** Keep a launcher's words in front of the launch that comes of what it starts. */
static void keep_before(int count, char **argv)
{
    me_str before = {0};
    const char *outer = getenv(ME_GUISE_BEFORE);
    me_str_append(&before, outer == NULL ? "" : outer);
    for (int i = 0; i < count; i++) {
        if (strcmp(argv[i], "--") != 0) {
            me_carry_word(argv[i], &before);
            me_str_append(&before, "\x1f");
        }
    }
    (void)setenv(ME_GUISE_BEFORE, me_str_text(&before), 1);
    me_str_fini(&before);
}

/** srun and mpirun: what they start runs once, as the first of its tasks; their
 *  words stay in front of the launch that comes of it. */
static int count(int given, char **words)
{
    int argc = given;
    char **argv = me_guise_join(given, words, &argc);
    if (argv == NULL) {
        return 1;
    }
    const me_wrapper *wrapper = me_wrapper_find(argv[0]);
    const int skipped =
        wrapper == NULL ? 0
                        : me_wrapper_subcommand(wrapper, argc - 1,
                                                (const char *const *)argv + 1);
    int at = 1 + skipped;
    const char *exported = NULL;
    const char *folder = NULL;
    static me_step step;
    if (skipped < 0) {
        return me_guise_around(argc, argv); // `flux alloc` and its like
    }
    while (wrapper != NULL && at < argc && argv[at][0] == '-') {
        const bool is_end = strcmp(argv[at], "--") == 0;
        at += is_end ? 1
              : wrapper->kind == ME_WRAPPER_SRUN
                  ? step_srun(argv + at, argc - at, &step, &exported, &folder)
                  : step_option(wrapper, argv + at, argc - at);
        if (is_end) {
            break;
        }
    }
    if (wrapper == NULL || at >= argc) {
        return me_guise_nothing(argc, argv);
    }
    if (wrapper->kind == ME_WRAPPER_SRUN) {
        step.name = me_guise_base(argv[at]);
        export(exported);
        me_step_set_variables(&step);
    }
    keep_before(at, argv);
    me_guise_set_first(wrapper, at, argv);
    return folder != NULL && chdir(folder) != 0
               ? me_guise_fail(folder, "no such folder, which srun goes to")
               : me_guise_start(argv + at);
}

/** The launcher of a process a GPU that a command is: torchrun and what takes its
 *  options, `deepspeed`, `accelerate launch`, a program or a module of Python's.
 *  @param at_out  where its options begin
 *  @return NULL: it is another program */
static const me_wrapper *find_launcher(int argc, char **argv, int *at_out)
{
    const me_wrapper *wrapper = me_wrapper_find(argv[0]);
    int at = 1;
    while (wrapper != NULL && wrapper->kind == ME_WRAPPER_PYTHON && at < argc &&
           argv[at][0] == '-' && strcmp(argv[at], "-m") != 0) {
        at += step_option(wrapper, argv + at, argc - at);
    }
    if (wrapper != NULL && wrapper->kind == ME_WRAPPER_PYTHON &&
        at + 1 < argc && strcmp(argv[at], "-m") == 0) {
        wrapper = me_wrapper_find(argv[at + 1]);
        at += 2;
    }
    if (wrapper != NULL && wrapper->kind == ME_WRAPPER_PLAIN && at < argc) {
        wrapper = me_wrapper_find(argv[at++]); // accelerate's launch
    }
    *at_out = at;
    return wrapper != NULL && (wrapper->kind == ME_WRAPPER_TORCHRUN ||
                               wrapper->kind == ME_WRAPPER_DEEPSPEED ||
                               wrapper->kind == ME_WRAPPER_ACCELERATE)
               ? wrapper
               : NULL;
}

/** `torchrun --no-python PROGRAM …`, where that is no Python: a shell, a profiler,
 *  a script of the user's.
 *  @param launcher_out  where there is one
 *  @param options_out   where its options begin
 *  @return where the program is; 0: nowhere */
static int find_program(int argc, char **argv, const me_wrapper **launcher_out,
                        int *options_out)
{
    bool is_program = false;
    int at = 0;
    const me_wrapper *launcher = find_launcher(argc, argv, &at);
    *options_out = at;
    while (launcher != NULL && at < argc && argv[at][0] == '-') {
        is_program |= strcmp(argv[at], "--no-python") == 0 ||
                      strcmp(argv[at], "--no_python") == 0;
        at += step_option(launcher, argv + at, argc - at);
    }
    *launcher_out = launcher;
    return is_program && at < argc && me_guise_find(argv[at]) != ME_GUISE_LAUNCH
               ? at
               : 0;
}

/** Does a shell read what this process prints? It is no part of what the script
 *  itself prints, as its trouble is. */
static bool is_captured(void)
{
    struct stat out;
    struct stat err;
    return fstat(STDOUT_FILENO, &out) == 0 && S_ISFIFO(out.st_mode) &&
           (fstat(STDERR_FILENO, &err) != 0 || out.st_dev != err.st_dev ||
            out.st_ino != err.st_ino);
}

static int launch(int argc, char **argv)
{
    const bool is_python = strncmp(me_guise_base(argv[0]), "python", 6) == 0;
    const me_wrapper *launcher = NULL;
    int options = 0;
    const int program = find_program(argc, argv, &launcher, &options);
    if (program > 0) {
        keep_before(program, argv);
        me_guise_set_first(launcher, program - options + 1, argv + options - 1);
        return me_guise_start(argv + program);
    }
    const char *const *words = (const char *const *)argv;
    if (is_python && !me_python_trains(argc, words)) {
        return me_guise_python(argc, argv, NULL);
    }
    if (is_python && is_captured() &&
        !me_launch_names_job(argc - 1, words + 1)) {
        (void)me_guise_nothing(argc, argv); // it may print a part of the job
    }
    return tell(argc, argv);
}

/** A file of the user's that is started by its path: by the interpreter that it
 *  names, if that is a shell or Python; else it does nothing. */
static int start_file(int argc, char **argv)
{
    char interpreter[PATH_MAX];
    char *words[WORDS_MAX];
    if (argc > 1 && me_ends_with(argv[0], ".sh") &&
        access(argv[0], F_OK) != 0 && me_ends_with(argv[1], ".py")) {
        return tell(argc, argv); // as in an image: config/launch_command.h
    }
    if (argc >= WORDS_MAX - 1 ||
        !me_interpreter_of_script(argv[0], interpreter)) {
        return me_guise_nothing(argc, argv);
    }
    words[0] = interpreter;
    memcpy(words + 1, argv, ((size_t)argc + 1) * sizeof *argv);
    const me_guise_kind kind = me_guise_find(interpreter);
    return kind == ME_GUISE_SHELL    ? me_guise_start_own(interpreter, words)
           : kind == ME_GUISE_LAUNCH ? launch(argc + 1, words)
                                     : me_guise_nothing(argc, argv);
}

/** What computes, where it is no program of its own: one in Python, or none that
 *  this machine has. */
static int work(const char *name, int argc, char **argv, bool is_other)
{
    char path[PATH_MAX];
    me_str link = {0};
    me_str_printf(&link, ME_PLACE_TOOL "%s", name);
    const bool is_python =
        me_guise_path_of(me_str_text(&link), path, sizeof path) &&
        access(path, F_OK) == 0;
    me_str_fini(&link);
    if (is_python) {
        return me_guise_python(argc, argv, path);
    }
    if (is_other) {
        (void)me_guise_start_own(name, argv);
    }
    return me_guise_nothing(argc, argv);
}

static int act(const char *name, int argc, char **argv, bool is_other)
{
    switch (me_guise_find(name)) {
    case ME_GUISE_LAUNCH: return launch(argc, argv);
    case ME_GUISE_COUNT: return count(argc, argv);
    case ME_GUISE_AROUND: return me_guise_around(argc, argv);
    case ME_GUISE_AS: return me_guise_as(argc, argv);
    case ME_GUISE_REMOTE: return me_guise_remote(argc, argv);
    case ME_GUISE_PARALLEL: return me_guise_parallel(argc, argv);
    case ME_GUISE_SBATCH: return me_guise_sbatch(argc, argv);
    case ME_GUISE_CARDS: return me_guise_cards(argc, argv);
    case ME_GUISE_HOSTNAME: return me_guise_hostname(argc, argv);
    case ME_GUISE_HOSTS: return me_guise_hosts(argc, argv);
    case ME_GUISE_QUIET: return 0;
    case ME_GUISE_UNKNOWN: return start_file(argc, argv);
    case ME_GUISE_WORK: return work(me_guise_base(name), argc, argv, is_other);
    case ME_GUISE_SHELL:
        return is_other ? me_guise_start_own(name, argv)
                        : me_guise_nothing(argc, argv);
    case ME_GUISE_NOTHING:
    case ME_GUISE_ELSEWHERE:
    case ME_GUISE_WRITE: break;
    }
    return me_guise_nothing(argc, argv);
}

int me_guise_start(char **argv)
{
    int argc = 0;
    while (argv[argc] != NULL) {
        argc++;
    }
    if (me_guise_find(argv[0]) == ME_GUISE_UNKNOWN) {
        return start_file(argc, argv);
    }
    const int code = me_guise_start_own(argv[0], argv);
    return me_guise_find(argv[0]) == ME_GUISE_WORK
               ? code
               : act(argv[0], argc, argv, false);
}

int me_guise_act(int argc, char **argv)
{
    const char *name = me_guise_base(started_as());
    const bool is_other = strcmp(name, ".other") == 0;
    if (is_other && argc > 1 && strcmp(argv[0], started_as()) == 0) {
        argc--; // a shell that did not find the command names it
        argv++;
    }
    return act(is_other ? argv[0] : name, argc, argv, is_other);
}

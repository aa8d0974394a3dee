/* SPDX-License-Identifier: BSD-3-Clause */
/* Python that computes a value for the script, under the script's fences; with a
 * training script or module it is a launch. */
#include "base/parse.h"
#include "base/str.h"
#include "script/act_private.h"
#include "script/guise.h"
#include "script/keep.h"
#include "script/place.h"
#include "script/record.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CPU_SECONDS = 3,   /**< that a value may take */
    TAIL_BYTES = 2048, /**< of what it says, where an error stands */
    WORDS_MAX = 1 << 14
};

/** What a command of Python's does. */
typedef enum python_kind {
    TRAINS,   /**< a script or a module: a launch */
    COMPUTES, /**< a program among its words, or on its input */
    INSTALLS  /**< a tool whose effect nobody wants here */
} python_kind;

static python_kind kind_of_module(const char *module)
{
    static const char installing[] =
        "pip venv ensurepip http.server compileall";
    static const char computing[] = "json.tool site sysconfig";
    const size_t length = strlen(module);
    return me_names_have(installing, module, length)  ? INSTALLS
           : me_names_have(computing, module, length) ? COMPUTES
                                                      : TRAINS;
}

/** A word that begins with a dash, of letters of which c, m, W and X take what
 *  follows, as CPython reads it. */
typedef struct letters {
    char taker; /**< c, m, W or X; 0: none of them */
    const char
        *value; /**< that it takes from the same word; "": the next one */
} letters;

static letters read_letters(const char *word)
{
    const char *taker = word[1] == '-' ? NULL : strpbrk(word + 1, "cmWX");
    return taker == NULL ? (letters){0, ""} : (letters){*taker, taker + 1};
}

static python_kind kind_of(int argc, const char *const *argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "-") != 0; i++) {
        const letters read = read_letters(argv[i]);
        const char *next = i + 1 < argc ? argv[i + 1] : "";
        if (argv[i][0] != '-') {
            return TRAINS;
        }
        if (read.taker == 'c') {
            return COMPUTES;
        }
        if (read.taker == 'm') {
            return kind_of_module(*read.value == '\0' ? next : read.value);
        }
        if ((read.taker != 0 && *read.value == '\0') ||
            strcmp(argv[i], "--check-hash-based-pycs") == 0) {
            i++;
        }
    }
    return COMPUTES;
}

bool me_python_trains(int argc, const char *const *argv)
{
    return kind_of(argc, argv) == TRAINS;
}

/** A file without a name; -1: none. */
static int make_file(void)
{
    char path[PATH_MAX];
    const char *in = getenv("TMPDIR");
    const int n = snprintf(path, sizeof path, "%s/python-XXXXXX",
                           in == NULL ? "/tmp" : in);
    const int fd = n > 0 && (size_t)n < sizeof path ? mkstemp(path) : -1;
    if (fd >= 0) {
        (void)unlink(path);
    }
    return fd;
}

/** In the process that becomes Python. @param tool  me_guise_python()
 *  @param said  its standard error; -1: this process's */
_Noreturn static void be_python(int argc, char **argv, char *tool, int said)
{
    char program[PATH_MAX];
    char modules[PATH_MAX];
    char shown[PATH_MAX];
    char *words[WORDS_MAX];
    me_str path = {0};
    const char *before = getenv("PYTHONPATH");
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    int n_words = 0;
    if (argc >= WORDS_MAX - 2 ||
        !me_guise_path_of(ME_PLACE_PYTHON, program, sizeof program) ||
        !me_guise_path_of(ME_PLACE_MODULES, modules, sizeof modules)) {
        _exit(ME_GUISE_NOT_FOUND);
    }
    // It finds its own folder by the path that it is started by.
    const ssize_t n = readlink(program, shown, sizeof shown - 1);
    shown[n > 0 ? n : 0] = '\0';
    words[n_words++] = shown;
    if (tool != NULL) {
        words[n_words++] = tool;
    }
    memcpy(words + n_words, argv + 1, (size_t)argc * sizeof *argv);
    me_str_printf(&path, "%s%s%s", modules, before == NULL ? "" : ":",
                  before == NULL ? "" : before);
    (void)setenv("PYTHONPATH", me_str_text(&path), 1);
    (void)setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
    me_guise_tell_cards();
    me_str_fini(&path);
    if (said >= 0) {
        (void)dup2(said, STDERR_FILENO);
        (void)close(said);
    }
    me_limit_for_good(RLIMIT_CPU, CPU_SECONDS);
    me_limit_for_good(RLIMIT_DATA, (uint64_t)ME_SCRIPT_MEMORY_MIB << 20);
    (void)execv(program, words);
    _exit(ME_GUISE_NOT_FOUND);
}

/** The last line of a file: what an exception says. */
static void read_last_line(int fd, char line[TAIL_BYTES])
{
    const off_t length = lseek(fd, 0, SEEK_END);
    const off_t at = length > TAIL_BYTES - 1 ? length - (TAIL_BYTES - 1) : 0;
    const ssize_t n = fd < 0 ? -1 : pread(fd, line, TAIL_BYTES - 1, at);
    size_t end = n > 0 ? (size_t)n : 0;
    while (end > 0 && (line[end - 1] == '\n' || line[end - 1] == ' ')) {
        end--;
    }
    line[end] = '\0';
    const char *newline = strrchr(line, '\n');
    if (newline != NULL) {
        memmove(line, newline + 1, strlen(newline + 1) + 1);
    }
}

/** To the script, which may want to read it. */
static void pass_on(int fd)
{
    char bytes[4096];
    off_t at = 0;
    ssize_t n = pread(fd, bytes, sizeof bytes, at);
    while (n > 0 && write(STDERR_FILENO, bytes, (size_t)n) == n) {
        at += n;
        n = pread(fd, bytes, sizeof bytes, at);
    }
}

/** Is a line that of an exception: its class, and what it says of itself? */
static bool is_exception(const char *line)
{
    const size_t n = strcspn(line, ":");
    return strcspn(line, " ") >= n &&
           ((n > 5 && strncmp(line + n - 5, "Error", 5) == 0) ||
            (n > 8 && strncmp(line + n - 8, "gaierror", 8) == 0));
}

/** … of one that is this place's: a module or a connection that the job has. */
static bool is_of_this_place(const char *line)
{
    static const char classes[] = "ModuleNotFoundError ImportError "
                                  "PermissionError URLError ConnectionError "
                                  "gaierror";
    const char *end = line + strcspn(line, ":");
    const char *name = end;
    while (name > line && name[-1] != '.') {
        name--;
    }
    return me_names_have(classes, name, (size_t)(end - name));
}

/** Tell that no value came of it, and why, behind the words that are its kind. */
static void tell_why(int argc, char **argv, const char *why)
{
    me_words words = {.count = 0};
    me_str reason = {0};
    me_str_printf(&reason, "[%.200s]", why);
    me_words_add(&words, ME_RECORD_NOTHING);
    for (int i = 0; i < argc; i++) {
        if (i == 2 || argc == 1) {
            me_words_add(&words, me_str_text(&reason));
        }
        me_words_add(&words, argv[i]);
    }
    if (argc == 2) {
        me_words_add(&words, me_str_text(&reason));
    }
    (void)me_record_send(&words);
    me_words_fini(&words);
    me_str_fini(&reason);
}

/** What came of it, to the script and to memest. @return its exit code */
static int finish(int argc, char **argv, int wait_status, int said)
{
    char line[TAIL_BYTES];
    if (!WIFEXITED(wait_status)) {
        tell_why(argc, argv, "took more time or memory than a value may");
        return 0;
    }
    const int code = WEXITSTATUS(wait_status);
    if (code == ME_GUISE_NOT_FOUND) {
        return me_guise_nothing(argc, argv);
    }
    read_last_line(said, line);
    if (code != 0 && is_exception(line)) {
        tell_why(argc, argv, line);
        if (is_of_this_place(line)) {
            return 0;
        }
    }
    if (said >= 0) {
        pass_on(said);
    }
    return code;
}

int me_guise_python(int argc, char **argv, const char *tool)
{
    char file[PATH_MAX];
    int wait_status = 0;
    (void)snprintf(file, sizeof file, "%s", tool == NULL ? "" : tool);
    if (tool == NULL && kind_of(argc, (const char *const *)argv) != COMPUTES) {
        return me_guise_nothing(argc, argv);
    }
    const int said = make_file();
    const pid_t child = fork();
    if (child == 0) {
        be_python(argc, argv, tool == NULL ? NULL : file, said);
    }
    const bool has_ended =
        child > 0 && waitpid(child, &wait_status, 0) == child;
    const int code = has_ended ? finish(argc, argv, wait_status, said)
                               : me_guise_nothing(argc, argv);
    if (said >= 0) {
        (void)close(said);
    }
    return code;
}

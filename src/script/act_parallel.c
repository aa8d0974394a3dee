/* SPDX-License-Identifier: BSD-3-Clause */
/* GNU parallel (parallel(1), parallel_tutorial(7)): each of its commands is run,
 * one after the other. What it would do otherwise with them (--pipe, --semaphore,
 * -X, {= Perl =}) is not read: then it does nothing, and is named. */
#include "base/parse.h"
#include "base/str.h"
#include "script/act_private.h"
#include "script/guise.h"
#include "script/record.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    SOURCES_MAX = 8,
    FIELDS_MAX = 32,
    COMMANDS_MAX = 256, /**< more than a script's launches may be */
    INPUT_BYTES = 1 << 20
};

/** How a source goes along with the one before it. */
typedef enum goes {
    CROSSED, /**< each of the one with each of the other */
    PAIRED,  /**< `:::+`: as long as both have some */
    WRAPPED  /**< `--link`: the shorter one begins again */
} goes;

typedef struct source {
    me_words words;
    goes pairing;
} source;

typedef struct parallel {
    source sources[SOURCES_MAX];
    uint32_t n_sources;
    uint64_t n_jobs;          /**< at one time; 0: nobody said */
    uint64_t n_args;          /**< of a source that a command takes; 0: one */
    const char *separator;    /**< of columns; NULL: a line is one */
    const char *replaced;     /**< of -I; NULL: {} */
    char end_of_line;         /**< of lists */
    bool is_linked;           /**< `--link` */
    const char *const *words; /**< of the command */
    int n_words;
} parallel;

/** A part of a text. */
typedef struct field {
    const char *at;
    size_t length;
} field;

typedef struct row {
    field fields[FIELDS_MAX];
    uint32_t n_fields;
    uint64_t number; /**< from 1 */
} row;

static const char *word_at(const me_words *words, uint32_t index)
{
    const char *at = me_str_text(&words->text);
    for (; index > 0; index--) {
        at += strlen(at) + 1;
    }
    return at;
}

/** The lines of a descriptor. */
static void read_lines(parallel *p, int fd, source *to)
{
    char bytes[4096];
    me_str line = {0};
    size_t total = 0;
    for (ssize_t n = read(fd, bytes, sizeof bytes);
         n > 0 && total < INPUT_BYTES; n = read(fd, bytes, sizeof bytes)) {
        total += (size_t)n;
        for (ssize_t i = 0; i < n; i++) {
            if (bytes[i] == p->end_of_line) {
                me_words_add(&to->words, me_str_text(&line));
                me_str_fini(&line);
            } else {
                me_str_append_n(&line, bytes + i, 1);
            }
        }
    }
    if (line.length > 0) {
        me_words_add(&to->words, me_str_text(&line));
    }
    me_str_fini(&line);
}

static source *add_source(parallel *p, goes pairing)
{
    if (p->n_sources == SOURCES_MAX) {
        return NULL;
    }
    source *added = &p->sources[p->n_sources++];
    added->pairing = p->n_sources == 1                    ? CROSSED
                     : pairing == CROSSED && p->is_linked ? WRAPPED
                                                          : pairing;
    return added;
}

static bool add_file(parallel *p, const char *path, goes pairing)
{
    const bool is_input = strcmp(path, "-") == 0;
    const int fd = is_input ? STDIN_FILENO : me_inherit_open(path);
    source *added = fd < 0 ? NULL : add_source(p, pairing);
    if (added != NULL) {
        read_lines(p, fd, added);
    }
    if (fd > STDERR_FILENO) {
        (void)close(fd);
    }
    return added != NULL;
}

/** Options whose value, if they have one, changes nothing here. */
static const char without_value[] =
    "-k --keep-order -u --ungroup --lb --line-buffer --linebuffer --group "
    "--bar --progress --eta --verbose -t -v --will-cite --tag --plain "
    "--no-notice -r --no-run-if-empty --resume --resume-failed --link --xapply "
    "-0 --null --silent";
static const char with_value[] =
    "--joblog --delay --timeout --retries --halt --halt-on-error --results "
    "--wd --workdir --env --memfree --load --nice --tmpdir --tagstring --shell "
    "-j --jobs -P --max-procs -a --arg-file -I -C --colsep -n -N --max-args "
    "--max-replace-args -S --sshlogin --sshloginfile --slf --compress-program";

/** Follow an option. @return false: what it says is not read */
static bool take(parallel *p, const char *name, const char *value)
{
    static const char counts[] = "-j --jobs -P --max-procs";
    static const char sizes[] = "-n -N --max-args --max-replace-args";
    if (me_names_have("-0 --null", name, strlen(name))) {
        p->end_of_line = '\0';
    } else if (me_names_have("--link --xapply", name, strlen(name))) {
        p->is_linked = true;
    } else if (me_names_have(counts, name, strlen(name))) {
        // A share of the processors or a file say no number here.
        p->n_jobs = me_parse_u64(value, &p->n_jobs) == ME_OK ? p->n_jobs : 0;
    } else if (me_names_have(sizes, name, strlen(name))) {
        return me_parse_u64(value, &p->n_args) == ME_OK && p->n_args > 0;
    } else if (me_names_have("-a --arg-file", name, strlen(name))) {
        return add_file(p, value, CROSSED);
    } else if (strcmp(name, "-I") == 0) {
        p->replaced = value;
    } else if (me_names_have("-C --colsep", name, strlen(name))) {
        p->separator = strcmp(value, "\\t") == 0 ? "\t" : value;
        return strlen(p->separator) == 1 ||
               me_names_have("\\s+ [[:space:]]+", value, strlen(value));
    }
    return true;
}

/** An option and its value. @return words that it has; 0: it is not read */
static int take_option(parallel *p, char **argv, int left)
{
    char name[32];
    const char *word = argv[0];
    const char *equals = word[1] == '-' ? strchr(word, '=') : NULL;
    const bool is_short = word[1] != '-' && word[1] != '\0' && word[2] != '\0';
    const size_t length = equals != NULL ? (size_t)(equals - word)
                          : is_short     ? 2
                                         : strlen(word);
    (void)snprintf(name, sizeof name, "%.*s", (int)length, word);
    if (me_names_have(with_value, name, strlen(name))) {
        const char *value = equals != NULL ? equals + 1
                            : is_short     ? word + 2
                            : left > 1     ? argv[1]
                                           : NULL;
        const int n = equals != NULL || is_short ? 1 : 2;
        return value != NULL && take(p, name, value) ? n : 0;
    }
    return me_names_have(without_value, word, strlen(word)) && take(p, word, "")
               ? 1
               : 0;
}

static bool is_mark(const char *word)
{
    return me_names_have("::: :::+ :::: ::::+", word, strlen(word));
}

/** What stands behind the command: words, or files of them. */
static bool take_sources(parallel *p, int argc, char **argv)
{
    bool is_read = true;
    for (int i = 0; is_read && i < argc;) {
        const char *mark = argv[i++];
        const goes pairing = strchr(mark, '+') != NULL ? PAIRED : CROSSED;
        const bool is_file = strncmp(mark, "::::", 4) == 0;
        source *to = is_file ? NULL : add_source(p, pairing);
        is_read = is_file || to != NULL;
        for (; is_read && i < argc && !is_mark(argv[i]); i++) {
            if (is_file) {
                is_read = add_file(p, argv[i], pairing);
            } else {
                me_words_add(&to->words, argv[i]);
            }
        }
    }
    return is_read;
}

/** Where `{=` or `{2=` stands; NULL: nowhere. */
static const char *find_perl(const char *word)
{
    const char *at = strchr(word, '{');
    while (at != NULL && at[1 + strspn(at + 1, "-0123456789")] != '=') {
        at = strchr(at + 1, '{');
    }
    return at;
}

/** Has a command what Perl computes, `{= … =}`, in one word or several? That is not
 *  read. */
static bool has_perl(const char *const *words, int n_words)
{
    bool is_open = false;
    for (int i = 0; i < n_words; i++) {
        const char *at = is_open ? words[i] : find_perl(words[i]);
        is_open = at != NULL;
        if (is_open && strstr(at, "=}") != NULL) {
            return true;
        }
    }
    return false;
}

/** @return false: there is something that is not read */
static bool read_command(parallel *p, int argc, char **argv)
{
    int at = 1;
    while (at < argc && argv[at][0] == '-') {
        const int n = take_option(p, argv + at, argc - at);
        if (n == 0) {
            return false;
        }
        at += n;
    }
    p->words = (const char *const *)argv + at;
    while (at < argc && !is_mark(argv[at])) {
        if (strcmp(argv[at], "--") == 0) {
            return false; // of another parallel, that of moreutils
        }
        p->n_words++;
        at++;
    }
    const bool is_read = !has_perl(p->words, p->n_words) &&
                         take_sources(p, argc - at, argv + at);
    return is_read && (p->n_sources > 0 || add_file(p, "-", CROSSED));
}

/** Without what a replacement takes away: `.` its ending, `/` its folders, `//`
 *  all but these, `/.` both. */
static field cut(field f, const char *how, size_t length)
{
    const bool has_end = length > 0 && how[length - 1] == '.';
    size_t name = f.length;
    while (name > 0 && f.at[name - 1] != '/') {
        name--;
    }
    if (length == 2 && how[1] == '/') {
        return name == 0 ? (field){".", 1} : (field){f.at, name - 1};
    }
    size_t end = f.length;
    for (size_t i = f.length; has_end && i > name && end == f.length; i--) {
        end = f.at[i - 1] == '.' ? i - 1 : end;
    }
    const size_t begin = length > 0 && how[0] == '/' ? name : 0;
    return (field){f.at + begin, end - begin};
}

/** As it stands, if a shell takes it so: also within quotation marks. */
static void append_quoted(me_str *text, field f)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+./:,"
        "=@%";
    if (f.length > 0 && strspn(f.at, plain) >= f.length) {
        me_str_append_n(text, f.at, f.length);
        return;
    }
    me_str_append(text, "'");
    for (size_t i = 0; i < f.length; i++) {
        if (f.at[i] == '\'') {
            me_str_append(text, "'\\''");
        } else {
            me_str_append_n(text, f.at + i, 1);
        }
    }
    me_str_append(text, "'");
}

/** All of a row, or the field of a number, -1 for the last. */
static void append_fields(me_str *text, const row *r, int64_t number,
                          const char *how, size_t length)
{
    const int64_t own = number < 0 ? r->n_fields + 1 + number : number;
    for (uint32_t i = 0; i < r->n_fields; i++) {
        if (number == 0 || own == i + 1) {
            me_str_append(text, number == 0 && i > 0 ? " " : "");
            append_quoted(text, cut(r->fields[i], how, length));
        }
    }
}

/** What stands for `{…}`. @return its length; 0: it is none of ours */
static size_t replace(const parallel *p, const char *at, const row *r,
                      me_str *text)
{
    const size_t own = p->replaced == NULL ? 0 : strlen(p->replaced);
    if (own > 0 && strncmp(at, p->replaced, own) == 0) {
        append_fields(text, r, 0, "", 0);
        return own;
    }
    const char *end = *at == '{' ? strchr(at, '}') : NULL;
    const bool is_from_end = end != NULL && at[1] == '-';
    const char *first = at + 1 + is_from_end;
    const size_t digits = end == NULL ? 0 : strspn(first, "0123456789");
    const char *how = first + digits;
    const size_t length = end == NULL ? 0 : (size_t)(end - how);
    if (end == NULL || digits > 2 || (is_from_end && digits == 0)) {
        return 0;
    }
    int64_t number = 0;
    for (size_t i = 0; i < digits; i++) {
        number = 10 * number + (first[i] - '0');
    }
    number = is_from_end ? -number : number;
    if (length == 1 && (*how == '#' || *how == '%')) {
        const uint64_t slot =
            p->n_jobs == 0 ? r->number : (r->number - 1) % p->n_jobs + 1;
        me_str_printf(text, "%" PRIu64, *how == '#' ? r->number : slot);
    } else if (length == 0 || me_names_have(". / // /.", how, length)) {
        append_fields(text, r, number, how, length);
    } else {
        return 0;
    }
    return (size_t)(end - at) + 1;
}

/** One command, in a shell of its own. */
static void append_command(const parallel *p, const row *r, me_str *text)
{
    bool is_replaced = false;
    me_str_append(text, "( :; "); // a command may be a comment
    for (int i = 0; i < p->n_words; i++) {
        me_str_append(text, i > 0 ? " " : "");
        for (const char *at = p->words[i]; *at != '\0';) {
            const size_t n = replace(p, at, r, text);
            if (n == 0) {
                me_str_append_n(text, at, 1);
            }
            is_replaced = is_replaced || n > 0;
            at += n == 0 ? 1 : n;
        }
    }
    for (uint32_t i = 0; i < r->n_fields && !is_replaced; i++) {
        me_str_append(text, " ");
        if (p->n_words > 0) {
            append_quoted(text, r->fields[i]);
        } else { // the words are commands
            me_str_append_n(text, r->fields[i].at, r->fields[i].length);
        }
    }
    me_str_append(text, "\n) </dev/null\n");
}

static void add_field(row *r, const char *at, size_t length)
{
    if (r->n_fields < FIELDS_MAX) {
        r->fields[r->n_fields++] = (field){at, length};
    }
}

/** A word of a source, in columns if they are told apart. */
static void add_word(const parallel *p, const char *word, row *r)
{
    const char *ends = p->separator == NULL        ? ""
                       : strlen(p->separator) == 1 ? p->separator
                                                   : " \t";
    for (;;) {
        const size_t n = *ends == '\0' ? strlen(word) : strcspn(word, ends);
        add_field(r, word, n);
        if (word[n] == '\0') {
            return;
        }
        word += n + (strlen(ends) == 1 ? 1 : strspn(word + n, ends));
    }
}

/** A word of each source: the last one changes first. @return false: there are no
 *  more */
static bool make_row(const parallel *p, uint64_t number, row *r)
{
    uint64_t rest = number;
    uint64_t at[SOURCES_MAX] = {0};
    for (uint32_t end = p->n_sources; end > 0;) {
        uint32_t begin = end - 1; // of those that go along with each other
        uint64_t count = p->sources[begin].words.count;
        while (p->sources[begin].pairing != CROSSED) {
            const uint64_t other = p->sources[begin - 1].words.count;
            const bool wraps = p->sources[begin].pairing == WRAPPED;
            count = (other > count) == wraps ? other : count;
            begin--;
        }
        for (uint32_t i = begin; count > 0 && i < end; i++) {
            const uint64_t own = p->sources[i].words.count;
            at[i] = own == 0 ? 0 : rest % count % own;
        }
        rest = count == 0 ? 1 : rest / count;
        end = begin;
    }
    for (uint32_t i = 0; rest == 0 && i < p->n_sources; i++) {
        if (p->sources[i].words.count > 0) {
            add_word(p, word_at(&p->sources[i].words, (uint32_t)at[i]), r);
        }
    }
    return rest == 0;
}

/** All commands, up to COMMANDS_MAX. @return false: there was no memory for the
 *  words of a source */
static bool append_commands(const parallel *p, me_str *text, bool *is_cut_out)
{
    const uint64_t step = p->n_args == 0 ? 1 : p->n_args;
    bool has_more = true;
    for (uint32_t i = 0; i < p->n_sources; i++) {
        if (me_str_status(&p->sources[i].words.text) != ME_OK) {
            return false;
        }
    }
    for (uint64_t i = 0; has_more && i < COMMANDS_MAX; i++) {
        row r = {.number = i + 1};
        uint64_t n = 0;
        while (n < step && make_row(p, i * step + n, &r)) {
            n++;
        }
        has_more = n == step;
        if (n > 0) {
            append_command(p, &r, text);
        }
    }
    row next = {.number = 0};
    *is_cut_out = has_more && make_row(p, COMMANDS_MAX * step, &next);
    return true;
}

static void say_cut(void)
{
    char text[64];
    char *words[] = {text};
    (void)snprintf(text, sizeof text, ME_GUISE_CUT " %d)", COMMANDS_MAX);
    (void)me_guise_nothing(1, words);
}

int me_guise_parallel(int argc, char **argv)
{
    static char bash[] = "bash";
    static char option[] = "-c";
    parallel p = {.end_of_line = '\n'};
    me_str text = {0};
    const bool is_read = read_command(&p, argc, argv);
    bool is_cut = false;
    const bool is_whole = is_read && append_commands(&p, &text, &is_cut);
    for (uint32_t i = 0; i < p.n_sources; i++) {
        me_words_fini(&p.sources[i].words);
    }
    if (!is_read) {
        return me_guise_nothing(argc, argv);
    }
    if (!is_whole || me_str_status(&text) != ME_OK) {
        me_str_fini(&text);
        return 1;
    }
    if (is_cut) {
        say_cut();
    }
    char *words[] = {bash, option, text.length == 0 ? option + 2 : text.text,
                     NULL};
    return me_guise_start(words); // which holds the text until it ends
}

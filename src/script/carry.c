/* SPDX-License-Identifier: BSD-3-Clause */
#include "script/carry.h"

#include "base/parse.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

void me_carry_begin(me_str *variable)
{
    char folder[PATH_MAX] = "";
    struct timespec now = {.tv_sec = 0};
    // The clock that the kernel stamps files by.
    (void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
    (void)getcwd(folder, sizeof folder);
    me_str_printf(variable, ME_CARRY_BEGIN "=%" PRId64 ".%ld %s",
                  (int64_t)now.tv_sec, now.tv_nsec, folder);
}

/** @return the folder where the script began; NULL: nobody knows */
static const char *read_begin(struct timespec *time_out)
{
    const char *text = getenv(ME_CARRY_BEGIN);
    char *end = NULL;
    if (text == NULL) {
        return NULL;
    }
    time_out->tv_sec = (time_t)strtoll(text, &end, 10);
    if (*end != '.') {
        return NULL;
    }
    time_out->tv_nsec = strtol(end + 1, &end, 10);
    return *end == ' ' ? end + 1 : NULL;
}

/** The value of `--flag=VALUE` or Hydra's `key=VALUE`, or the word. */
static const char *value_of(const char *word)
{
    static const char key[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUV"
                              "WXYZ0123456789_.+~@-";
    const size_t name = word[0] == '-' ? strcspn(word, "=") : strspn(word, key);
    return name > 0 && word[name] == '=' ? word + name + 1 : word;
}

/** Words that are called as files are. */
static bool may_be_file(const char *value)
{
    return value[0] != '-' && value[0] != '\0' &&
           strpbrk(value, "/.") != NULL && strlen(value) < PATH_MAX;
}

static bool is_later(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec > b->tv_sec ||
           (a->tv_sec == b->tv_sec && a->tv_nsec >= b->tv_nsec);
}

/** Does a name lead through a link that was made since? */
static bool is_linked(const char *path, const struct timespec *begin)
{
    char part[PATH_MAX];
    struct stat about;
    bool is_new = false;
    for (size_t at = 0; !is_new && path[at] != '\0';) {
        at += strspn(path + at, "/");
        at += strcspn(path + at, "/");
        (void)snprintf(part, sizeof part, "%.*s", (int)at, path);
        is_new = lstat(part, &about) == 0 && S_ISLNK(about.st_mode) &&
                 is_later(&about.st_ctim, begin);
    }
    return is_new;
}

void me_carry_word(const char *word, me_str *text)
{
    char folder[PATH_MAX];
    struct timespec time;
    struct stat about;
    const char *value = value_of(word);
    const char *begin = read_begin(&time);
    if (begin == NULL || !may_be_file(value) || stat(value, &about) != 0) {
        me_str_append(text, word);
        return;
    }
    me_str_append_n(text, word, (size_t)(value - word));
    if (is_linked(value, &time) && realpath(value, folder) != NULL) {
        me_str_append(text, folder);
    } else if (value[0] == '/' || getcwd(folder, sizeof folder) == NULL ||
               strcmp(folder, begin) == 0) {
        me_str_append(text, value);
    } else {
        me_str_printf(text, "%s/%s", folder, value);
    }
}

void me_carry_folder(me_words *record)
{
    char folder[PATH_MAX];
    struct timespec time;
    const char *begin = read_begin(&time);
    if (begin == NULL || getcwd(folder, sizeof folder) == NULL ||
        strcmp(folder, begin) == 0) {
        return;
    }
    me_str word = {0};
    me_str_printf(&word, ME_CARRY_FOLDER "%s", folder);
    me_words_add(record, me_str_text(&word));
    me_str_fini(&word);
}

/** Files as models and tokenizers have them, which may be large or binary. */
static bool is_of_model(const char *path)
{
    static const char *const ends[] = {".json",     ".model", ".txt",
                                       ".tiktoken", ".vocab", ".bpe"};
    bool is_one = false;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        is_one |= me_ends_with(path, ends[i]);
    }
    return is_one;
}

/** The files of one launch, as they are found. */
typedef struct cargo {
    struct timespec begin;
    me_words *record;
    me_str paths; /**< that are in it, each with a NUL behind it */
    size_t bytes;
} cargo;

static bool is_carried(const cargo *c, const char *path)
{
    bool is_in = false;
    for (size_t at = 0; !is_in && at < c->paths.length;
         at += strlen(c->paths.text + at) + 1) {
        is_in = strcmp(c->paths.text + at, path) == 0;
    }
    return is_in;
}

/** The bytes of a file that was written since. @return false: it is not carried */
static bool read_written(const char *path, const struct timespec *begin,
                         me_str *bytes)
{
    char block[4096];
    struct stat about;
    ssize_t n = 0;
    const bool is_model = is_of_model(path);
    const size_t most = is_model ? ME_CARRY_MODEL_BYTES : ME_CARRY_FILE_BYTES;
    bool is_fine = stat(path, &about) == 0 && S_ISREG(about.st_mode) &&
                   is_later(&about.st_ctim, begin) &&
                   (uint64_t)about.st_size <= most;
    if (!is_fine) {
        return false;
    }
    const int fd = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    while (fd >= 0 && is_fine && (n = read(fd, block, sizeof block)) > 0) {
        me_str_append_n(bytes, block, (size_t)n);
        is_fine = (is_model || memchr(block, '\0', (size_t)n) == NULL) &&
                  bytes->length <= most;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return fd >= 0 && n == 0 && is_fine;
}

/** A NUL ends a word of a record: it is \1\1 there, and \1 is \1\2. */
static void encode(const me_str *bytes, me_str *text)
{
    const char *at = bytes->text;
    const char *end = bytes->length == 0 ? at : at + bytes->length;
    while (at < end) {
        const char *next = at;
        while (next < end && *next != '\0' && *next != '\1') {
            next++;
        }
        me_str_append_n(text, at, (size_t)(next - at));
        if (next < end) {
            me_str_append(text, *next == '\0' ? "\1\1" : "\1\2");
            next++;
        }
        at = next;
    }
}

void me_carry_decode(const char *text, me_str *bytes)
{
    while (*text != '\0') {
        const size_t n = strcspn(text, "\1");
        me_str_append_n(bytes, text, n);
        text += n;
        if (*text == '\1' && text[1] != '\0') {
            me_str_append_n(bytes, text[1] == '\1' ? "" : "\1", 1);
            text++;
        }
        text += *text != '\0';
    }
}

/** A file that was there before, behind a link that was not. */
static void take_link(cargo *c, const char *path)
{
    char to[PATH_MAX];
    struct stat about;
    me_str word = {0};
    if (is_carried(c, path) || !is_linked(path, &c->begin) ||
        realpath(path, to) == NULL || stat(to, &about) != 0 ||
        !S_ISREG(about.st_mode)) {
        return;
    }
    me_str_append_n(&c->paths, path, strlen(path) + 1);
    me_str_printf(&word, ME_CARRY_LINK "%s\n%s", path, to);
    me_words_add(c->record, me_str_text(&word));
    me_str_fini(&word);
}

/** Take a file. @return its text, where it may name others; empty else */
static void take_file(cargo *c, const char *path, me_str *text)
{
    if (c->bytes >= ME_CARRY_ALL_BYTES || is_carried(c, path) ||
        !read_written(path, &c->begin, text) ||
        c->bytes + text->length > ME_CARRY_ALL_BYTES) {
        me_str_fini(text);
        take_link(c, path);
        return;
    }
    me_str word = {0};
    c->bytes += text->length;
    me_str_append_n(&c->paths, path, strlen(path) + 1);
    me_str_printf(&word, ME_CARRY_FILE "%s\n", path);
    encode(text, &word);
    me_words_add(c->record, me_str_text(&word));
    me_str_fini(&word);
    if (is_of_model(path) && !me_ends_with(path, ".json")) {
        me_str_fini(text);
    }
}

/** Files of a folder, as models and tokenizers have them. */
static void take_folder(cargo *c, const char *folder)
{
    DIR *files = opendir(folder);
    int count = 0;
    for (const struct dirent *entry = files == NULL ? NULL : readdir(files);
         entry != NULL && count < ME_CARRY_FOLDER_FILES;
         entry = readdir(files)) {
        char path[PATH_MAX];
        me_str text = {0};
        const int n =
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (n > 0 && (size_t)n < sizeof path && is_of_model(path)) {
            take_file(c, path, &text);
            count++;
        }
        me_str_fini(&text);
    }
    if (files != NULL) {
        (void)closedir(files);
    }
}

/** Files that a text names, such as a host file of accelerate's settings. */
static void take_named(cargo *c, const me_str *text)
{
    static const char between[] = " \t\r\n\"',:;=(){}[]";
    const char *at = me_str_text(text);
    if (text->length > ME_CARRY_FILE_BYTES / 16) {
        return; // nobody writes as much by hand
    }
    while (*at != '\0') {
        char path[PATH_MAX];
        at += strspn(at, between);
        const size_t n = strcspn(at, between);
        if (n > 0 && n < sizeof path && memchr(at, '/', n) != NULL) {
            me_str none = {0};
            memcpy(path, at, n);
            path[n] = '\0';
            take_file(c, path, &none);
            me_str_fini(&none);
        }
        at += n;
    }
}

void me_carry_files(const me_str *words, me_words *record)
{
    cargo c = {.record = record};
    if (read_begin(&c.begin) == NULL || words->text == NULL) {
        return;
    }
    for (size_t at = 0; at < words->length;
         at += strlen(words->text + at) + 1) {
        const char *value = value_of(words->text + at);
        const char *path = value[0] == '@' ? value + 1 : value; // @FILE
        struct stat about;
        me_str text = {0};
        if (path[0] == '-' || path[0] == '\0' || strlen(path) >= PATH_MAX ||
            stat(path, &about) != 0) {
            continue;
        }
        if (S_ISDIR(about.st_mode)) {
            take_folder(&c, path);
        } else {
            take_file(&c, path, &text);
            take_named(&c, &text);
        }
        me_str_fini(&text);
    }
    me_str_fini(&c.paths);
}

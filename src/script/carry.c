/* SPDX-License-Identifier: BSD-3-Clause */
#include "script/carry.h"

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

/** The value of `--flag=VALUE`, or the word. */
static const char *value_of(const char *word)
{
    const size_t name = strcspn(word, "=");
    return word[0] == '-' && word[name] == '=' ? word + name + 1 : word;
}

/** Words that are called as files are. */
static bool may_be_file(const char *value)
{
    return value[0] != '-' && value[0] != '\0' &&
           strpbrk(value, "/.") != NULL && strlen(value) < PATH_MAX;
}

void me_carry_word(const char *word, me_str *text)
{
    char folder[PATH_MAX];
    struct timespec time;
    struct stat about;
    const char *value = value_of(word);
    const char *begin = read_begin(&time);
    if (begin == NULL || value[0] == '/' || !may_be_file(value) ||
        getcwd(folder, sizeof folder) == NULL || strcmp(folder, begin) == 0 ||
        stat(value, &about) != 0) {
        me_str_append(text, word);
        return;
    }
    me_str_append_n(text, word, (size_t)(value - word));
    me_str_printf(text, "%s/%s", folder, value);
}

static bool is_later(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec > b->tv_sec ||
           (a->tv_sec == b->tv_sec && a->tv_nsec >= b->tv_nsec);
}

/** The text of a small file that was written since. @return false: it is none */
static bool read_written(const char *path, const struct timespec *begin,
                         me_str *text)
{
    char block[4096];
    struct stat about;
    ssize_t n = 0;
    bool is_text = true;
    if (stat(path, &about) != 0 || !S_ISREG(about.st_mode) ||
        !is_later(&about.st_ctim, begin) ||
        about.st_size > ME_CARRY_FILE_BYTES) {
        return false;
    }
    const int fd = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    while (fd >= 0 && is_text && (n = read(fd, block, sizeof block)) > 0) {
        is_text = memchr(block, '\0', (size_t)n) == NULL &&
                  text->length <= ME_CARRY_FILE_BYTES;
        me_str_append_n(text, block, (size_t)n);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return fd >= 0 && n == 0 && is_text;
}

void me_carry_files(const me_str *words, me_words *record)
{
    struct timespec begin;
    size_t sum = 0;
    if (read_begin(&begin) == NULL || words->text == NULL) {
        return;
    }
    for (size_t at = 0; at < words->length;
         at += strlen(words->text + at) + 1) {
        const char *value = value_of(words->text + at);
        const char *path = value[0] == '@' ? value + 1 : value; // @FILE
        me_str text = {0};
        if (path[0] != '-' && path[0] != '\0' && strlen(path) < PATH_MAX &&
            sum < ME_CARRY_ALL_BYTES && read_written(path, &begin, &text)) {
            me_str file = {0};
            sum += text.length;
            me_str_printf(&file, ME_CARRY_FILE "%s\n%s", path,
                          me_str_text(&text));
            me_words_add(record, me_str_text(&file));
            me_str_fini(&file);
        }
        me_str_fini(&text);
    }
}

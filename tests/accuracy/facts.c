/* SPDX-License-Identifier: BSD-3-Clause */
#include "facts.h"

#include "base/parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FACTS_TEXT = 1 << 17
};

uint64_t me_facts_digest(uint64_t digest, const char *text)
{
    for (; *text != '\0'; text++) {
        digest = (digest ^ (unsigned char)*text) * UINT64_C(0x00000100000001b3);
    }
    return digest;
}

/** Cut the next word off; NULL at the end. */
static char *next_word(char **at)
{
    char *word = *at + strspn(*at, " ");
    if (*word == '\0') {
        return NULL;
    }
    char *end = word + strcspn(word, " ");
    *at = *end == '\0' ? end : end + 1;
    *end = '\0';
    return word;
}

static bool read_u64(const char *word, uint64_t *value_out)
{
    return word != NULL && me_parse_u64(word, value_out) == ME_OK;
}

static bool read_hex(const char *word, uint64_t *value_out)
{
    char *end = NULL;
    if (word == NULL) {
        return false;
    }
    *value_out = strtoull(word, &end, 16);
    return *end == '\0' && end - word == 16;
}

/** NAME now peak [prompt now peak | compiles now | standin now peak] */
static bool read_point(facts_rank *rank, char *at)
{
    if (rank == NULL || rank->n_points == FACTS_POINTS) {
        return false;
    }
    facts_point *p = &rank->points[rank->n_points++];
    p->name = next_word(&at);
    if (!read_u64(next_word(&at), &p->measured_now) ||
        !read_u64(next_word(&at), &p->measured_peak)) {
        return false;
    }
    p->now = p->measured_now;
    p->peak = p->measured_peak;
    const char *word = next_word(&at);
    if (word != NULL && strcmp(word, "prompt") == 0) {
        return read_u64(next_word(&at), &p->now) &&
               read_u64(next_word(&at), &p->peak) &&
               p->now <= p->measured_now && p->peak <= p->measured_peak &&
               next_word(&at) == NULL;
    }
    if (word != NULL && strcmp(word, "compiles") == 0) {
        p->is_compiling = true;
        return read_u64(next_word(&at), &p->now) && p->now <= p->measured_now &&
               next_word(&at) == NULL;
    }
    p->is_stand_in = word != NULL && strcmp(word, "standin") == 0;
    return word == NULL ||
           (p->is_stand_in && read_u64(next_word(&at), &p->now) &&
            read_u64(next_word(&at), &p->peak) && next_word(&at) == NULL);
}

static bool read_words(facts *f, char *at)
{
    for (char *word = next_word(&at); word != NULL; word = next_word(&at)) {
        if (f->n_words == FACTS_WORDS) {
            return false;
        }
        f->words[f->n_words++] = word;
    }
    return f->n_words > 0;
}

static bool read_set(facts *f, char *at)
{
    const char *word = next_word(&at);
    if (word == NULL || f->n_sets == FACTS_SETS) {
        return false;
    }
    f->sets[f->n_sets++] = word;
    return next_word(&at) == NULL;
}

static bool begin_rank(facts *f, char *at)
{
    uint64_t rank = 0;
    if (f->n_ranks == FACTS_RANKS || !read_u64(next_word(&at), &rank)) {
        return false;
    }
    f->ranks[f->n_ranks++].rank = (int32_t)rank;
    return rank < (uint64_t)f->world;
}

static bool read_rank_line(facts_rank *rank, const char *key, char *at)
{
    if (rank == NULL) {
        return false;
    }
    if (strcmp(key, "parameters") == 0) {
        return read_u64(next_word(&at), &rank->parameters) &&
               read_u64(next_word(&at), &rank->modules) &&
               read_hex(next_word(&at), &rank->modules_digest);
    }
    if (strcmp(key, "allocated") == 0) {
        return read_u64(next_word(&at), &rank->allocated);
    }
    if (strcmp(key, "reserved") == 0) {
        return read_u64(next_word(&at), &rank->reserved);
    }
    if (strcmp(key, "device") == 0) {
        return read_u64(next_word(&at), &rank->device);
    }
    if (strcmp(key, "events") == 0) {
        return read_u64(next_word(&at), &rank->events) &&
               read_hex(next_word(&at), &rank->events_digest);
    }
    return strcmp(key, "point") == 0 && read_point(rank, at);
}

static bool read_line(facts *f, char *line)
{
    char *at = line;
    const char *key = next_word(&at);
    if (key == NULL || key[0] == '#') {
        return true;
    }
    if (strcmp(key, "world") == 0) {
        uint64_t world = 0;
        const bool is_read = read_u64(next_word(&at), &world);
        f->world = (int32_t)world;
        return is_read && world > 0 && world < 1000000;
    }
    if (strcmp(key, "args") == 0) {
        return read_words(f, at);
    }
    if (strcmp(key, "model") == 0) {
        f->model = next_word(&at);
        return f->model != NULL && next_word(&at) == NULL;
    }
    if (strcmp(key, "set") == 0) {
        return read_set(f, at);
    }
    if (strcmp(key, "rank") == 0) {
        return begin_rank(f, at);
    }
    return read_rank_line(f->n_ranks == 0 ? NULL : &f->ranks[f->n_ranks - 1],
                          key, at);
}

static bool read_lines(const char *path, facts *f)
{
    int number = 1;
    for (char *line = f->text; *line != '\0'; number++) {
        char *end = line + strcspn(line, "\n");
        char *next = *end == '\0' ? end : end + 1;
        *end = '\0';
        if (!read_line(f, line)) {
            (void)fprintf(stderr, "%s:%d: not a line of a case\n", path,
                          number);
            return false;
        }
        line = next;
    }
    return f->n_ranks > 0 && (f->n_words > 0 || f->model != NULL);
}

bool me_facts_read(const char *path, facts *facts_out)
{
    *facts_out = (facts){.world = 0};
    FILE *stream = fopen(path, "r");
    if (stream == NULL) {
        (void)fprintf(stderr, "%s: cannot be read\n", path);
        return false;
    }
    facts_out->text = calloc(FACTS_TEXT, 1);
    bool is_read = facts_out->text != NULL;
    if (is_read) {
        (void)fread(facts_out->text, 1, FACTS_TEXT - 1, stream);
        is_read = feof(stream) != 0 && read_lines(path, facts_out);
    }
    (void)fclose(stream);
    return is_read;
}

void me_facts_fini(facts *f)
{
    free(f->text);
    f->text = NULL;
}

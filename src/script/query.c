/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions of a script that have an answer: how many cards, which hosts. */
#include "base/parse.h"
#include "base/str.h"
#include "script/act_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    CARDS_MAX = 64,
    HOSTS_MAX = 1 << 16
};

/** To standard output; a reader that went away does not matter. */
static int answer(me_str *text)
{
    const char *at = me_str_text(text);
    size_t left = strlen(at);
    while (left > 0) {
        const ssize_t n = write(STDOUT_FILENO, at, left);
        if (n <= 0) {
            break;
        }
        at += n;
        left -= (size_t)n;
    }
    me_str_fini(text);
    return 0;
}

/** What is known of the job's card. */
typedef struct card {
    char name[64];
    uint64_t mib;
    uint64_t count; /**< of a node */
} card;

static card read_card(void)
{
    card c = {.name = "NVIDIA GPU", .count = 8};
    const char *text = getenv(ME_GUISE_CARD);
    const char *node = getenv("SLURM_GPUS_ON_NODE");
    if (text != NULL) {
        const size_t name = strcspn(text, "|");
        (void)snprintf(c.name, sizeof c.name, "%.*s", (int)name, text);
        if (text[name] != '|' ||
            me_parse_u64(text + name + 1, &c.mib) != ME_OK) {
            c.mib = 0;
        }
    }
    if (node != NULL && me_parse_u64(node, &c.count) != ME_OK) {
        c.count = 8;
    }
    c.count = c.count > CARDS_MAX ? CARDS_MAX : c.count;
    return c;
}

void me_guise_tell_cards(void)
{
    char count[24];
    (void)snprintf(count, sizeof count, "%" PRIu64, read_card().count);
    (void)setenv(ME_GUISE_COUNT_OF_CARDS, count, 1);
}

static void add_field(const char *field, const card *c, uint64_t i, bool units,
                      me_str *text)
{
    if (strcmp(field, "name") == 0 || strcmp(field, "gpu_name") == 0) {
        me_str_append(text, c->name);
    } else if (strcmp(field, "index") == 0) {
        me_str_printf(text, "%" PRIu64, i);
    } else if (strcmp(field, "count") == 0) {
        me_str_printf(text, "%" PRIu64, c->count);
    } else if (strcmp(field, "memory.total") == 0 ||
               strcmp(field, "memory.free") == 0) {
        me_str_printf(text, "%" PRIu64 "%s", c->mib, units ? " MiB" : "");
    } else if (strcmp(field, "memory.used") == 0) {
        me_str_printf(text, "0%s", units ? " MiB" : "");
    } else {
        me_str_append(text, "[N/A]");
    }
}

/** What nvidia-smi is asked. */
typedef struct question {
    const char *fields; /**< of `--query-gpu`; NULL: none */
    const char *format;
    const char *ids; /**< of `-i`, with commas between them; NULL: all cards */
    bool is_list;    /**< `-L` */
} question;

/** Does `-i` name a card? By its index; of serial numbers, addresses and the like,
 *  which are not known here, each is taken for a card of its own. */
static bool is_asked(const char *ids, uint64_t index)
{
    char number[24];
    const int n = snprintf(number, sizeof number, "%" PRIu64, index);
    uint64_t place = 0;
    if (ids == NULL) {
        return true;
    }
    for (const char *at = ids; *at != '\0'; place++) {
        const size_t length = strcspn(at, ",");
        const bool is_index = strspn(at, "0123456789") == length && length < 4;
        if (is_index ? length == (size_t)n && strncmp(at, number, length) == 0
                     : place == index) {
            return true;
        }
        at += length + (at[length] == ',');
    }
    return false;
}

/** A line a card. */
static int list_cards(const question *q)
{
    me_str text = {0};
    const card c = read_card();
    for (uint64_t i = 0; i < c.count; i++) {
        if (is_asked(q->ids, i)) {
            me_str_printf(&text,
                          "GPU %" PRIu64 ": %s (UUID: GPU-%" PRIu64 ")\n", i,
                          c.name, i);
        }
    }
    return answer(&text);
}

/** `--query-gpu=FIELDS --format=csv,…`: a line a card. */
static int query(const question *q)
{
    me_str text = {0};
    const card c = read_card();
    if (strstr(q->format, "noheader") == NULL) {
        me_str_printf(&text, "%s\n", q->fields);
    }
    for (uint64_t i = 0; i < c.count; i++) {
        for (const char *at = is_asked(q->ids, i) ? q->fields : "";
             *at != '\0';) {
            char field[32];
            const size_t n = strcspn(at, ",");
            (void)snprintf(field, sizeof field, "%.*s", (int)n, at);
            add_field(field, &c, i, strstr(q->format, "nounits") == NULL,
                      &text);
            at += n + (at[n] == ',');
            me_str_append(&text, *at == '\0' ? "\n" : ", ");
        }
    }
    return answer(&text);
}

/** The value of an option behind its name and `=`, or in the next word; NULL: it is
 *  another option. */
static const char *value_of(const char *name, char *const *argv)
{
    const size_t n = strlen(name);
    if (strncmp(argv[0], name, n) != 0) {
        return NULL;
    }
    if (argv[0][n] == '\0') {
        return argv[1] == NULL ? "" : argv[1];
    }
    return argv[0][n] == '=' ? argv[0] + n + 1 : NULL;
}

int me_guise_cards(int argc, char **argv)
{
    question q = {.format = ""};
    for (int i = 1; i < argc; i++) {
        const struct {
            const char *name;
            const char **value;
        } options[] = {{"--query-gpu", &q.fields},
                       {"--format", &q.format},
                       {"-i", &q.ids},
                       {"--id", &q.ids}};

        for (size_t k = 0; k < sizeof options / sizeof options[0]; k++) {
            const char *value = value_of(options[k].name, argv + i);
            *options[k].value = value == NULL ? *options[k].value : value;
        }
        q.is_list |=
            strcmp(argv[i], "-L") == 0 || strcmp(argv[i], "--list-gpus") == 0;
    }
    if (q.is_list) {
        return list_cards(&q);
    }
    return q.fields == NULL ? me_guise_nothing(argc, argv) : query(&q);
}

/** `[1-3,7]` of `node[1-3,7]`, each with what stands before it. */
static void add_range(const char *before, size_t length, const char *range,
                      me_str *text)
{
    const char *at = range;
    int n_hosts = 0;
    while (*at != '\0' && *at != ']') {
        char *end = NULL;
        const long first = strtol(at, &end, 10);
        const int width = (int)(end - at);
        const long last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        for (long i = first; i <= last && n_hosts < HOSTS_MAX; i++, n_hosts++) {
            me_str_printf(text, "%.*s%0*ld\n", (int)length, before, width, i);
        }
        if (*end != ',') {
            break;
        }
        at = end + 1;
    }
}

/** `scontrol show hostnames [LIST]`; anything else has no answer. */
int me_guise_hosts(int argc, char **argv)
{
    const char *list = getenv("SLURM_JOB_NODELIST");
    if (argc < 3 || strcmp(argv[1], "show") != 0 ||
        strncmp(argv[2], "hostname", 8) != 0) {
        return me_guise_nothing(argc, argv);
    }
    list = argc > 3 ? argv[3] : list;
    me_str text = {0};
    while (list != NULL && *list != '\0') {
        const size_t name = strcspn(list, ",[");
        const char *next = list + name;
        if (*next == '[') {
            add_range(list, name, next + 1, &text);
            next += strcspn(next, "]");
            next += *next == ']';
        } else {
            me_str_printf(&text, "%.*s\n", (int)name, list);
        }
        next += *next == ',';
        list = next;
    }
    return answer(&text);
}

/** The host's name; of addresses the one that every host has. */
int me_guise_hostname(int argc, char **argv)
{
    char name[256] = "localhost";
    me_str text = {0};
    (void)gethostname(name, sizeof name - 1);
    const char *option = argc > 1 ? argv[1] : "";
    if (strcmp(option, "-i") == 0 || strcmp(option, "-I") == 0 ||
        strcmp(option, "--ip-address") == 0 ||
        strcmp(option, "--all-ip-addresses") == 0) {
        me_str_append(&text, "127.0.0.1\n");
    } else if (strcmp(option, "-s") == 0 || strcmp(option, "--short") == 0) {
        me_str_printf(&text, "%.*s\n", (int)strcspn(name, "."), name);
    } else {
        me_str_printf(&text, "%s\n", name);
    }
    return answer(&text);
}

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
    char number[24];
    if (text != NULL) {
        const size_t name = strcspn(text, "|");
        const char *mib = text + name + (text[name] == '|');
        const size_t length = strcspn(mib, "|");
        (void)snprintf(c.name, sizeof c.name, "%.*s", (int)name, text);
        (void)snprintf(number, sizeof number, "%.*s", (int)length, mib);
        if (me_parse_u64(number, &c.mib) != ME_OK) {
            c.mib = 0;
        }
    }
    if (node != NULL && me_parse_u64(node, &c.count) != ME_OK) {
        c.count = 8;
    }
    c.count = c.count > CARDS_MAX ? CARDS_MAX : c.count;
    return c;
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

/** `--query-gpu=FIELDS --format=csv,…`: a line a card. */
static int query(const char *fields, const char *format)
{
    me_str text = {0};
    const card c = read_card();
    if (strstr(format, "noheader") == NULL) {
        me_str_printf(&text, "%s\n", fields);
    }
    for (uint64_t i = 0; i < c.count; i++) {
        for (const char *at = fields; *at != '\0';) {
            char field[32];
            const size_t n = strcspn(at, ",");
            (void)snprintf(field, sizeof field, "%.*s", (int)n, at);
            add_field(field, &c, i, strstr(format, "nounits") == NULL, &text);
            at += n + (at[n] == ',');
            me_str_append(&text, *at == '\0' ? "" : ", ");
        }
        me_str_append(&text, "\n");
    }
    return answer(&text);
}

int me_guise_cards(int argc, char **argv)
{
    const char *fields = NULL;
    const char *format = "";
    for (int i = 1; i < argc; i++) {
        const char *value = strchr(argv[i], '=');
        if (strcmp(argv[i], "-L") == 0 || strcmp(argv[i], "--list-gpus") == 0) {
            me_str text = {0};
            const card c = read_card();
            for (uint64_t j = 0; j < c.count; j++) {
                me_str_printf(&text,
                              "GPU %" PRIu64 ": %s (UUID: GPU-%" PRIu64 ")\n",
                              j, c.name, j);
            }
            return answer(&text);
        }
        if (strncmp(argv[i], "--query-gpu", 11) == 0 && value != NULL) {
            fields = value + 1;
        } else if (strncmp(argv[i], "--format", 8) == 0 && value != NULL) {
            format = value + 1;
        }
    }
    return fields == NULL ? me_guise_nothing(argc, argv)
                          : query(fields, format);
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

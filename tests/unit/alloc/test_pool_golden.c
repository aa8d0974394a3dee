/* SPDX-License-Identifier: BSD-3-Clause */
/* Sequences that PyTorch itself went through: same addresses, same counters,
 * same trace. */
#include "alloc/pool.h"
#include "base/alloc.h"
#include "support/test.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINE_BYTES = 4096,
    MAX_FIELDS = 64,
    MAX_IDS = 1024,
    MAX_ENTRIES = 256,
    N_COUNTERS = 13,
    FIRST_COUNTER = 5
};

/** One sequence and where its replay is. */
typedef struct golden {
    const char *name;
    me_pool *pool;
    me_pool_options options;
    uint64_t addresses[MAX_FIELDS];
    size_t n_addresses;
    size_t next_address;
    me_pool_block blocks[MAX_IDS];
    uint64_t counters[N_COUNTERS];
    me_pool_trace trace[MAX_ENTRIES]; /**< of the last call */
    size_t n_trace;
    size_t at_trace; /**< compared so far */
    int line;
} golden;

static bool place(void *self, uint64_t bytes, uint64_t *address_out)
{
    (void)bytes;
    golden *g = self;
    assert_in_range(g->next_address + 1, 1, g->n_addresses);
    *address_out = g->addresses[g->next_address++];
    return true;
}

static void on_trace(void *self, const me_pool_trace *entry)
{
    golden *g = self;
    assert_in_range(g->n_trace, 0, MAX_ENTRIES - 1);
    g->trace[g->n_trace++] = *entry;
}

static uint64_t number(const char *text)
{
    char *end = NULL;
    const uint64_t value = strtoull(text, &end, 10);
    assert_true(*text != '\0' && *end == '\0');
    return value;
}

static size_t split_fields(char *line, char *fields[MAX_FIELDS])
{
    size_t n = 0;
    line[strcspn(line, "\n")] = '\0';
    for (char *at = line; at != NULL && n < MAX_FIELDS; n++) {
        fields[n] = at;
        at = strchr(at, '\t');
        if (at != NULL) {
            *at++ = '\0';
        }
    }
    return n;
}

static bool is_header(golden *g, char *fields[MAX_FIELDS], size_t n)
{
    if (strcmp(fields[0], "conf") == 0) {
        const char *text = strcmp(fields[1], "-") == 0 ? NULL : fields[1];
        assert_int_equal(me_alloc_conf_parse(text, NULL, &g->options.conf),
                         ME_OK);
    } else if (strcmp(fields[0], "limit") == 0) {
        g->options.limit_bytes = number(fields[1]);
    } else if (strcmp(fields[0], "total") == 0) {
        g->options.device_total_bytes = number(fields[1]);
    } else if (strcmp(fields[0], "driver") == 0) {
        for (size_t i = 1; i < n; i++) {
            g->addresses[g->n_addresses++] = number(fields[i]);
        }
        assert_int_equal(me_pool_create(&g->options, &g->pool), ME_OK);
    } else {
        return false;
    }
    return true;
}

static void check_counters(const golden *g)
{
    me_pool_stats s;
    me_pool_read(g->pool, &s);
    const uint64_t now[N_COUNTERS] = {
        s.stat[ME_POOL_ALLOCATED_BYTES][ME_POOL_ALL].current,
        s.stat[ME_POOL_RESERVED_BYTES][ME_POOL_ALL].current,
        s.stat[ME_POOL_REQUESTED_BYTES][ME_POOL_ALL].current,
        s.stat[ME_POOL_INACTIVE_SPLIT_BYTES][ME_POOL_ALL].current,
        s.stat[ME_POOL_ACTIVE][ME_POOL_ALL].current,
        s.stat[ME_POOL_SEGMENT][ME_POOL_ALL].current,
        s.stat[ME_POOL_INACTIVE_SPLIT][ME_POOL_ALL].current,
        s.num_alloc_retries,
        s.num_ooms,
        s.num_device_alloc,
        s.num_device_free,
        s.stat[ME_POOL_ALLOCATED_BYTES][ME_POOL_SMALL].current,
        s.stat[ME_POOL_RESERVED_BYTES][ME_POOL_SMALL].current,
    };
    for (int i = 0; i < N_COUNTERS; i++) {
        if (now[i] != g->counters[i]) {
            print_error("%s:%d: counter %d\n", g->name, g->line, i);
        }
        assert_int_equal(now[i], g->counters[i]);
    }
    assert_int_equal(s.stat[ME_POOL_ACTIVE_BYTES][ME_POOL_ALL].current, now[0]);
    assert_int_equal(s.stat[ME_POOL_ALLOCATION][ME_POOL_ALL].current, now[4]);
    assert_int_equal(s.stat[ME_POOL_RESERVED_BYTES][ME_POOL_LARGE].current,
                     now[1] - now[12]);
}

static void check_entry(golden *g, const char *action, const char *address,
                        uint64_t bytes, uint64_t stream)
{
    assert_in_range(g->at_trace + 1, 1, g->n_trace);
    const me_pool_trace *t = &g->trace[g->at_trace++];
    assert_string_equal(me_pool_action_name(t->action), action);
    if (strcmp(address, "-") != 0) {
        assert_int_equal(t->address, number(address));
    }
    assert_int_equal(t->bytes, bytes);
    assert_int_equal(t->stream, stream);
}

static void call(golden *g, char *fields[MAX_FIELDS])
{
    const size_t id = number(fields[1]);
    const uint64_t bytes = number(fields[2]);
    const uint64_t stream = number(fields[3]);
    assert_in_range(id, 0, MAX_IDS - 1);
    g->n_trace = 0;
    g->at_trace = 0;
    me_diag diag = {0};
    if (fields[0][0] == 'A') {
        assert_int_equal(me_pool_alloc(g->pool, bytes, stream, &g->blocks[id]),
                         ME_OK);
        /* its own entry comes last, after those of segments */
        const size_t last = g->n_trace - 1;
        assert_int_equal(g->trace[last].address, number(fields[4]));
        assert_int_equal(g->trace[last].bytes, bytes);
        g->n_trace = last;
    } else if (fields[0][0] == 'O') {
        me_pool_block none = ME_POOL_NO_BLOCK;
        assert_int_equal(me_pool_alloc(g->pool, bytes, stream, &none),
                         ME_ERR_CAPACITY);
    } else if (fields[0][0] == 'F') {
        me_pool_free(g->pool, g->blocks[id]);
        assert_int_equal(g->n_trace, 2);
        g->n_trace = 0;
    } else {
        assert_int_equal(me_pool_empty_cache(g->pool), ME_OK);
    }
    assert_int_equal(me_pool_check(g->pool, &diag), ME_OK);
    for (size_t i = 0; i < N_COUNTERS; i++) {
        const char *change = fields[FIRST_COUNTER + i];
        if (strcmp(change, ".") != 0) {
            g->counters[i] += (uint64_t)strtoll(change, NULL, 10);
        }
    }
    check_counters(g);
}

static void replay(const char *name)
{
    char path[LINE_BYTES];
    (void)snprintf(path, sizeof path, "%s/%s.tsv", ME_GOLDEN_FOLDER, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    golden *g = me_alloc(1, sizeof *g, "test.golden");
    assert_non_null(g);
    g->name = name;
    g->options.place = place;
    g->options.place_self = g;
    g->options.on_trace = on_trace;
    g->options.trace_self = g;
    char line[LINE_BYTES];
    char *fields[MAX_FIELDS];
    while (fgets(line, sizeof line, file) != NULL) {
        g->line++;
        const size_t n = line[0] == '#' ? 0 : split_fields(line, fields);
        if (n == 0 || is_header(g, fields, n)) {
            continue;
        }
        if (fields[0][0] == '+') {
            check_entry(g, fields[1], fields[2], number(fields[3]),
                        number(fields[4]));
            continue;
        }
        assert_int_equal(g->at_trace, g->n_trace);
        call(g, fields);
    }
    assert_int_equal(g->at_trace, g->n_trace);
    assert_int_equal(g->next_address, g->n_addresses);
    me_pool_destroy(g->pool);
    me_free(g);
    (void)fclose(file);
}

#define SEQUENCES(X)                                                           \
    X(default)                                                                 \
    X(expand)                                                                  \
    X(expand_frac)                                                             \
    X(frac)                                                                    \
    X(gc)                                                                      \
    X(hand)                                                                    \
    X(hand_expand)                                                             \
    X(largeseg)                                                                \
    X(maxsplit)                                                                \
    X(maxsplit_frac)                                                           \
    X(maxsplit_round)                                                          \
    X(round4)                                                                  \
    X(roundlist)

#define DEFINE_TEST(name)                                                      \
    static void test_golden__##name(void **state)                              \
    {                                                                          \
        (void)state;                                                           \
        replay(#name);                                                         \
    }

SEQUENCES(DEFINE_TEST)

#define LIST_TEST(name) cmocka_unit_test(test_golden__##name),

int main(void)
{
    const struct CMUnitTest tests[] = {SEQUENCES(LIST_TEST)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

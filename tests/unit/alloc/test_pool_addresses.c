/* SPDX-License-Identifier: BSD-3-Clause */
/* Segments against the addresses that CUDA gave: each recording of
 * tests/golden/allocator/addresses is run again, and every segment must lie at
 * the same place of its chunk and on the same side of every other one. */
#include "alloc/device_memory.h"
#include "alloc/pool_internal.h"
#include "support/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_LINE = 256,
    MAX_FIELDS = 4,
    MAX_SEGMENTS = 300
};

#define CHUNK (32 * MIB)

/** A segment: where it was and where it is. */
typedef struct segment {
    uint64_t measured;
    uint64_t address;
    uint32_t extent;
} segment;

typedef struct run {
    me_pool *pool;
    me_device_memory memory;
    segment segments[MAX_SEGMENTS];
    size_t n_segments;
    size_t n_checked;
    int line;
} run;

static void on_take(void *self, me_pool_taker taker, uint64_t bytes)
{
    run *r = self;
    assert_int_equal(me_pool_take(r->pool, taker, bytes), ME_OK);
}

static void begin(run *r)
{
    const me_pool_options options = {.conf = me_alloc_conf_default()};
    const me_nccl_setup setup = me_nccl_setup_default();
    me_device_card card;
    assert_int_equal(
        me_device_card_load(ME_CARDS_FOLDER "/h100-80gb.cfg", NULL, &card),
        ME_OK);
    assert_int_equal(me_pool_create(&options, &r->pool), ME_OK);
    me_device_memory_begin(&r->memory, &card, &setup);
    r->memory.on_take = on_take;
    r->memory.take_self = r;
}

static void check(run *r, const segment *s)
{
    if (s->measured % CHUNK != s->address % CHUNK) {
        fail_msg("line %d: at %" PRIu64 " MiB of its chunk, not %" PRIu64,
                 r->line, s->address % CHUNK / MIB, s->measured % CHUNK / MIB);
    }
    for (size_t i = 0; i < r->n_segments; i++) {
        const segment *other = &r->segments[i];
        if ((s->measured < other->measured) != (s->address < other->address)) {
            fail_msg("line %d: on the wrong side of a segment", r->line);
        }
    }
    r->n_checked++;
}

static void place(run *r, uint64_t bytes, uint64_t measured)
{
    segment s = {.measured = measured};
    assert_true(r->n_segments < MAX_SEGMENTS);
    me_device_memory_settle(&r->memory);
    assert_int_equal(
        me_pool_driver_place(r->pool, bytes, &s.address, &s.extent), ME_OK);
    check(r, &s);
    r->segments[r->n_segments++] = s;
}

static void give_back(run *r, uint64_t measured)
{
    for (size_t i = 0; i < r->n_segments; i++) {
        if (r->segments[i].measured == measured) {
            me_pool_driver_free(r->pool, r->segments[i].extent);
            r->segments[i] = r->segments[--r->n_segments];
            return;
        }
    }
    fail_msg("line %d: nothing is there", r->line);
}

static me_collective find_collective(const char *name)
{
    for (int i = 0; i < ME_COLLECTIVE_COUNT; i++) {
        if (strcmp(me_collective_name((me_collective)i), name) == 0) {
            return (me_collective)i;
        }
    }
    fail_msg("%s is no collective", name);
    return ME_COLLECTIVE_COUNT;
}

static void call(run *r, char *fields[MAX_FIELDS], bool is_lone)
{
    const int32_t size = (int32_t)strtol(fields[3], NULL, 10);
    const me_device_call c = {
        .group = (me_group_kind)strtol(fields[2], NULL, 10),
        .shape = {.size = size, .local = size},
        .collective = find_collective(fields[1]),
        .peer = 1,
        .is_lone = is_lone,
    };
    assert_int_equal(me_device_memory_call(&r->memory, &c, NULL), ME_OK);
}

static void read_line(run *r, char *line)
{
    char *fields[MAX_FIELDS] = {NULL};
    size_t n = 0;
    char *rest = line;
    for (char *at = line; at != NULL && n < MAX_FIELDS; at = rest) {
        rest = strchr(at, '\t');
        fields[n++] = at;
        if (rest != NULL) {
            *rest++ = '\0';
        }
    }
    const uint64_t bytes = n == 3 ? strtoull(fields[1], NULL, 10) * MIB : 0;
    const uint64_t address = n == 3 ? strtoull(fields[2], NULL, 10) * MIB : 0;
    if (strcmp(fields[0], "place") == 0) {
        place(r, bytes, address);
    } else if (strcmp(fields[0], "map") == 0) {
        on_take(r, ME_POOL_TAKER_MAPPED, bytes);
    } else if (strcmp(fields[0], "free") == 0) {
        give_back(r, address);
    } else if (strcmp(fields[0], "kernel") == 0) {
        me_device_memory_kernel(&r->memory);
        me_device_memory_settle(&r->memory);
    } else if (strcmp(fields[0], "cublas") == 0) {
        me_device_memory_settle(&r->memory);
        me_device_memory_matmul(&r->memory, r->memory.has_cublas[0] ? 1 : 0);
    } else {
        call(r, fields, strcmp(fields[0], "lone") == 0);
    }
}

static void run_file(const char *name)
{
    static run r;
    char path[MAX_LINE * 4];
    char line[MAX_LINE];
    (void)snprintf(path, sizeof path, "%s/addresses/%s.tsv", ME_GOLDEN_FOLDER,
                   name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    r = (run){.line = 0};
    begin(&r);
    while (fgets(line, sizeof line, file) != NULL) {
        r.line++;
        line[strcspn(line, "\n")] = '\0';
        if (line[0] != '#') {
            read_line(&r, line);
        }
    }
    (void)fclose(file);
    assert_int_equal(me_pool_check(r.pool, NULL), ME_OK);
    me_pool_destroy(r.pool);
    assert_true(r.n_checked > 30);
}

/** X(name): the recordings. */
#define RECORDINGS(X)                                                          \
    X(cuda_frees_1)                                                            \
    X(cuda_frees_2)                                                            \
    X(cuda_frees_3)                                                            \
    X(cuda_maps_1)                                                             \
    X(cuda_maps_2)                                                             \
    X(cuda_maps_3)                                                             \
    X(nccl_ranks2_a)                                                           \
    X(nccl_ranks2_b)                                                           \
    X(nccl_ranks2_c)

#define TEST(name)                                                             \
    static void test_addresses__##name(void **state)                           \
    {                                                                          \
        (void)state;                                                           \
        run_file(#name);                                                       \
    }
RECORDINGS(TEST)

#define ENTRY(name) cmocka_unit_test(test_addresses__##name),

int main(void)
{
    const struct CMUnitTest tests[] = {RECORDINGS(ENTRY)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "diff/diff.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    N = 20000
};

/** The log of ranks that end in no order, twice. */
static me_profile *read_ranks(int first, int n, int step)
{
    char path[] = "/tmp/memest_profileXXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    assert_non_null(file);
    for (int i = 0; i < 2 * n; i++) {
        const int rank = first + (int)((long)i * step % n);
        (void)fprintf(file,
                      "[Rank %d] (after 2 iterations) memory (MB) | allocated: "
                      "%d.00 | max allocated: %d.00\n",
                      rank, rank, rank + i / n);
    }
    assert_int_equal(fclose(file), 0);
    me_profile *p = NULL;
    me_diag diag = {.status = ME_OK};
    assert_int_equal(me_profile_read(path, NULL, &diag, &p), ME_OK);
    unlink(path);
    return p;
}

static void test_profile__many_ranks(void **state)
{
    (void)state;
    me_profile *a = read_ranks(0, N, 7919);
    me_profile *b = read_ranks(N / 2, N, 17);
    me_diff diff;
    me_diag diag = {.status = ME_OK};

    assert_int_equal(a->n_ranks, N);
    for (int32_t rank = 0; rank < N; rank++) {
        const me_profile_rank *r = me_profile_rank_find(a, rank);
        assert_non_null(r);
        assert_int_equal(r->rank, rank);
        assert_int_equal(r->bytes[ME_QUANTITY_ALLOCATED_PEAK],
                         (uint64_t)(rank + 1) << 20);
    }
    assert_null(me_profile_rank_find(a, N));
    assert_null(me_profile_rank_find(a, -1));

    assert_int_equal(me_diff_init(a, b, -1, &diag, &diff), ME_OK);
    assert_int_equal(diff.n_pairs, N / 2);
    assert_int_equal(diff.n_alone[0], N / 2);
    assert_int_equal(diff.n_alone[1], N / 2);
    assert_int_equal(diff.largest_bytes, 0);
    for (uint32_t i = 0; i < diff.n_pairs; i++) {
        assert_int_equal(diff.pairs[i].rank, N / 2 + (int)i);
    }
    me_diff_fini(&diff);
    me_profile_destroy(a);
    me_profile_destroy(b);
}

/** @return NULL, with the reason: it is refused */
static me_profile *read_text(const char *text, me_diag *diag)
{
    char path[] = "/tmp/memest_profileXXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    me_profile *p = NULL;
    *diag = (me_diag){.status = ME_OK};
    const me_status status = me_profile_read(path, NULL, diag, &p);
    assert_true((status == ME_OK) == (p != NULL));
    unlink(path);
    return p;
}

#define LINE "[Rank 0] (after 2 iterations) memory (MB) | allocated: "
#define CSV  "index, memory.used [MiB]\n0, 7 MiB\n"
#define BARE "index, memory.used [MiB]\n0, 7\n"

/** What stands in a text; its number of MiB has at most two decimals. */
static const struct {
    const char *text;
    me_quantity quantity;
    int32_t rank;
    double mib; /**< 0: the rank has none */
} texts[] = {
    {LINE "2000.50 | max allocated: 2840.5", ME_QUANTITY_ALLOCATED_END, 0,
     2000.5},
    // a number that may go on is none; two decimals are all there are
    {LINE "2000.50 | max allocated: 2840.5", ME_QUANTITY_ALLOCATED_PEAK, 0, 0},
    {LINE "2000.50 | max allocated: 28", ME_QUANTITY_ALLOCATED_PEAK, 0, 0},
    {LINE "2000.50 | max allocated: ", ME_QUANTITY_ALLOCATED_PEAK, 0, 0},
    {LINE "2000.50 | max allocated: 2840.", ME_QUANTITY_ALLOCATED_PEAK, 0, 0},
    {LINE "2000.50 | max allocated: 2840.50", ME_QUANTITY_ALLOCATED_PEAK, 0,
     2840.5},
    {LINE "2000.50 | max allocated: 2840.5\n", ME_QUANTITY_ALLOCATED_PEAK, 0,
     2840.5},
    {LINE "2000.50 | max allocated: 28 ", ME_QUANTITY_ALLOCATED_PEAK, 0, 28},
    {CSV "0, 76", ME_QUANTITY_DEVICE_PEAK, 0, 7},
    {CSV "0, 7600 MiB", ME_QUANTITY_DEVICE_PEAK, 0, 7600},
    {BARE "0, 76", ME_QUANTITY_DEVICE_PEAK, 0, 7},
    {BARE "0, 76\n", ME_QUANTITY_DEVICE_PEAK, 0, 76},
    {"memory.used [MiB], index\n7, 0\n76, 1", ME_QUANTITY_DEVICE_PEAK, 1, 0},
    {"memory.used [MiB], index\n7, 0\n76, 1\n", ME_QUANTITY_DEVICE_PEAK, 1, 76},
    {"memory.used [MiB], pci.bus_id\n7, 0:3B:00.0\n76, 0:3B:00.",
     ME_QUANTITY_DEVICE_PEAK, 1, 0},
    {"# gpu fb\n# Idx MB\n 0 7\n 0 76", ME_QUANTITY_DEVICE_PEAK, 0, 7},
    {"# gpu fb\n# Idx MB\n 0 7\n 0 76\n", ME_QUANTITY_DEVICE_PEAK, 0, 76},
    {"# fb gpu\n# MB Idx\n 7 0\n 76 1", ME_QUANTITY_DEVICE_PEAK, 1, 0},
    // colours, and what clears a line
    {"\033[32m" LINE "\033[1;36m2000.5\033[0m | max allocated: 1.0\033[0m\n",
     ME_QUANTITY_ALLOCATED_END, 0, 2000.5},
    {"\033[2K" LINE "2.0 | max allocated: 2840.0\033[0m\n",
     ME_QUANTITY_ALLOCATED_PEAK, 0, 2840},
    {"\033[K[Rank \033[36m3\033[0m] (a) memory \033[1m(\033[0mMB) | allocated: "
     "2000.5\n",
     ME_QUANTITY_ALLOCATED_END, 3, 2000.5},
    // behind a progress bar, and in Windows' lines
    {" 10%|#  | 1/9\r" LINE "2000.5\n", ME_QUANTITY_ALLOCATED_END, 0, 2000.5},
    {LINE "2000.5\r\n", ME_QUANTITY_ALLOCATED_END, 0, 2000.5},
};

static void test_profile__last_numbers_may_be_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        me_diag diag;
        me_profile *p = read_text(texts[i].text, &diag);
        assert_string_equal(diag.text, "");
        assert_non_null(p);
        const me_profile_rank *r = me_profile_rank_find(p, texts[i].rank);
        const double bytes = r == NULL || !r->has[texts[i].quantity]
                                 ? 0
                                 : (double)r->bytes[texts[i].quantity];
        if (bytes != texts[i].mib * 1048576) {
            fail_msg("%s: %f bytes", texts[i].text, bytes);
        }
        me_profile_destroy(p);
    }
}

/* Nothing but a number that may go on: it is said. */
static void test_profile__only_a_cut_number(void **state)
{
    (void)state;
    static const char *const cut[] = {LINE "2000.5",
                                      "index, memory.used [MiB]\n0, 76",
                                      "# gpu fb\n# Idx MB\n 0 7"};
    for (size_t i = 0; i < sizeof cut / sizeof cut[0]; i++) {
        me_diag diag;
        assert_null(read_text(cut[i], &diag));
        assert_non_null(strstr(diag.text, "its last line has no end"));
    }
}

/** Parts are the same by their key, or without one by their name. */
static void test_profile__parts(void **state)
{
    (void)state;
    me_part_list list = {0};
    for (int i = 0; i < 2 * N; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "module %d", i % N);
        assert_int_equal(me_part_add(&list, name, 0, 3, 1), ME_OK);
    }
    assert_int_equal(me_part_add(&list, "module 1", 77, 5, 1), ME_OK);
    assert_int_equal(me_part_add(&list, "another", 77, 5, 1), ME_OK);
    assert_int_equal(list.count, N + 1);

    char name[] = "module 1";
    const me_part *part = me_part_find(&list, &(me_part){.name = name});
    assert_non_null(part);
    assert_int_equal(part->bytes, 6);
    part = me_part_find(&list, &(me_part){.name = name, .key = 77});
    assert_non_null(part);
    assert_int_equal(part->bytes, 10);
    assert_null(me_part_find(&list, &(me_part){.name = name, .key = 78}));

    for (uint32_t i = 0; i < list.count; i++) {
        me_free(list.parts[i].name);
    }
    me_free(list.parts);
    me_places_fini(&list.places);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_profile__many_ranks),
        cmocka_unit_test(test_profile__parts),
        cmocka_unit_test(test_profile__last_numbers_may_be_cut),
        cmocka_unit_test(test_profile__only_a_cut_number),
    };
    return cmocka_run_group_tests_name("profile", tests, NULL, NULL);
}

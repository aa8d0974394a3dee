/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "diff/diff.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
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
    };
    return cmocka_run_group_tests_name("profile", tests, NULL, NULL);
}

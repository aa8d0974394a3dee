/* SPDX-License-Identifier: BSD-3-Clause */
#include "diff/places.h"
#include "support/test.h"

#include <stdio.h>

enum {
    N = 60000
};

static bool is_number(const void *list, uint32_t place, const void *key)
{
    return ((const int32_t *)list)[place] == *(const int32_t *)key;
}

/** Slots that are looked at before the one of an entry, of all of them. */
static uint64_t count_looks(const me_places *places)
{
    uint64_t looks = 0;
    for (uint32_t i = 0; i < places->n_slots; i++) {
        if (places->slots[i] != 0) {
            looks += (i - (uint32_t)places->hashes[i]) & (places->n_slots - 1);
        }
    }
    return looks;
}

/** Ranks, one after the other or every eighth, are found at once. */
static void test_places__ranks(void **state)
{
    (void)state;
    static int32_t list[N];
    for (int32_t step = 1; step <= 4096; step *= 8) {
        me_places places = {0};
        for (int32_t i = 0; i < N; i++) {
            const int32_t rank = (i * step) % (N * 8 + 7);
            const uint64_t hash = me_place_of_number((uint32_t)rank);
            assert_int_equal(
                me_places_find(&places, hash, is_number, list, &rank),
                ME_PLACE_NONE);
            list[i] = rank;
            assert_int_equal(me_places_add(&places, hash), ME_OK);
        }
        for (int32_t i = 0; i < N; i++) {
            const uint64_t hash = me_place_of_number((uint32_t)list[i]);
            assert_int_equal(
                me_places_find(&places, hash, is_number, list, &list[i]), i);
        }
        assert_int_equal(places.n_entries, N);
        assert_in_range(count_looks(&places), 1, N);
        me_places_fini(&places);
    }
}

static void test_places__texts(void **state)
{
    (void)state;
    me_places places = {0};
    for (int i = 0; i < N; i++) {
        char name[40];
        (void)snprintf(name, sizeof name, "layers.%d.weight", i);
        assert_int_equal(me_places_add(&places, me_place_of_text(name)), ME_OK);
    }
    assert_in_range(count_looks(&places), 1, N);
    me_places_fini(&places);
}

/** Entries of one hash are told apart by what they are. */
static void test_places__equal_hashes(void **state)
{
    (void)state;
    static const int32_t list[] = {7, 8, 9};
    const int32_t missing = 10;
    me_places places = {0};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(me_places_add(&places, 5), ME_OK);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(me_places_find(&places, 5, is_number, list, &list[i]),
                         i);
    }
    assert_int_equal(me_places_find(&places, 5, is_number, list, &missing),
                     ME_PLACE_NONE);
    me_places_fini(&places);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places__ranks),
        cmocka_unit_test(test_places__texts),
        cmocka_unit_test(test_places__equal_hashes),
    };
    return cmocka_run_group_tests_name("places", tests, NULL, NULL);
}

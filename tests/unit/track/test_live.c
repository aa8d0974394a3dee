/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/test.h"
#include "track/live.h"

static me_event event(me_event_kind kind, me_category category)
{
    return (me_event){
        .kind = kind, .op = "add", .bytes = 8, .category = (uint8_t)category};
}

/** Bytes of a category in the picture at the peak. */
static uint64_t at_peak(const me_live *live, me_category category)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < live->n_kinds; i++) {
        if (live->kinds[i].category == (uint8_t)category) {
            bytes += me_live_peak_bytes(live, &live->kinds[i]);
        }
    }
    return bytes;
}

/** A block of @p before that is live at the peak and then turns out to be an
 *  activation: is it one in the picture? */
static bool learns(me_category before)
{
    me_live live = {.status = ME_OK};
    const me_event made = event(ME_EVENT_ALLOC, before);
    const me_event told = event(ME_EVENT_RECATEGORIZE, ME_CATEGORY_ACTIVATION);
    me_live_alloc(&live, &made);
    me_live_mark_peak(&live);
    me_live_recategorize(&live, &told);
    assert_int_equal(live.status, ME_OK);
    const bool is_known = at_peak(&live, ME_CATEGORY_ACTIVATION) == 8;
    assert_int_equal(at_peak(&live, before), is_known ? 0 : 8);
    me_live_fini(&live);
    return is_known;
}

/* What was no more than temporary, or other, was then what it is now; what was
 * something else has become it since. */
static void test_live__the_picture_learns(void **state)
{
    (void)state;
    assert_true(learns(ME_CATEGORY_TEMPORARY));
    assert_true(learns(ME_CATEGORY_OTHER));
    assert_false(learns(ME_CATEGORY_GRADIENT));
    assert_false(learns(ME_CATEGORY_COMMUNICATION));
}

/* It stays in the picture what it was there, whatever it becomes later on. */
static void test_live__the_picture_stays(void **state)
{
    (void)state;
    me_live live = {.status = ME_OK};
    const me_event made = event(ME_EVENT_ALLOC, ME_CATEGORY_GRADIENT);
    const me_event other = event(ME_EVENT_RECATEGORIZE, ME_CATEGORY_OTHER);
    const me_event input = event(ME_EVENT_RECATEGORIZE, ME_CATEGORY_INPUT);
    me_live_alloc(&live, &made);
    me_live_mark_peak(&live);
    me_live_recategorize(&live, &other);
    me_live_recategorize(&live, &input);
    assert_int_equal(at_peak(&live, ME_CATEGORY_GRADIENT), 8);
    assert_int_equal(at_peak(&live, ME_CATEGORY_INPUT), 0);
    me_live_mark_peak(&live);
    assert_int_equal(at_peak(&live, ME_CATEGORY_INPUT), 8);
    me_live_fini(&live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_live__the_picture_learns),
        cmocka_unit_test(test_live__the_picture_stays),
    };
    return cmocka_run_group_tests_name("live", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/arena.h"
#include "base/str.h"
#include "support/faults.h"
#include "support/test.h"

static me_status build_text(void *context)
{
    (void)context;
    me_str str = {0};
    for (int i = 0; i < 400; i++) {
        me_str_printf(&str, "line %d\n", i);
    }
    const me_status status = me_str_status(&str);
    me_str_fini(&str);
    return status;
}

static void test_faults__text_keeps_its_failure(void **state)
{
    (void)state;
    me_sweep_faults(build_text, NULL, 3);
}

static me_status fill_arena(void *context)
{
    (void)context;
    me_arena *arena = me_arena_create(1 << 20, "test");
    me_status status = arena == NULL ? ME_ERR_NOMEM : ME_OK;
    for (int i = 0; i < 100 && status == ME_OK; i++) {
        status = me_arena_alloc(arena, 64, 64) == NULL ? ME_ERR_NOMEM : ME_OK;
    }
    me_arena_destroy(arena);
    return status;
}

static void test_faults__arena_says_no(void **state)
{
    (void)state;
    me_sweep_faults(fill_arena, NULL, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faults__text_keeps_its_failure),
        cmocka_unit_test(test_faults__arena_says_no),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "support/test.h"
#include "track/result.h"

#include <string.h>

static me_point_result points[] = {
    {"model_built", 1, 2, 3, 4, 5, 6, ME_BYTES_UNKNOWN},
    {"iter1_end", 10, 20, 30, 40, 50, 60, 70}};
static me_phase_result phases[] = {{"forward", 100, 110, 120}};
static me_contributor contributors[] = {
    {"decoder.layers.0-1.mlp", "aten::mm", ME_CATEGORY_ACTIVATION, 2, 4, 90},
    {"", NULL, ME_CATEGORY_OTHER, 1, 1, 10}};
static me_iteration_result iterations[] = {{
    .iteration = 1,
    .requested_bytes = 100,
    .allocated_bytes = 110,
    .reserved_bytes = 120,
    .phases = phases,
    .n_phases = 1,
    .peak = {.requested_bytes = 100,
             .allocated_bytes = 110,
             .reserved_bytes = 120,
             .device_bytes = ME_BYTES_UNKNOWN,
             .iteration = 1,
             .microbatch = ME_NO_MICROBATCH,
             .phase = "forward",
             .module = "decoder",
             .op = NULL,
             .by_category =
                 {[ME_CATEGORY_ACTIVATION] = 90, [ME_CATEGORY_OTHER] = 10},
             .contributors = contributors,
             .n_contributors = 2},
}};
static me_module_result modules[] = {
    {"decoder", UINT32_MAX, 7, 8, 9, 18, 11},
    {"decoder.head", 0, ME_BYTES_UNKNOWN, 8, 9, 18, 11}};
static me_course_part course[] = {
    {"F", 1, 2, {1, 3, 2}, {4, 6, 5}, {7, 7, 7}, {1, 0, 1}},
    {"other", -1, ME_NO_MICROBATCH, {2, 2, 1}, {5, 5, 4}, {7, 7, 7}, {0}}};
static me_communicator_result communicators[] = {{"tensor", 4, 12345}};

static const me_rank_result example = {
    .parameters = 9,
    .parameter_bytes = 18,
    .points = points,
    .n_points = 2,
    .iterations = iterations,
    .n_iterations = 1,
    .modules = modules,
    .n_modules = 2,
    .course = course,
    .n_course = 2,
    .course_left_out = 5,
    .private_pool_bytes = 20,
    .timing_buffer_bytes = 60,
    .workspace_doubt_bytes = 70,
    .limit = {.is_known = true,
              .oom = true,
              .iteration = 1,
              .phase = "backward",
              .module = "decoder",
              .op = "aten::mm",
              .tried_bytes = 77,
              .num_alloc_retries = 3,
              .oom_with_less = true,
              .reserved_bytes = 99},
    .device = {.is_known = true,
               .context_bytes = 1,
               .library_bytes = 2,
               .communicator_bytes = 12345,
               .communicators = communicators,
               .n_communicators = 1},
};

static void encode(const me_rank_result *result, unsigned char **bytes_out,
                   size_t *size_out)
{
    assert_int_equal(me_rank_result_encode(result, bytes_out, size_out), ME_OK);
}

static void test_rank_result__comes_back_whole(void **state)
{
    (void)state;
    unsigned char *bytes = NULL;
    size_t size = 0;
    encode(&example, &bytes, &size);
    me_rank_result *back = NULL;
    assert_int_equal(me_rank_result_decode(bytes, size, NULL, &back), ME_OK);
    assert_string_equal(back->points[1].name, "iter1_end");
    assert_true(back->points[0].device_bytes == ME_BYTES_UNKNOWN);
    const me_peak_result *peak = me_rank_result_peak(back);
    assert_int_equal(peak->microbatch, ME_NO_MICROBATCH);
    assert_null(peak->op);
    assert_string_equal(peak->contributors[0].module, "decoder.layers.0-1.mlp");
    assert_null(peak->contributors[1].op);
    assert_int_equal(back->modules[0].parent, UINT32_MAX);
    assert_string_equal(back->limit.op, "aten::mm");
    assert_string_equal(back->device.communicators[0].group, "tensor");
    assert_int_equal(back->n_course, 2);
    assert_string_equal(back->course[1].name, "other");
    assert_int_equal(back->course[1].chunk, -1);
    assert_int_equal(back->course[0].allocated.peak, 6);
    assert_int_equal(back->course_left_out, 5);
    assert_int_equal(back->private_pool_bytes, 20);
    assert_int_equal(back->timing_buffer_bytes, 60);
    assert_int_equal(back->workspace_doubt_bytes, 70);
    unsigned char *again = NULL;
    size_t again_size = 0;
    encode(back, &again, &again_size);
    assert_int_equal(again_size, size);
    assert_memory_equal(again, bytes, size);
    me_free(again);
    me_free(bytes);
    me_rank_result_destroy(back);
}

static void test_rank_result__refuses_every_cut(void **state)
{
    (void)state;
    unsigned char *bytes = NULL;
    size_t size = 0;
    encode(&example, &bytes, &size);
    for (size_t cut = 0; cut < size; cut++) {
        me_rank_result *back = NULL;
        me_diag diag = {0};
        assert_int_equal(me_rank_result_decode(bytes, cut, &diag, &back),
                         ME_ERR_SYNTAX);
        assert_null(back);
    }
    me_free(bytes);
}

/* Whatever a flipped byte makes of it, nothing crashes, and what is accepted
 * can be encoded again. */
static void test_rank_result__survives_damage(void **state)
{
    (void)state;
    unsigned char *bytes = NULL;
    size_t size = 0;
    encode(&example, &bytes, &size);
    for (size_t i = 0; i < size; i++) {
        bytes[i] ^= 0xff;
        me_rank_result *back = NULL;
        if (me_rank_result_decode(bytes, size, NULL, &back) == ME_OK) {
            unsigned char *again = NULL;
            size_t again_size = 0;
            encode(back, &again, &again_size);
            assert_memory_equal(again, bytes, size);
            me_free(again);
            me_rank_result_destroy(back);
        }
        bytes[i] ^= 0xff;
    }
    me_free(bytes);
}

static void test_rank_result__copies_what_is_set(void **state)
{
    (void)state;
    me_rank_result *result = me_rank_result_create();
    assert_non_null(result);
    assert_false(result->limit.is_known);
    char op[] = "aten::mm";
    me_limit_result limit = example.limit;
    limit.op = op;
    assert_int_equal(me_rank_result_set_limit(result, &limit), ME_OK);
    assert_int_equal(me_rank_result_set_device(result, &example.device), ME_OK);
    op[0] = 'X';
    assert_string_equal(result->limit.op, "aten::mm");
    assert_ptr_not_equal(result->device.communicators, communicators);
    assert_null(me_rank_result_peak(result));
    me_rank_result_destroy(result);
}

/* Days are no slip of the bytes that processes exchange. */
static void test_rank_result__says_what_takes_days(void **state)
{
    (void)state;
    me_time_item item = {.kind = ME_TIME_MEET, .ns = INT64_C(1) << 51};
    const me_rank_result result = {.time = {.items = &item, .n_items = 1}};
    unsigned char *bytes = NULL;
    size_t size = 0;
    assert_int_equal(me_rank_result_encode_time(&result, &bytes, &size), ME_OK);
    me_arena *arena = me_arena_create(1 << 16, "test");
    assert_non_null(arena);
    me_time_program program;
    me_diag diag = {.status = ME_OK};
    assert_int_equal(
        me_time_program_decode(bytes, size, arena, &diag, &program),
        ME_ERR_OVERFLOW);
    assert_non_null(strstr(diag.text, "takes over 13 days"));
    me_arena_destroy(arena);
    me_free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rank_result__comes_back_whole),
        cmocka_unit_test(test_rank_result__refuses_every_cut),
        cmocka_unit_test(test_rank_result__survives_damage),
        cmocka_unit_test(test_rank_result__copies_what_is_set),
        cmocka_unit_test(test_rank_result__says_what_takes_days),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

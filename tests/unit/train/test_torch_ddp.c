/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/events.h"
#include "support/test.h"
#include "train/torch/torch_ddp.h"

enum {
    PARAMETERS = 5
};

/** Parameters of 200, 100, 200, 100 and 100 MiB. */
static const uint64_t MEBIBYTES[PARAMETERS] = {200, 100, 200, 100, 100};

/* Pieces of at least 250 MiB: 300, 300 and 100. Two are under way together, so
 * that the first ends before the third begins, a single tensor that is flat as
 * it is; then the bucket of all 700. */
static void test_torch_ddp__two_broadcasts_at_once(void **state)
{
    me_test_events *events = *state;
    me_engine *e = events->e;
    me_communicators comm = {
        .size = {[ME_GROUP_WORLD] = 1, [ME_GROUP_DATA] = 1}};
    me_parameter parameters[PARAMETERS];
    me_parameter *list[PARAMETERS];
    const me_config config = {.torch = {.replicate = false}};
    me_loop l = {.e = e,
                 .config = &config,
                 .comm = &comm,
                 .parameters = {.parameters = list, .count = PARAMETERS}};
    for (int i = 0; i < PARAMETERS; i++) {
        const me_shape shape = ME_SHAPE(MEBIBYTES[i] << 18);
        parameters[i] = (me_parameter){
            .tensor = me_keep(e, "weight", ME_CATEGORY_PARAMETER,
                              ME_DTYPE_FLOAT32, shape),
            .shape = shape,
        };
        list[i] = &parameters[i];
    }
    (void)me_test_events_take(events);

    void *ddp = me_ddp_wrapper_row.wrap(&l);
    /* before that the shapes: how many there are, of each rank, and gathered;
     * an extent and a stride of each parameter */
    EXPECT_EVENTS(events, "+8 +8 +8 -8 AllGather:1 +80 -80 Broadcast:10 -8 -8 "
                          "+314572800 Broadcast:78643200 "
                          "+314572800 Broadcast:78643200 -314572800 "
                          "Broadcast:26214400 -314572800 "
                          "+734003200");
    me_ddp_wrapper_row.unwrap(ddp);
    for (int i = 0; i < PARAMETERS; i++) {
        me_clear(e, &parameters[i].tensor);
    }
    assert_int_equal(events->live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENGINE_TEST(test_torch_ddp__two_broadcasts_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Forwards and backwards of micro-batches whose layer keeps an attribute until its
 * next forward: each is recorded as it runs, and then told. */
#include "support/events.h"
#include "support/test.h"
#include "tensor/script.h"

enum {
    MAP_BYTES = 24 /**< of the attribute, which the tape may hold as well */
};

/** A layer of a chunk. */
typedef struct layer {
    me_engine *e;
    me_tensor *map; /**< the attribute */
    bool is_saved;  /**< the tape holds it */
} layer;

/** A micro-batch between its forward and its backward. */
typedef struct microbatch {
    me_blocks kept;
    me_tensor *saved; /**< by the tape; NULL: nothing */
} microbatch;

static uint32_t all_kinds(void *self, const me_repeated *action)
{
    (void)self;
    (void)action;
    return UINT32_MAX;
}

static void count_live(void *self, const me_event *event)
{
    uint64_t *live = self;
    *live += event->kind == ME_EVENT_ALLOC ? event->bytes : 0;
    *live -= event->kind == ME_EVENT_FREE_COMPLETED ? event->bytes : 0;
}

static me_engine *make_engine(uint64_t *live)
{
    const me_card card = {.multiprocessors = 132};
    me_engine *e = NULL;
    assert_int_equal(me_engine_create(&card, &e), ME_OK);
    me_engine_observe(e, (me_observer){.on_event = count_live,
                                       .on_repeated = all_kinds,
                                       .self = live});
    return e;
}

static void run_forward(layer *l, microbatch *m)
{
    const me_frame frame = me_enter(l->e);
    me_tensor *map = me_empty(l->e, "map", ME_DTYPE_UINT8, ME_SHAPE(MAP_BYTES));
    me_attribute_set(l->e, &l->map, map);
    if (l->is_saved) {
        m->saved = me_retain(map);
    }
    me_leave(l->e, frame, NULL);
    me_temporary(l->e, "rows", 8);
}

static void run_backward(layer *l, microbatch *m)
{
    me_clear(l->e, &m->saved);
    me_temporary(l->e, "gradient", 16);
}

static me_script record(layer *l, microbatch *m,
                        void (*run)(layer *l, microbatch *m))
{
    const me_script_inputs inputs = {.kept = &m->kept};
    const me_storage *const none[] = {NULL};
    me_script script = {.n_events = 0};
    me_script_begin(l->e);
    run(l, m);
    assert_true(
        me_script_end(l->e, false, &inputs, none, (uint32_t[1]){0}, &script));
    assert_true(me_script_keep(l->e, &script, &m->kept));
    me_script_set_attributes(l->e, &script, false, NULL, &m->kept);
    return script;
}

static void tell(layer *l, microbatch *m, me_script *script)
{
    const me_script_inputs inputs = {.kept = &m->kept};
    const me_script_part part = {.is_usual = true};
    assert_true(me_script_tell(l->e, script, 0, &inputs, &part));
    assert_true(me_script_keep(l->e, script, &m->kept));
    me_script_set_attributes(l->e, script, true, NULL, &m->kept);
}

/** What lives after each action of F0 F1 B0 B1 F2 B2 F3 F4 B3 B4 F5, of which
 *  those from the third micro-batch on are told or run. */
static void play(bool is_saved, bool is_told, uint64_t live_out[11])
{
    static const struct {
        int microbatch;
        bool is_forward;
    } order[11] = {{0, true},  {1, true},  {0, false}, {1, false},
                   {2, true},  {2, false}, {3, true},  {4, true},
                   {3, false}, {4, false}, {5, true}};

    uint64_t live = 0;
    layer l = {.e = make_engine(&live), .is_saved = is_saved};
    microbatch microbatches[6] = {{.saved = NULL}};
    me_script scripts[2] = {{.n_events = 0}};
    for (int i = 0; i < 11; i++) {
        microbatch *m = &microbatches[order[i].microbatch];
        me_script *script = &scripts[order[i].is_forward];
        if (is_told && order[i].microbatch >= 2) {
            tell(&l, m, script);
        } else {
            me_script_fini(script);
            *script =
                record(&l, m, order[i].is_forward ? run_forward : run_backward);
        }
        live_out[i] = live;
    }
    me_attribute_set(l.e, &l.map, NULL);
    for (int i = 0; i < 6; i++) {
        me_clear(l.e, &microbatches[i].saved);
        me_blocks_fini(&microbatches[i].kept);
    }
    me_script_fini(&scripts[0]);
    me_script_fini(&scripts[1]);
    me_engine_destroy(l.e);
}

/** The next forward lets go of it, whatever the tape did. */
static void test_script_keep__attributes_go_with_the_next_forward(void **state)
{
    (void)state;
    uint64_t live[11];
    for (int told = 0; told < 2; told++) {
        play(false, told == 1, live);
        for (int i = 0; i < 11; i++) {
            assert_int_equal(live[i], MAP_BYTES);
        }
    }
}

/** Of the attribute and the tape the last one frees the block: after F1 B0 that is
 *  the tape, after B1 F2 the attribute. */
static void test_script_keep__the_last_holder_frees(void **state)
{
    (void)state;
    static const uint64_t blocks[11] = {1, 2, 1, 1, 1, 1, 1, 2, 1, 1, 1};
    uint64_t live[11];
    for (int told = 0; told < 2; told++) {
        play(true, told == 1, live);
        for (int i = 0; i < 11; i++) {
            assert_int_equal(live[i], blocks[i] * MAP_BYTES);
        }
    }
}

/** Two forwards in a row are the same, whoever frees what they let go of. */
static void test_script_keep__recordings_agree(void **state)
{
    (void)state;
    uint64_t live = 0;
    layer l = {.e = make_engine(&live), .is_saved = true};
    microbatch m[3] = {{.saved = NULL}};
    me_script first = record(&l, &m[0], run_forward);
    me_script second = record(&l, &m[1], run_forward);
    me_script back = record(&l, &m[1], run_backward);
    me_script third = record(&l, &m[2], run_forward);
    assert_false(me_script_is_same(&first, &second)); // which lets go of none
    assert_true(me_script_is_same(&second, &third));
    me_script *const scripts[] = {&first, &second, &back, &third};
    for (int i = 0; i < 4; i++) {
        me_script_fini(scripts[i]);
    }
    me_attribute_set(l.e, &l.map, NULL);
    for (int i = 0; i < 3; i++) {
        me_clear(l.e, &m[i].saved);
        me_blocks_fini(&m[i].kept);
    }
    me_engine_destroy(l.e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_script_keep__attributes_go_with_the_next_forward),
        cmocka_unit_test(test_script_keep__the_last_holder_frees),
        cmocka_unit_test(test_script_keep__recordings_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

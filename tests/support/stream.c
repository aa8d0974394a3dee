/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/stream.h"

static me_module_info modules[TEST_MODULES] = {
    {.name = "",
     .path = "",
     .parent = 0,
     .depth = 0,
     .parameters = 25,
     .parameter_bytes = 50},
    {.name = "decoder",
     .path = "decoder",
     .parent = 0,
     .depth = 1,
     .parameters = 20,
     .parameter_bytes = 40},
    {.name = "layers",
     .path = "decoder.layers",
     .parent = 1,
     .depth = 2,
     .parameters = 20,
     .parameter_bytes = 40},
    {.name = "0",
     .path = "decoder.layers.0",
     .parent = 2,
     .depth = 3,
     .parameters = 10,
     .parameter_bytes = 20},
    {.name = "mlp",
     .path = "decoder.layers.0.mlp",
     .parent = 3,
     .depth = 4,
     .parameters = 10,
     .parameter_bytes = 20},
    {.name = "1",
     .path = "decoder.layers.1",
     .parent = 2,
     .depth = 3,
     .parameters = 10,
     .parameter_bytes = 20},
    {.name = "mlp",
     .path = "decoder.layers.1.mlp",
     .parent = 5,
     .depth = 4,
     .parameters = 10,
     .parameter_bytes = 20},
    {.name = "head",
     .path = "head",
     .parent = 0,
     .depth = 1,
     .parameters = 5,
     .parameter_bytes = 10},
};

const me_module_tree me_stream_tree = {modules, TEST_MODULES, TEST_MODULES};

static void emit(me_test_stream *s, me_event event)
{
    event.phase = s->phase;
    event.iteration = s->iteration;
    event.microbatch = s->microbatch;
    event.module = s->module;
    event.bytes *= s->scale == 0 ? 1 : s->scale;
    for (size_t i = 0; i < s->n_observers; i++) {
        s->observers[i].on_event(s->observers[i].self, &event);
    }
}

void me_stream_alloc(me_test_stream *s, uint32_t block, uint64_t bytes,
                     me_category category, const char *op)
{
    emit(s, (me_event){.kind = ME_EVENT_ALLOC,
                       .category = (uint8_t)category,
                       .block = block,
                       .bytes = bytes,
                       .op = op});
}

void me_stream_free(me_test_stream *s, uint32_t block, uint64_t bytes)
{
    me_event event = {
        .kind = ME_EVENT_FREE_REQUESTED, .block = block, .bytes = bytes};
    emit(s, event);
    event.kind = ME_EVENT_FREE_COMPLETED;
    emit(s, event);
}

void me_stream_recategorize(me_test_stream *s, uint32_t block,
                            me_category before, me_category after)
{
    emit(s, (me_event){.kind = ME_EVENT_RECATEGORIZE,
                       .block = block,
                       .category = (uint8_t)after,
                       .old_category = (uint8_t)before});
}

void me_stream_enter(me_test_stream *s, uint32_t module)
{
    s->module = module;
    emit(s, (me_event){.kind = ME_EVENT_MODULE_ENTER});
}

void me_stream_leave(me_test_stream *s)
{
    emit(s, (me_event){.kind = ME_EVENT_MODULE_LEAVE});
    s->module = modules[s->module].parent;
}

void me_stream_phase(me_test_stream *s, me_phase phase)
{
    s->phase = (uint8_t)phase;
    emit(s, (me_event){.kind = ME_EVENT_PHASE});
}

void me_stream_iteration(me_test_stream *s, int32_t iteration)
{
    s->iteration = iteration;
    emit(s, (me_event){.kind = ME_EVENT_ITERATION});
}

void me_stream_action(me_test_stream *s, const char *name, int32_t chunk)
{
    emit(s, (me_event){.kind = name == NULL ? ME_EVENT_ACTION_END
                                            : ME_EVENT_ACTION_BEGIN,
                       .name = name,
                       .chunk = chunk});
}

void me_stream_point(me_test_stream *s, const char *name)
{
    emit(s, (me_event){.kind = ME_EVENT_POINT, .name = name});
}

static void enter_mlp(me_test_stream *s, uint32_t layer)
{
    const uint32_t path[] = {1, 2, layer, layer + 1};
    for (size_t i = 0; i < sizeof path / sizeof *path; i++) {
        me_stream_enter(s, path[i]);
    }
}

static void leave_all(me_test_stream *s)
{
    while (s->module != ME_NO_MODULE) {
        me_stream_leave(s);
    }
}

static void play_forward(me_test_stream *s)
{
    me_stream_phase(s, ME_PHASE_FORWARD);
    enter_mlp(s, 3);
    me_stream_alloc(s, 3, 200, ME_CATEGORY_TEMPORARY, "aten::mm");
    me_stream_alloc(s, 4, 30, ME_CATEGORY_TEMPORARY, "aten::gelu");
    me_stream_recategorize(s, 3, ME_CATEGORY_TEMPORARY, ME_CATEGORY_ACTIVATION);
    me_stream_free(s, 4, 30);
    leave_all(s);
    enter_mlp(s, 5);
    me_stream_alloc(s, 5, 200, ME_CATEGORY_TEMPORARY, "aten::mm");
    leave_all(s);
    me_stream_recategorize(s, 5, ME_CATEGORY_TEMPORARY, ME_CATEGORY_ACTIVATION);
}

static void play_backward(me_test_stream *s)
{
    me_stream_phase(s, ME_PHASE_BACKWARD);
    enter_mlp(s, 5);
    me_stream_alloc(s, 6, 70, ME_CATEGORY_TEMPORARY, "aten::mm");
    me_stream_free(s, 6, 70);
    me_stream_free(s, 5, 200);
    leave_all(s);
    enter_mlp(s, 3);
    me_stream_alloc(s, 7, 70, ME_CATEGORY_TEMPORARY, "aten::mm");
    me_stream_free(s, 7, 70);
    me_stream_free(s, 3, 200);
    leave_all(s);
}

static void play_iteration(me_test_stream *s, int32_t iteration)
{
    static const char *const names[2][5] = {
        {"iter0_begin", "finalize_begin", "optimizer_begin", "optimizer_end",
         "iter0_end"},
        {"iter1_begin", "finalize_begin", "optimizer_begin", "optimizer_end",
         "iter1_end"}};
    me_stream_iteration(s, iteration);
    me_stream_point(s, names[iteration][0]);
    s->microbatch = 0;
    me_stream_point(s, "fwd0_begin");
    play_forward(s);
    me_stream_point(s, "fwd0_end");
    play_backward(s);
    s->microbatch = ME_NO_MICROBATCH;
    me_stream_phase(s, ME_PHASE_GRADIENT_REDUCTION);
    me_stream_point(s, names[iteration][1]);
    me_stream_phase(s, ME_PHASE_OPTIMIZER);
    me_stream_point(s, names[iteration][2]);
    if (iteration == 0) {
        me_stream_alloc(s, 8, 80, ME_CATEGORY_OPTIMIZER_STATE,
                        "aten::zeros_like");
    }
    me_stream_point(s, names[iteration][3]);
    me_stream_phase(s, ME_PHASE_OTHER);
    me_stream_point(s, names[iteration][4]);
}

void me_stream_play(me_test_stream *s)
{
    s->iteration = -1;
    s->microbatch = ME_NO_MICROBATCH;
    me_stream_alloc(s, 1, 100, ME_CATEGORY_PARAMETER, "aten::empty");
    me_stream_alloc(s, 2, 50, ME_CATEGORY_GRADIENT, "aten::zeros");
    me_stream_point(s, "model_built");
    play_iteration(s, 0);
    play_iteration(s, 1);
}

#include "support/stream.h"

static me_module_info modules[TEST_MODULES] = {
    {"", "", 0, 0, 25, 50},
    {"decoder", "decoder", 0, 1, 20, 40},
    {"layers", "decoder.layers", 1, 2, 20, 40},
    {"0", "decoder.layers.0", 2, 3, 10, 20},
    {"mlp", "decoder.layers.0.mlp", 3, 4, 10, 20},
    {"1", "decoder.layers.1", 2, 3, 10, 20},
    {"mlp", "decoder.layers.1.mlp", 5, 4, 10, 20},
    {"head", "head", 0, 1, 5, 10},
};

const me_module_tree TEST_TREE = {modules, TEST_MODULES, TEST_MODULES};

static void emit(test_stream *s, me_event event)
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

void stream_alloc(test_stream *s, uint32_t block, uint64_t bytes,
                  me_category category, const char *op)
{
    emit(s, (me_event){.kind = ME_EVENT_ALLOC,
                       .category = (uint8_t)category,
                       .block = block,
                       .bytes = bytes,
                       .op = op});
}

void stream_free(test_stream *s, uint32_t block, uint64_t bytes)
{
    me_event event = {
        .kind = ME_EVENT_FREE_REQUESTED, .block = block, .bytes = bytes};
    emit(s, event);
    event.kind = ME_EVENT_FREE_COMPLETED;
    emit(s, event);
}

void stream_recategorize(test_stream *s, uint32_t block, me_category before,
                         me_category after)
{
    emit(s, (me_event){.kind = ME_EVENT_RECATEGORIZE,
                       .block = block,
                       .category = (uint8_t)after,
                       .old_category = (uint8_t)before});
}

void stream_enter(test_stream *s, uint32_t module)
{
    s->module = module;
    emit(s, (me_event){.kind = ME_EVENT_MODULE_ENTER});
}

void stream_leave(test_stream *s)
{
    emit(s, (me_event){.kind = ME_EVENT_MODULE_LEAVE});
    s->module = modules[s->module].parent;
}

void stream_phase(test_stream *s, me_phase phase)
{
    s->phase = (uint8_t)phase;
    emit(s, (me_event){.kind = ME_EVENT_PHASE});
}

void stream_iteration(test_stream *s, int32_t iteration)
{
    s->iteration = iteration;
    emit(s, (me_event){.kind = ME_EVENT_ITERATION});
}

void stream_point(test_stream *s, const char *name)
{
    emit(s, (me_event){.kind = ME_EVENT_POINT, .name = name});
}

static void enter_mlp(test_stream *s, uint32_t layer)
{
    const uint32_t path[] = {1, 2, layer, layer + 1};
    for (size_t i = 0; i < sizeof path / sizeof *path; i++) {
        stream_enter(s, path[i]);
    }
}

static void leave_all(test_stream *s)
{
    while (s->module != ME_NO_MODULE) {
        stream_leave(s);
    }
}

static void play_forward(test_stream *s)
{
    stream_phase(s, ME_PHASE_FORWARD);
    enter_mlp(s, 3);
    stream_alloc(s, 3, 200, ME_CATEGORY_TEMPORARY, "aten::mm");
    stream_alloc(s, 4, 30, ME_CATEGORY_TEMPORARY, "aten::gelu");
    stream_recategorize(s, 3, ME_CATEGORY_TEMPORARY, ME_CATEGORY_ACTIVATION);
    stream_free(s, 4, 30);
    leave_all(s);
    enter_mlp(s, 5);
    stream_alloc(s, 5, 200, ME_CATEGORY_TEMPORARY, "aten::mm");
    leave_all(s);
    stream_recategorize(s, 5, ME_CATEGORY_TEMPORARY, ME_CATEGORY_ACTIVATION);
}

static void play_backward(test_stream *s)
{
    stream_phase(s, ME_PHASE_BACKWARD);
    enter_mlp(s, 5);
    stream_alloc(s, 6, 70, ME_CATEGORY_TEMPORARY, "aten::mm");
    stream_free(s, 6, 70);
    stream_free(s, 5, 200);
    leave_all(s);
    enter_mlp(s, 3);
    stream_alloc(s, 7, 70, ME_CATEGORY_TEMPORARY, "aten::mm");
    stream_free(s, 7, 70);
    stream_free(s, 3, 200);
    leave_all(s);
}

static void play_iteration(test_stream *s, int32_t iteration)
{
    static const char *const names[2][5] = {
        {"iter0_begin", "finalize_begin", "optimizer_begin", "optimizer_end",
         "iter0_end"},
        {"iter1_begin", "finalize_begin", "optimizer_begin", "optimizer_end",
         "iter1_end"}};
    stream_iteration(s, iteration);
    stream_point(s, names[iteration][0]);
    s->microbatch = 0;
    stream_point(s, "fwd0_begin");
    play_forward(s);
    stream_point(s, "fwd0_end");
    play_backward(s);
    s->microbatch = ME_NO_MICROBATCH;
    stream_phase(s, ME_PHASE_GRADIENT_REDUCTION);
    stream_point(s, names[iteration][1]);
    stream_phase(s, ME_PHASE_OPTIMIZER);
    stream_point(s, names[iteration][2]);
    if (iteration == 0) {
        stream_alloc(s, 8, 80, ME_CATEGORY_OPTIMIZER_STATE, "aten::zeros_like");
    }
    stream_point(s, names[iteration][3]);
    stream_phase(s, ME_PHASE_OTHER);
    stream_point(s, names[iteration][4]);
}

void stream_play(test_stream *s)
{
    s->iteration = -1;
    s->microbatch = ME_NO_MICROBATCH;
    stream_alloc(s, 1, 100, ME_CATEGORY_PARAMETER, "aten::empty");
    stream_alloc(s, 2, 50, ME_CATEGORY_GRADIENT, "aten::zeros");
    stream_point(s, "model_built");
    play_iteration(s, 0);
    play_iteration(s, 1);
}

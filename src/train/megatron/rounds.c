/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/megatron/rounds.h"

#include "nn/megatron/rope.h"
#include "tensor/strand.h"
#include "train/megatron/repeat.h"
#include "train/megatron/repeat_state.h"
#include "train/megatron/step.h"
#include "train/megatron/trainer.h"

#include <string.h>

enum {
    FAILED_MAX = 6 /* recordings that may be unlike the one before: the first
                      rounds free what the iteration before has left */
};

void me_rounds_init(me_rounds *r, me_trainer *t, const me_round_loop *loop)
{
    *r = (me_rounds){
        .t = t,
        .loop = *loop,
        .is_off = !me_can_repeat(t) || loop->end < 3 * loop->steps,
        .age = me_block_age(t->e),
    };
    if (!r->is_off) {
        const size_t n = (size_t)loop->microbatches;
        r->slots = me_engine_alloc(t->e, n, sizeof *r->slots);
        r->is_off = r->slots == NULL;
    }
}

void me_rounds_fini(me_rounds *r)
{
    if (r->t != NULL) {
        me_strands_settle(r->t->e);
    }
    me_live_blocks_fini(&r->live);
    me_script_fini(&r->script);
}

static void begin_round(me_rounds *r, int32_t round)
{
    me_trainer *t = r->t;
    for (int32_t i = 0; i < t->n_reports; i++) {
        me_block_set_apart(t->e, t->reports[i]);
    }
    r->is_recording = me_live_blocks_list(t->e, r->age, &r->live);
    r->calls = me_communicate_position(t->comm);
    r->forwards = t->forwards;
    r->n_reports = t->n_reports;
    me_script_begin_round(t->e, round * r->loop.microbatches);
}

/** The script of the round that ends. @return false: it cannot be told again */
static bool read_round(me_rounds *r, me_script *script_out)
{
    const me_trainer *t = r->t;
    const int32_t n = t->n_reports - r->n_reports;
    const me_storage **reports =
        me_engine_alloc(t->e, (size_t)n + 1, sizeof(me_storage *));
    if (reports == NULL || n > r->loop.microbatches) {
        return false;
    }
    for (int32_t i = 0; i < n; i++) {
        reports[i] = t->reports[r->n_reports + i]->storage;
    }
    const me_script_inputs inputs = {.kept = &r->live.blocks};
    return me_script_end(t->e, false, &inputs, reports, r->slots, script_out);
}

/** The round that was recorded ends. @return it did the same as the one before, and
 *  the next one begins as it did */
static bool end_round(me_rounds *r)
{
    const me_trainer *t = r->t;
    me_script script = {.n_events = 0};
    me_live_blocks live = {.count = 0};
    bool is_proven = read_round(r, &script);
    r->is_recording = false;
    if (is_proven) {
        for (int32_t i = r->n_reports; i < t->n_reports; i++) {
            me_block_set_apart(t->e, t->reports[i]);
        }
        is_proven =
            me_live_blocks_list(t->e, r->age, &live) &&
            live.count == r->live.count && me_live_blocks_are(&live, &script) &&
            r->script.events != NULL && me_script_is_same(&r->script, &script);
    }
    me_script_fini(&r->script);
    me_live_blocks_fini(&r->live);
    r->script = script;
    r->live = live;
    return is_proven;
}

/** Name of a forward's point. */
static const char *point_name(void *self, const char *name)
{
    me_trainer *t = self;
    const char *what = strchr(name, '_');
    if (what == NULL) {
        return name;
    }
    const char *now = me_forward_name(t, what + 1);
    t->forwards += strcmp(what + 1, "end") == 0;
    return now;
}

/** Frees the tensor of a caller, of which a round has none. */
static void release(void *self, uint32_t index)
{
    (void)self;
    (void)index;
}

/** Losses that a round that was told has gathered, like those of the one that was
 *  run last. */
static void add_reports(me_rounds *r, int32_t n)
{
    me_trainer *t = r->t;
    for (int32_t i = 0; i < n && me_engine_is_ok(t->e); i++) {
        const me_tensor *like = t->reports[r->n_reports + i];
        t->reports[t->n_reports++] = me_tensor_adopt(
            t->e, like, like->storage, r->script.ids[r->slots[i]]);
    }
}

/** Tell @p count rounds from @p round on. */
static void tell(me_rounds *r, int32_t round, int32_t count)
{
    me_trainer *t = r->t;
    me_engine *e = t->e;
    const me_script_part part = {
        .name = point_name, .release = release, .self = t, .is_usual = true};
    const me_script_inputs inputs = {.kept = &r->live.blocks};
    const uint64_t calls_end = me_communicate_position(t->comm);
    const int32_t n_forwards = t->forwards - r->forwards;
    const int32_t n_reports = t->n_reports - r->n_reports;
    const uint32_t id = t->repeats->n_ids++;
    for (int32_t i = 0; i < count && me_engine_is_ok(e); i++) {
        const int32_t forwards = t->forwards;
        me_microbatch(e, (round + i) * r->loop.microbatches);
        if (!me_script_tell(e, &r->script, id, &inputs, &part)) {
            me_engine_fail(e, ME_ERR_INTERNAL,
                           "round %d of a loop does not begin as others do",
                           round + i);
            break;
        }
        me_communicate_repeat(e, t->comm, r->calls, calls_end);
        t->forwards = forwards + n_forwards;
        if (me_script_keep(e, &r->script, &r->live.blocks)) {
            add_reports(r, n_reports);
        }
    }
    me_microbatch(e, ME_NO_MICROBATCH);
    if (me_engine_is_ok(e)) {
        me_live_blocks_rename(e, &r->live);
    }
}

int32_t me_rounds_tell(me_rounds *r, int32_t step)
{
    const me_round_loop *loop = &r->loop;
    if (r->is_off || step % loop->steps != 0 || !me_engine_is_ok(r->t->e)) {
        return 0;
    }
    const int32_t round = step / loop->steps;
    if (r->is_recording && end_round(r)) {
        const int32_t left = (loop->end - step) / loop->steps;
        const int32_t count = left - left % loop->multiple;
        r->is_off = true;
        tell(r, round, count);
        return count * loop->steps;
    }
    r->n_failed++;
    r->is_off = r->n_failed > FAILED_MAX || step + loop->steps > loop->end;
    if (!r->is_off) {
        begin_round(r, round);
    }
    return 0;
}

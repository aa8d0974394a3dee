/* SPDX-License-Identifier: BSD-3-Clause */
#include "tensor/script_tell.h"

me_event *me_telling_fill(const me_telling *telling, me_script_event *event)
{
    const me_telling *t = telling;
    me_event *x = &event->event;
    x->iteration = t->iteration;
    x->microbatch =
        event->is_apart ? ME_NO_MICROBATCH : t->microbatch + event->microbatch;
    x->module = event->is_outer ? t->outer : x->module;
    if (event->slot != ME_SCRIPT_NO_SLOT) {
        x->block = t->ids[event->slot];
    }
    return x;
}

static void describe(const me_block_ops *blocks, uint32_t op,
                     me_event *event_out)
{
    const me_telling *t = blocks->self;
    const me_script *s = t->script;
    *event_out = *me_telling_fill(
        t, &s->events[s->stretches.op_events[blocks->first + op]]);
}

static void tell_blocks(const me_telling *t, const me_observer *o,
                        uint32_t from, uint32_t to)
{
    const me_block_ops blocks = {
        .ops = t->script->stretches.ops + from,
        .n_ops = to - from,
        .ids = t->ids,
        .describe = describe,
        .self = t,
        .first = from,
    };
    if (from < to) {
        o->on_blocks(o->self, &blocks);
    }
}

static void tell_steps(const me_telling *t, const me_observer *o,
                       uint32_t kinds, const me_script_step *steps,
                       uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        me_script_event *x = &t->script->events[steps[i].event];
        const me_event_kind kind = x->event.kind;
        const me_event_kind now =
            steps[i].completes ? ME_EVENT_FREE_COMPLETED : kind;
        if ((kinds & ME_EVENT_BIT(now)) != 0) {
            me_event *event = me_telling_fill(t, x);
            event->kind = now;
            o->on_event(o->self, event);
            event->kind = kind;
        }
    }
}

/** Kinds of which no stretch has any: they are told by themselves. */
static const uint32_t ALONE_KINDS =
    ME_EVENT_BIT(ME_EVENT_PHASE) | ME_EVENT_BIT(ME_EVENT_POINT) |
    ME_EVENT_BIT(ME_EVENT_ACTION_BEGIN) | ME_EVENT_BIT(ME_EVENT_ACTION_END);

void me_telling_stretch(const me_telling *telling, const me_observer *observer,
                        uint32_t kinds, uint32_t index)
{
    const me_telling *t = telling;
    const me_observer *o = observer;
    const me_script_stretches *x = &t->script->stretches;
    const me_script_stretch none = {.ops_end = 0};
    const me_script_stretch *from = index == 0 ? &none : &x->items[index - 1];
    const me_script_stretch *to = &x->items[index];
    if (o->on_blocks != NULL) {
        tell_blocks(t, o, from->ops_end, to->ops_end);
    } else if ((kinds & ME_REPEATED_PASSING) != 0) {
        tell_steps(t, o, kinds, x->steps + from->steps_end,
                   to->steps_end - from->steps_end);
    } else if ((kinds & ~ALONE_KINDS) != 0) {
        tell_steps(t, o, kinds, x->lasting + from->lasting_end,
                   to->lasting_end - from->lasting_end);
    }
}

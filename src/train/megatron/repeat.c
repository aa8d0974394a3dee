/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/megatron/repeat.h"

#include "tensor/autograd.h"
#include "tensor/script.h"
#include "train/megatron/repeat_state.h"
#include "train/megatron/step.h"
#include "train/megatron/trainer.h"

#include <string.h>

/*
 * A chunk's forward does for every micro-batch what it did for the one before,
 * and so does its backward, whatever the order of the pipeline: once two in a
 * row were the same, those of later micro-batches are repeated from the
 * recording (tensor/script.h). What an action hands to its caller (outputs,
 * gradients of inputs) are real tensors; what is kept between forward and
 * backward is only a list of blocks.
 *
 * A micro-batch is repeated as a whole or run as a whole, which its forward
 * decides. If its backward then cannot be repeated, the rank is simulated anew
 * with every action run (me_megatron_spec.must_run_all).
 *
 * Under FSDP2 an action depends on those before it, so all are run.
 */

enum {
    KINDS = ME_ACTION_WEIGHT_GRADIENT + 1, /* of actions that repeat */
    RUN_LATER = 1,      /* actions of each kind to run in later iterations */
    RUN_WITH_DROPS = 2, /* the first forward frees what modules have kept from
                           the last iteration, which later ones need not */
    RUN_AT_FIRST = 3, /* the first backward also makes workspaces; the two after
                         it are the same */
    FAILED_MAX = 3    /* recordings of a kind that may fail, as a first one does
                         that makes lasting tensors */
};

static repeated_microbatch *microbatch_of(const me_repeats *r)
{
    return &r->microbatches[(size_t)r->chunk * (size_t)r->n_microbatches +
                            (size_t)r->microbatch];
}

static repeated_action *action_of(const me_repeats *r, me_action_kind kind)
{
    return &r->actions[(size_t)r->chunk * KINDS + kind];
}

/** Where each micro-batch stands among the actions of a kind and chunk: those
 *  that come first are run. Without an order all go as they come. */
static void find_places(me_repeats *r, const me_megatron_spec *spec)
{
    const me_pipeline_order *order = spec->order;
    const me_actions *list =
        order == NULL ? NULL : &order->ranks[spec->pipeline.rank];
    const int32_t all = spec->n_chunks * r->n_microbatches;
    for (int32_t i = 0; i < all; i++) {
        r->microbatches[i].place =
            list == NULL ? i % r->n_microbatches : INT32_MAX;
    }
    for (int32_t i = 0; list != NULL && i < list->count; i++) {
        const me_action *x = &list->items[i];
        if (x->kind > ME_ACTION_FORWARD && x->kind < KINDS) {
            r->chunk = x->chunk;
            r->microbatch = x->microbatch;
            repeated_microbatch *m = microbatch_of(r);
            const int32_t place =
                action_of(r, (me_action_kind)x->kind)->n_places++;
            m->place = place < m->place ? place : m->place;
        }
    }
}

bool me_can_repeat(const me_trainer *t)
{
    // What defer_embedding_wgrad_compute keeps of a micro-batch outlives it; what
    // goes to the host depends on which micro-batch it is; what a replayed graph
    // holds has no events; largest scores are compared with those before.
    return !t->spec->runs_all_rounds && t->wrapper->can_repeat &&
           !t->config->train.defer_embedding_wgrad_compute &&
           t->config->train.cuda_graph_impl == ME_CUDA_GRAPH_NONE &&
           !t->config->offload.fine_grained && !t->config->model.qk_clip &&
           !t->config->model.log_max_attention_logit &&
           me_script_can_tell(t->e) && me_communicate_can_repeat(t->comm);
}

void me_repeats_init(me_trainer *t)
{
    me_repeats *r = me_engine_alloc(t->e, 1, sizeof *r);
    t->repeats = r;
    if (r == NULL) {
        return;
    }
    const size_t chunks = (size_t)t->spec->n_chunks;
    r->n_microbatches = t->spec->pipeline.microbatches;
    // Two micro-batches in turns are repeated by the round (rounds.h).
    r->is_off = !me_can_repeat(t) || t->config->moe.overlap_expert_comm;
    if (r->is_off) {
        return;
    }
    r->chunks = me_engine_alloc(t->e, chunks, sizeof *r->chunks);
    r->actions = me_engine_alloc(t->e, chunks * KINDS, sizeof *r->actions);
    r->microbatches = me_engine_alloc(t->e, chunks * (size_t)r->n_microbatches,
                                      sizeof *r->microbatches);
    r->is_off = r->actions == NULL || r->microbatches == NULL;
    if (!r->is_off) {
        find_places(r, t->spec);
    }
}

void me_repeats_fini(me_trainer *t)
{
    me_repeats *r = t->repeats;
    const size_t chunks = (size_t)t->spec->n_chunks;
    if (r == NULL || r->microbatches == NULL) {
        return;
    }
    for (size_t i = 0; r->actions != NULL && i < chunks * KINDS; i++) {
        me_script_fini(&r->actions[i].script);
    }
    for (size_t i = 0; i < chunks * (size_t)r->n_microbatches; i++) {
        me_blocks_fini(&r->microbatches[i].kept);
    }
}

void me_repeats_begin_iteration(me_trainer *t)
{
    for (int32_t i = 0; !t->repeats->is_off && i < t->spec->n_chunks; i++) {
        t->repeats->chunks[i].n_run_now = 0;
    }
}

/** The last micro-batch may start the reduction of gradients, so it is not like
 * the others. */
static bool is_like_others(const me_trainer *t)
{
    return !t->config->optimizer.overlap_grad_reduce ||
           t->repeats->microbatch < t->repeats->n_microbatches - 1;
}

/** Are the tables of angles there that the recorded action found, and as many
 *  largest values in FP8, which are reduced behind it, those of all chunks? */
static bool finds_the_same(const me_trainer *t, const repeated_action *a)
{
    return memcmp(a->n_amaxes, t->te.fp8.n_amaxes, sizeof a->n_amaxes) == 0 &&
           (!a->touches_ropes ||
            me_rope_caches_are_alike(&t->rope_cache, &a->ropes_before));
}

static bool can_repeat_forward(const me_trainer *t)
{
    const me_repeats *r = t->repeats;
    const repeated_chunk *chunk = &r->chunks[r->chunk];
    const bool has_drops = action_of(r, ME_ACTION_FORWARD)->script.has_drops;
    const int32_t n_run = t->iteration == 0 ? RUN_AT_FIRST
                          : has_drops       ? RUN_WITH_DROPS
                                            : RUN_LATER;
    return !chunk->runs_all && microbatch_of(r)->place >= n_run &&
           chunk->n_run_now >= n_run && is_like_others(t) &&
           action_of(r, ME_ACTION_FORWARD)->is_proven &&
           finds_the_same(t, action_of(r, ME_ACTION_FORWARD));
}

void me_repeats_begin_action(me_trainer *t, me_action_kind kind, int32_t chunk,
                             int32_t microbatch)
{
    me_repeats *r = t->repeats;
    r->kind = kind;
    r->chunk = chunk;
    r->microbatch = microbatch;
    r->is_repeated = false;
    r->output = NULL;
    if (r->is_off || !me_engine_is_ok(t->e)) {
        return;
    }
    repeated_microbatch *m = microbatch_of(r);
    if (kind == ME_ACTION_FORWARD) {
        m->input = NULL;
        m->is_repeated = can_repeat_forward(t);
        m->kept.count = 0;
        m->gradient_storage = NULL;
    }
    r->is_repeated = m->is_repeated;
    me_launch_mute(t->e, r->is_repeated);
}

void me_repeats_end_action(me_trainer *t, const me_launch *begin)
{
    me_launch_mute(t->e, false);
    if (t->repeats->is_repeated) {
        me_launch repeated = *begin;
        repeated.kind = ME_LAUNCH_ACTION_REPEATED;
        me_launch_tell(t->e, repeated);
    }
    t->repeats->is_repeated = false;
}

/** Callers hold the tensor, and so may graphs that modules keep. */
static void hand(const me_tensor *x)
{
    if (x != NULL && x->storage != NULL) {
        x->storage->is_handed = true;
    }
}

/** Note what the action works on: tensors, and blocks that the micro-batch
 * keeps. */
static void bind_inputs(me_repeats *r, me_tensor *const *inputs)
{
    repeated_microbatch *m = microbatch_of(r);
    if (r->kind == ME_ACTION_FORWARD) {
        m->input = inputs[ME_ACTION_INPUT];
        hand(m->input);
    }
    r->inputs = (me_script_inputs){.kept = &m->kept};
    for (int i = 0; i < ME_SCRIPT_INPUTS; i++) {
        r->inputs.tensors[i] = inputs[i] == NULL ? NULL : inputs[i]->storage;
    }
    const me_tensor *gradient = inputs[ME_ACTION_GRADIENT];
    if (r->kind == ME_ACTION_WEIGHT_GRADIENT) {
        r->inputs.tensors[ME_ACTION_GRADIENT] =
            m->gradient == NULL ? m->gradient_storage : m->gradient->storage;
    } else if (gradient != NULL && gradient->storage != NULL) {
        r->gradient_refs = gradient->refs;
        r->gradient_storage_refs = gradient->storage->refs;
    }
    for (int i = 0; i < ME_SCRIPT_INPUTS; i++) {
        const me_storage *storage = r->inputs.tensors[i];
        r->inputs.blocks[i] = storage == NULL ? 0 : storage->block;
    }
}

/** Fail: what was told of this micro-batch's forward may be wrong. A program that
 *  died for want of memory has failed already, and says how. */
static void give_up(me_trainer *t)
{
    if (!me_engine_is_ok(t->e)) {
        return;
    }
    if (t->spec->must_run_all != NULL) {
        *t->spec->must_run_all = true;
    }
    me_engine_fail(t->e, ME_ERR_INTERNAL,
                   "micro-batch %d of chunk %d is not like those before",
                   t->repeats->microbatch, t->repeats->chunk);
}

/** Name of a forward's point, of which only the end is inside. */
static const char *point_name(void *self, const char *name)
{
    const char *what = strchr(name, '_');
    return what == NULL ? name : me_forward_name(self, what + 1);
}

/** A backward of inputs alone has kept the output's gradient for its weights,
 *  as a tensor or a view of it; once those are made, it is gone. */
static void hold_gradient(me_trainer *t, const repeated_action *a,
                          me_tensor *gradient)
{
    repeated_microbatch *m = microbatch_of(t->repeats);
    if (a->keeps_gradient) {
        m->gradient = me_retain(gradient);
    } else if (a->keeps_view) {
        const me_frame frame = me_enter(t->e);
        m->gradient = me_retain(me_detach(t->e, gradient));
        me_leave(t->e, frame, NULL);
    }
}

/** me_script_part.release: the action drops the last reference to an input. */
static void release(void *self, uint32_t index)
{
    me_trainer *t = self;
    if (index == ME_ACTION_OUTPUT) {
        me_clear(t->e, t->repeats->output);
    } else {
        me_clear(t->e, &microbatch_of(t->repeats)->gradient);
    }
}

static bool is_last_holder(const me_tensor *x)
{
    return x != NULL && x->refs == 1 && x->storage->refs == 1;
}

/** Are the inputs that the action frees held by nobody else? */
static bool frees_all(const me_trainer *t, const repeated_action *a)
{
    const me_repeats *r = t->repeats;
    return (!a->script.is_freed[ME_ACTION_OUTPUT] ||
            (r->output != NULL && is_last_holder(*r->output))) &&
           (!a->script.is_freed[ME_ACTION_GRADIENT] ||
            is_last_holder(microbatch_of(r)->gradient));
}

/** The input's gradient goes with the input. */
static void hand_gradient(const me_repeats *r, me_tensor *const *outputs)
{
    if (r->kind == ME_ACTION_BACKWARD || r->kind == ME_ACTION_INPUT_GRADIENT) {
        hand(outputs[0]);
    }
}

/** Make an output of the action. As long as it lives its graph must hold the
 * chunk's input, the leaf that gradients go to. */
static me_tensor *make(me_trainer *t, const repeated_action *a,
                       const repeated_tensor *x)
{
    return me_script_make(t->e, &x->like, &x->storage, a->script.ids[x->slot],
                          x->has_graph ? me_repeats_input(t) : NULL);
}

/** Make the tensors that the action would have made. */
static void follow(me_trainer *t, repeated_action *a, me_tensor *const *inputs,
                   me_tensor **outputs)
{
    me_repeats *r = t->repeats;
    for (int i = 0; i < ME_ACTION_OUTPUTS; i++) {
        const repeated_tensor *x = &a->outputs[i];
        outputs[i] = x->is_there ? make(t, a, x) : NULL;
    }
    hand_gradient(r, outputs);
    if (r->kind == ME_ACTION_INPUT_GRADIENT) {
        hold_gradient(t, a, inputs[ME_ACTION_GRADIENT]);
    }
}

void me_repeats_name_output(me_trainer *t, me_tensor **output)
{
    t->repeats->output = output;
}

me_tensor *me_repeats_input(const me_trainer *t)
{
    return t->repeats->is_off ? NULL : microbatch_of(t->repeats)->input;
}

bool me_repeats_tell(me_trainer *t, me_tensor *const *inputs,
                     me_tensor **outputs)
{
    me_repeats *r = t->repeats;
    if (r->is_off || !me_engine_is_ok(t->e)) {
        return false;
    }
    bind_inputs(r, inputs);
    if (!r->is_repeated) {
        r->calls = me_communicate_position(t->comm);
        r->ropes = t->rope_cache;
        me_script_begin(t->e);
        return false;
    }
    repeated_action *a = action_of(r, r->kind);
    const me_script_part part = {.name = point_name,
                                 .release = release,
                                 .self = t,
                                 .is_usual = frees_all(t, a)};
    if (!a->is_proven || a->iteration != t->iteration ||
        !finds_the_same(t, a) ||
        !me_script_tell(t->e, &a->script, a->id, &r->inputs, &part)) {
        give_up(t);
        return true;
    }
    me_communicate_repeat(t->e, t->comm, a->calls_begin, a->calls_end);
    if (a->touches_ropes) {
        me_rope_cache_order(&t->rope_cache, &a->ropes_after);
    }
    me_blocks *kept = &microbatch_of(r)->kept;
    if (me_script_keep(t->e, &a->script, kept)) {
        me_script_set_attributes(
            t->e, &a->script, true,
            r->kind == ME_ACTION_FORWARD ? me_repeats_input(t) : NULL, kept);
        follow(t, a, inputs, outputs);
    }
    return true;
}

/** Note the outputs. @return false: somebody else holds one */
static bool read_outputs(repeated_action *a, me_tensor *const *outputs,
                         const me_storage **storages)
{
    uint32_t n = 0;
    for (int i = 0; i < ME_ACTION_OUTPUTS; i++) {
        const me_tensor *x = outputs[i];
        a->outputs[i] = (repeated_tensor){.is_there = x != NULL};
        if (x == NULL) {
            continue;
        }
        if (x->storage == NULL || x->storage->refs != 1 || x->refs != 1 ||
            x->storage->is_empty) {
            return false;
        }
        a->outputs[i].like = *x;
        a->outputs[i].has_graph = x->grad_fn != NULL;
        a->outputs[i].storage = *x->storage;
        storages[n++] = x->storage;
    }
    return true;
}

static void read_slots(repeated_action *a, const uint32_t *slots)
{
    for (int i = 0; i < ME_ACTION_OUTPUTS; i++) {
        if (a->outputs[i].is_there) {
            a->outputs[i].slot = *slots++;
        }
    }
}

static void read_gradient(me_repeats *r, repeated_action *a,
                          const me_tensor *gradient)
{
    const bool is_there = gradient != NULL && gradient->storage != NULL;
    a->keeps_gradient = is_there && gradient->refs > r->gradient_refs;
    a->keeps_view =
        is_there && gradient->storage->refs > r->gradient_storage_refs;
    if (a->keeps_gradient || a->keeps_view) {
        microbatch_of(r)->gradient_storage = gradient->storage;
    }
}

/** Is all that the micro-batch has kept gone when its last action ends? */
static bool is_complete(const me_repeats *r, const repeated_action *a,
                        const me_script *s)
{
    const bool holds = a->keeps_gradient || a->keeps_view;
    const bool is_last =
        r->kind == ME_ACTION_BACKWARD || r->kind == ME_ACTION_WEIGHT_GRADIENT;
    const bool has_gradient = r->kind == ME_ACTION_WEIGHT_GRADIENT &&
                              r->inputs.tensors[ME_ACTION_GRADIENT] != NULL;
    return !s->is_freed[ME_ACTION_INPUT] && (!is_last || s->n_kept == 0) &&
           s->is_freed[ME_ACTION_GRADIENT] == has_gradient &&
           (!holds || r->kind == ME_ACTION_INPUT_GRADIENT);
}

/** The autograd engine returns to the module that called it; other actions end
 * in whatever module they end in. */
static bool restores_module(me_action_kind kind)
{
    return kind == ME_ACTION_BACKWARD || kind == ME_ACTION_INPUT_GRADIENT;
}

void me_repeats_end(me_trainer *t, me_tensor *const *inputs,
                    me_tensor *const *outputs)
{
    me_repeats *r = t->repeats;
    if (r->is_off || !me_engine_is_ok(t->e)) {
        return;
    }
    repeated_action *a = action_of(r, r->kind);
    repeated_chunk *chunk = &r->chunks[r->chunk];
    if (r->kind == ME_ACTION_FORWARD) {
        chunk->n_run_now++;
    }
    hand_gradient(r, outputs);
    const me_storage *storages[ME_ACTION_OUTPUTS + 1] = {NULL};
    uint32_t slots[ME_ACTION_OUTPUTS] = {0};
    me_script script = {.n_events = 0};
    const bool is_sound = read_outputs(a, outputs, storages);
    const bool is_written =
        me_script_end(t->e, restores_module(r->kind), &r->inputs, storages,
                      slots, &script) &&
        is_sound;
    read_gradient(r, a, inputs[ME_ACTION_GRADIENT]);
    if (!is_written || !is_complete(r, a, &script) || chunk->runs_all) {
        me_script_fini(&script);
        a->is_proven = false;
        a->n_failed++;
        chunk->runs_all = chunk->runs_all || a->n_failed >= FAILED_MAX;
        microbatch_of(r)->kept.count = 0;
        return;
    }
    read_slots(a, slots);
    me_blocks *kept = &microbatch_of(r)->kept;
    if (me_script_keep(t->e, &script, kept)) {
        me_script_set_attributes(t->e, &script, false, NULL, kept);
    }
    a->is_proven = a->script.events != NULL &&
                   me_script_is_same(&a->script, &script) &&
                   me_rope_caches_are_alike(&a->ropes_before, &r->ropes);
    a->touches_ropes = t->rope_cache.n_touched != r->ropes.n_touched;
    a->ropes_before = r->ropes;
    a->ropes_after = t->rope_cache;
    memcpy(a->n_amaxes, t->te.fp8.n_amaxes, sizeof a->n_amaxes);
    // A last stage's backward begins with the loss's scale, outputs there.
    script.follows_outer = t->chunks[r->chunk].spec.post_process;
    a->id = a->is_proven ? a->id : r->n_ids++;
    me_script_fini(&a->script);
    a->script = script;
    a->iteration = t->iteration;
    a->calls_begin = r->calls;
    a->calls_end = me_communicate_position(t->comm);
}

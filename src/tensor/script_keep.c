/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks that modules keep from one micro-batch to the next, in scripts. */
#include "base/alloc.h"
#include "tensor/engine_private.h"
#include "tensor/script.h"
#include "tensor/script_reader.h"

/** Is it a block that the micro-batch and attributes hold? */
static bool is_shared(const me_script_reader *r, uint32_t slot)
{
    me_storage *const *storages = r->inputs->kept->storages;
    return slot >= ME_SCRIPT_INPUTS && slot < r->script->n_inputs &&
           storages != NULL && storages[slot - ME_SCRIPT_INPUTS] != NULL;
}

static void add_drop(me_script_reader *r, me_script_drop drop,
                     me_module_id module, uint32_t slot)
{
    me_event event = {.kind = ME_EVENT_FREE_REQUESTED, .module = module};
    me_script_event *added = me_script_add_event(r, &event, slot);
    added->drop = (uint8_t)drop;
    r->script->has_drops = true;
}

/** The micro-batch lets go of a block that it shares with attributes; what
 *  looked like that before was not the last of what it holds. */
static void drop_kept(me_script_reader *r, me_module_id module, uint32_t slot)
{
    const uint32_t before = r->asked[slot];
    if (before != UINT32_MAX) {
        r->script->events[before].drop = ME_SCRIPT_NOTHING;
    }
    r->asked[slot] = r->script->n_events;
    add_drop(r, ME_SCRIPT_KEPT, module, slot);
}

void me_script_read_keeping(me_script_reader *r, const me_kept_change *change)
{
    const uint32_t slot = change->has_block
                              ? r->e->recording.slots[change->block]
                              : ME_SCRIPT_NO_SLOT;
    const bool is_new =
        slot != ME_SCRIPT_NO_SLOT && slot >= r->script->n_inputs;
    switch (change->keeping) {
    case ME_KEEPING_LET_GO:
        if (!is_new) {
            r->is_sound = r->is_sound && change->has_block;
            r->is_letting_go = true;
            r->let_go = r->script->n_events;
            r->let_go_block = change->block;
            add_drop(r, ME_SCRIPT_ATTRIBUTE, change->module, ME_SCRIPT_NO_SLOT);
            r->script->events[r->let_go].attribute = change->attribute;
        }
        break;
    case ME_KEEPING_LEFT:
        if (is_shared(r, slot)) {
            drop_kept(r, change->module, slot);
        }
        r->is_sound = r->is_sound && (is_new || is_shared(r, slot));
        break;
    case ME_KEEPING_GONE:
        r->is_letting_go = false;
        r->is_handed = false;
        break;
    case ME_KEEPING_HANDED:
        r->is_handed = r->is_letting_go && slot == ME_SCRIPT_NO_SLOT;
        r->handed_block = change->block;
        break;
    case ME_KEEPING_AGAIN: r->is_sound = false; break;
    case ME_KEEPING_SET: r->n_set++; break;
    }
}

/** The free of a block that attributes hold or held, which is no event of its
 *  own. @return false: it is another block */
bool me_script_read_shared_free(me_script_reader *r, const me_event *event,
                                uint32_t slot)
{
    const bool is_let_go = r->let_go != ME_SCRIPT_NO_EVENT &&
                           event->block == r->let_go_block &&
                           (slot == ME_SCRIPT_NO_SLOT || is_shared(r, slot));
    const bool is_handed = r->is_handed && event->block == r->handed_block &&
                           slot == ME_SCRIPT_NO_SLOT;
    if (!is_let_go && !is_handed && !is_shared(r, slot)) {
        return false;
    }
    r->is_sound =
        r->is_sound && !event->is_late && event->kind != ME_EVENT_RECATEGORIZE;
    if (event->kind == ME_EVENT_FREE_COMPLETED) {
        r->level -= (int64_t)event->bytes;
        r->e->recording.slots[event->block] = ME_SCRIPT_NO_SLOT;
        r->is_handed = false;
        r->let_go = is_handed ? r->let_go : ME_SCRIPT_NO_EVENT;
    } else if (is_handed) {
        r->script->frees_leaf = true;
    } else if (is_let_go) {
        r->script->events[r->let_go].frees = true;
    } else {
        drop_kept(r, event->module, slot);
        r->script->events[r->asked[slot]].frees = true;
    }
    return true;
}

/** An attribute that was set, as it is now. What attributes hold alone is not the
 *  micro-batch's. */
static void add_attribute(me_script_reader *r, me_tensor **attribute)
{
    me_script *s = r->script;
    const me_tensor *x = *attribute;
    const me_storage *storage = x->storage;
    const bool has_block = storage != NULL && !storage->is_empty;
    const uint32_t slot =
        has_block ? r->e->recording.slots[storage->block] : ME_SCRIPT_NO_SLOT;
    if (slot == ME_SCRIPT_NO_SLOT || slot < s->n_inputs || storage->is_late ||
        storage->awaited != NULL) {
        r->is_sound = false;
        return;
    }
    const bool is_kept = me_is_held_by_others(x);
    s->attributes[s->n_attributes++] = (me_script_attribute){
        .attribute = attribute,
        .like = *x,
        .has_graph = x->grad_fn != NULL,
        .storage = *storage,
        .slot = slot,
        .kept = is_kept ? 0 : ME_SCRIPT_NO_SLOT,
    };
    if (!is_kept) {
        r->asked[slot] = s->n_events;
    }
}

static bool has_attribute(const me_script *s, me_tensor **attribute)
{
    for (uint32_t i = 0; i < s->n_attributes; i++) {
        if (s->attributes[i].attribute == attribute) {
            return true;
        }
    }
    return false;
}

/** Attributes that were set and still are. @return false without memory */
bool me_script_list_attributes(me_script_reader *r)
{
    const me_recording *x = &r->e->recording;
    me_script *s = r->script;
    if (r->n_set == 0) {
        return true;
    }
    s->attributes =
        me_alloc(r->n_set, sizeof *s->attributes, "script.attributes");
    for (uint32_t i = 0; s->attributes != NULL && i < x->n_keepings; i++) {
        me_tensor **attribute = x->keepings[i].attribute;
        if (x->keepings[i].keeping == ME_KEEPING_SET && *attribute != NULL &&
            !has_attribute(s, attribute)) {
            add_attribute(r, attribute);
        }
    }
    return s->attributes != NULL;
}

/** Where the micro-batch keeps blocks of attributes. */
void me_script_find_kept(me_script_reader *r)
{
    me_script *s = r->script;
    for (uint32_t i = 0; i < s->n_attributes; i++) {
        me_script_attribute *a = &s->attributes[i];
        while (a->kept < s->n_kept && s->kept[a->kept] != a->slot) {
            a->kept++;
        }
        r->is_sound = r->is_sound &&
                      (a->kept == ME_SCRIPT_NO_SLOT || a->kept < s->n_kept);
    }
}

/** It is never run backward. */
static const me_op told_op = {.node = "told"};

me_tensor *me_script_make(me_engine *e, const me_tensor *like,
                          const me_storage *storage, uint32_t block,
                          me_tensor *leaf)
{
    me_tensor *x = me_tensor_adopt(e, like, storage, block);
    if (x == NULL || leaf == NULL) {
        return x;
    }
    // What ran did so on the tape, at least where this tensor was made, which may
    // be within a program without one (torch.enable_grad()).
    const bool records = me_grad_enable(e, true);
    x = me_output(e, me_record1(e, &told_op, leaf), x);
    me_grad_enable(e, records);
    return x;
}

/** The tensor that an attribute gets: the one that an earlier attribute has, or
 *  one of its own. As long as it lives its graph holds the action's input. */
static me_tensor *make_kept(me_engine *e, const me_script *s, uint32_t index,
                            me_tensor *leaf)
{
    const me_script_attribute *a = &s->attributes[index];
    for (uint32_t i = 0; i < index; i++) {
        if (s->attributes[i].slot == a->slot) {
            return me_retain(*s->attributes[i].attribute);
        }
    }
    return me_script_make(e, &a->like, &a->storage, s->ids[a->slot],
                          a->has_graph ? leaf : NULL);
}

bool me_script_keep(me_engine *e, const me_script *script, me_blocks *kept)
{
    const uint32_t n = script->n_kept;
    if (n > kept->capacity) {
        uint32_t *ids = me_realloc(kept->ids, n, sizeof *ids, "script.blocks");
        kept->ids = ids == NULL ? kept->ids : ids;
        me_storage **storages = me_realloc(
            kept->storages, n, sizeof(me_storage *), "script.blocks");
        kept->storages = storages == NULL ? kept->storages : storages;
        if (ids == NULL || storages == NULL) {
            me_engine_fail(e, ME_ERR_NOMEM, "no host memory for an action");
            return false;
        }
        kept->capacity = n;
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t slot = script->kept[i]; // ascending
        kept->ids[i] = script->ids[slot];
        kept->storages[i] = slot < script->n_inputs
                                ? kept->storages[slot - ME_SCRIPT_INPUTS]
                                : NULL;
    }
    kept->count = n;
    return true;
}

void me_script_set_attributes(me_engine *e, const me_script *script,
                              bool was_told, me_tensor *leaf,
                              const me_blocks *kept)
{
    for (uint32_t i = 0; i < script->n_attributes && me_engine_is_ok(e); i++) {
        const me_script_attribute *a = &script->attributes[i];
        if (was_told) {
            me_tensor *x = make_kept(e, script, i, leaf);
            me_attribute_set(e, a->attribute, x);
            me_release(e, x);
        }
        const me_tensor *x = *a->attribute;
        if (x != NULL && a->kept != ME_SCRIPT_NO_SLOT &&
            kept->storages[a->kept] == NULL) {
            kept->storages[a->kept] = x->storage;
            x->storage->refs += was_told ? 1 : 0;
        }
    }
}

/** Does a graph of an attribute hold the input of an earlier micro-batch alone?
 *  Of an action that was run it may. */
static bool may_free_leaf(const me_tensor *x)
{
    const me_node *node = x == NULL ? NULL : x->grad_fn;
    return node != NULL &&
           (node->op != &told_op || node->edges[0].node->variable->refs == 1);
}

/** Will it free what the recorded one freed? */
bool me_script_frees_as_recorded(const me_script *s, const me_blocks *kept)
{
    bool is_alike = true;
    bool frees_leaf = false;
    for (uint32_t i = 0; is_alike && s->has_drops && i < s->stretches.count;
         i++) {
        const uint32_t event = s->stretches.items[i].event;
        const me_script_event *x =
            event == ME_SCRIPT_NO_EVENT ? NULL : &s->events[event];
        if (x == NULL || x->drop <= ME_SCRIPT_NOTHING) {
            continue;
        }
        const me_storage *storage = NULL;
        if (x->drop == ME_SCRIPT_KEPT) {
            storage = kept->storages[x->slot - ME_SCRIPT_INPUTS];
        } else if (*x->attribute != NULL && (*x->attribute)->refs == 1) {
            storage = (*x->attribute)->storage;
            frees_leaf = frees_leaf || may_free_leaf(*x->attribute);
        }
        is_alike = x->frees == (storage != NULL && storage->refs == 1);
    }
    return is_alike && frees_leaf == s->frees_leaf;
}

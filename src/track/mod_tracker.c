/* SPDX-License-Identifier: BSD-3-Clause */
#include "track/mod_tracker.h"

#include "base/alloc.h"
#include "base/str.h"

#include <string.h>

/** A name, which modules of several roots of one class share. */
typedef struct fqn {
    char *text;      /**< owned */
    uint32_t active; /**< how often it runs */
} fqn;

static const uint32_t NO_NAME = UINT32_MAX;

/** Have a module's children been named? */
enum {
    VISIT_NEVER,
    VISIT_NOW,
    VISIT_DONE
};

struct me_mod_tracker {
    me_engine *e;
    fqn *names;
    uint32_t n_names;
    uint32_t names_capacity;
    uint32_t *name_of; /**< by module; NO_NAME: not seen yet */
    uint8_t *visits;   /**< by module */
    uint32_t n_modules;
    me_module_id *queue; /**< whose backward ends with the whole backward */
    uint32_t n_queue;
    uint32_t queue_capacity;
    uint32_t n_running; /**< forwards, one inside another */
    me_node **leaves;   /**< of their inputs; held */
    uint32_t n_leaves;
    uint32_t leaves_capacity;
    bool is_armed; /**< the backward that runs ends with the queue's modules */
    uint32_t n_queued; /**< of them, when it was armed */
    me_mod_observer observers[ME_MAX_MOD_OBSERVERS];
    uint32_t n_observers;
};

/** Room for one more; false, and the engine has failed, without memory. */
static bool reserve(me_mod_tracker *t, void **items, uint32_t count,
                    uint32_t *capacity, size_t size)
{
    void *larger = me_grow(*items, count, capacity, size, "mod_tracker");
    if (larger == NULL) {
        me_engine_fail(t->e, ME_ERR_NOMEM, "no host memory for ModTracker");
        return false;
    }
    *items = larger;
    return true;
}

/** Places for modules that were added since. */
static bool know_modules(me_mod_tracker *t)
{
    const uint32_t count = me_engine_modules(t->e)->count;
    if (count <= t->n_modules) {
        return true;
    }
    uint32_t *larger =
        me_realloc(t->name_of, count, sizeof *larger, "mod_tracker");
    if (larger == NULL) {
        me_engine_fail(t->e, ME_ERR_NOMEM, "no host memory for ModTracker");
        return false;
    }
    t->name_of = larger;
    uint8_t *visits = me_realloc(t->visits, count, 1, "mod_tracker");
    if (visits == NULL) {
        me_engine_fail(t->e, ME_ERR_NOMEM, "no host memory for ModTracker");
        return false;
    }
    t->visits = visits;
    for (uint32_t i = t->n_modules; i < count; i++) {
        t->name_of[i] = NO_NAME;
        t->visits[i] = VISIT_NEVER;
    }
    t->n_modules = count;
    return true;
}

/** The number of a name, new or known. */
static uint32_t intern(me_mod_tracker *t, const char *text)
{
    for (uint32_t i = 0; i < t->n_names; i++) {
        if (strcmp(t->names[i].text, text) == 0) {
            return i;
        }
    }
    void *items = t->names;
    if (!reserve(t, &items, t->n_names, &t->names_capacity, sizeof *t->names)) {
        return NO_NAME;
    }
    t->names = items;
    const size_t bytes = strlen(text) + 1;
    char *copy = me_alloc(bytes, 1, "mod_tracker");
    if (copy == NULL) {
        me_engine_fail(t->e, ME_ERR_NOMEM, "no host memory for ModTracker");
        return NO_NAME;
    }
    memcpy(copy, text, bytes);
    t->names[t->n_names] = (fqn){.text = copy};
    return t->n_names++;
}

/** Names of the children of a module whose children have none yet, and of
 *  theirs; a child that ran before its parent gets a new name, what is below it
 *  keeps the old one. Parents stand before children in the tree. */
static void name_children(me_mod_tracker *t, me_module_id module)
{
    const me_module_tree *tree = me_engine_modules(t->e);
    t->visits[module] = VISIT_NOW;
    for (uint32_t i = module + 1; i < tree->count; i++) {
        const me_module_id parent = tree->modules[i].parent;
        if (t->visits[parent] != VISIT_NOW || !me_engine_is_ok(t->e)) {
            continue;
        }
        me_str text = {0};
        me_str_printf(&text, "%s.%s", t->names[t->name_of[parent]].text,
                      tree->modules[i].name);
        if (me_str_status(&text) == ME_OK) {
            t->name_of[i] = intern(t, me_str_text(&text));
        } else {
            me_engine_fail(t->e, ME_ERR_NOMEM, "no host memory for ModTracker");
        }
        me_str_fini(&text);
        if (t->visits[i] == VISIT_NEVER) {
            t->visits[i] = VISIT_NOW;
        }
    }
    for (uint32_t i = module; i < tree->count; i++) {
        t->visits[i] = t->visits[i] == VISIT_NOW ? VISIT_DONE : t->visits[i];
    }
}

/** A module's name, given to it where it has none. @return false on failure */
static bool know(me_mod_tracker *t, me_module_id module)
{
    if (!know_modules(t)) {
        return false;
    }
    if (t->name_of[module] == NO_NAME) { // a root is named by its class
        const char *name = me_engine_modules(t->e)->modules[module].class_name;
        t->name_of[module] = intern(t, name == NULL ? "Module" : name);
    }
    if (t->visits[module] == VISIT_NEVER && me_engine_is_ok(t->e)) {
        name_children(t, module);
    }
    return t->name_of[module] != NO_NAME;
}

static fqn *name_of(const me_mod_tracker *t, me_module_id module)
{
    return &t->names[t->name_of[module]];
}

static void tell(const me_mod_tracker *t, me_mod_event_kind kind,
                 me_module_id module, me_tensor *data)
{
    const fqn *name = name_of(t, module);
    const me_mod_event event = {
        .kind = kind,
        .module = module,
        .fqn = name->text,
        .is_backward = me_is_backward(t->e),
        .is_parent = name->active > 0,
        .data = data,
    };
    for (uint32_t i = 0; i < t->n_observers; i++) {
        t->observers[i].on_event(t->observers[i].self, &event);
    }
}

/** The gradient of a module's input is there, or the backward has ended. */
static void end_backward_of(void *self, uint32_t module)
{
    me_mod_tracker *t = self;
    tell(t, ME_MOD_POST_BACKWARD, module, NULL);
    fqn *name = name_of(t, module);
    if (name->active > 0) {
        name->active--;
    }
}

/** The gradient of a module's output is there. */
static void begin_backward_of(void *self, uint32_t module)
{
    me_mod_tracker *t = self;
    if (!t->is_armed) {
        t->is_armed = true;
        t->n_queued = t->n_queue;
    }
    name_of(t, module)->active++;
    tell(t, ME_MOD_PRE_BACKWARD, module, NULL);
}

/** A leaf's node, which must live until its graph is there; NULL is allowed. */
static void hold_leaf(me_mod_tracker *t, me_node *leaf)
{
    void *items = t->leaves;
    if (leaf == NULL) {
        return;
    }
    if (!reserve(t, &items, t->n_leaves, &t->leaves_capacity,
                 sizeof(me_node *))) {
        me_node_release(t->e, leaf);
        return;
    }
    t->leaves = items;
    t->leaves[t->n_leaves++] = leaf;
}

static void pre_forward(void *self, me_module_id module, me_tensor *x)
{
    me_mod_tracker *t = self;
    t->n_running++;
    if (!know(t, module)) {
        return;
    }
    name_of(t, module)->active++;
    tell(t, ME_MOD_PRE_FORWARD, module, x);
    if (me_is_backward(t->e)) {
        return;
    }
    if (x->requires_grad) {
        hold_leaf(t, me_tensor_hook(t->e, x, end_backward_of, t, module));
        return;
    }
    void *items = t->queue;
    if (reserve(t, &items, t->n_queue, &t->queue_capacity, sizeof *t->queue)) {
        t->queue = items;
        t->queue[t->n_queue++] = module;
    }
}

static void post_forward(void *self, me_module_id module, me_tensor *y)
{
    me_mod_tracker *t = self;
    t->n_running--;
    if (!know(t, module)) {
        return;
    }
    tell(t, ME_MOD_POST_FORWARD, module, y);
    fqn *name = name_of(t, module);
    if (name->active > 0) {
        name->active--;
    }
    if (!me_is_backward(t->e)) {
        me_node_release(t->e,
                        me_tensor_hook(t->e, y, begin_backward_of, t, module));
    }
    if (t->n_running == 0) { // the graph holds its leaves by now
        for (uint32_t i = 0; i < t->n_leaves; i++) {
            me_node_release(t->e, t->leaves[i]);
        }
        t->n_leaves = 0;
    }
}

/** Modules of the queue end in reverse order, then nothing runs any more. */
static void end_backward(void *self)
{
    me_mod_tracker *t = self;
    if (!t->is_armed) {
        return;
    }
    for (uint32_t i = t->n_queued; i > 0; i--) {
        end_backward_of(t, t->queue[i - 1]);
    }
    t->n_queue = 0;
    t->is_armed = false;
    for (uint32_t i = 0; i < t->n_names; i++) {
        t->names[i].active = 0;
    }
}

me_mod_tracker *me_mod_tracker_create(me_engine *e)
{
    me_mod_tracker *t = me_alloc(1, sizeof *t, "mod_tracker");
    if (t == NULL) {
        return NULL;
    }
    t->e = e;
    me_engine_hook(e, (me_hooks){.pre_forward = pre_forward,
                                 .post_forward = post_forward,
                                 .end_backward = end_backward,
                                 .self = t});
    return t;
}

void me_mod_tracker_destroy(me_mod_tracker *t)
{
    if (t == NULL) {
        return;
    }
    for (uint32_t i = 0; i < t->n_names; i++) {
        me_free(t->names[i].text);
    }
    me_free(t->names);
    me_free(t->name_of);
    me_free(t->visits);
    me_free(t->queue);
    me_free(t->leaves);
    me_free(t);
}

void me_mod_tracker_observe(me_mod_tracker *t, me_mod_observer observer)
{
    if (t->n_observers == ME_MAX_MOD_OBSERVERS) {
        me_engine_fail(t->e, ME_ERR_INTERNAL,
                       "more than %d users of ModTracker",
                       ME_MAX_MOD_OBSERVERS);
        return;
    }
    t->observers[t->n_observers++] = observer;
}

bool me_mod_tracker_is_parent(const me_mod_tracker *t, me_module_id module)
{
    return module < t->n_modules && t->name_of[module] != NO_NAME &&
           name_of(t, module)->active > 0;
}

const char *me_mod_tracker_parent(const me_mod_tracker *t, uint32_t at)
{
    for (uint32_t i = 0; i < t->n_names; i++) {
        if (t->names[i].active > 0 && at-- == 0) {
            return t->names[i].text;
        }
    }
    return NULL;
}

const char *me_mod_tracker_fqn(const me_mod_tracker *t, me_module_id module)
{
    return module < t->n_modules && t->name_of[module] != NO_NAME
               ? name_of(t, module)->text
               : NULL;
}

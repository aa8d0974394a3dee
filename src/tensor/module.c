/* SPDX-License-Identifier: BSD-3-Clause */
#include "tensor/module.h"

#include "base/alloc.h"
#include "base/size.h"
#include "tensor/engine_private.h"

#include <stdio.h>
#include <string.h>

static bool reserve(me_module_tree *tree)
{
    me_module_info *modules =
        me_grow(tree->modules, tree->count, &tree->capacity, sizeof *modules,
                "module.tree");
    if (modules != NULL) {
        tree->modules = modules;
    }
    return modules != NULL;
}

bool me_modules_init(me_engine *e)
{
    if (!reserve(&e->tree)) {
        return false;
    }
    e->tree.modules[0] = (me_module_info){.name = "", .path = ""};
    e->tree.count = 1;
    return true;
}

void me_modules_fini(me_engine *e)
{
    me_free(e->tree.modules);
    e->tree = (me_module_tree){0};
}

/** A path and a name with a dot between them, in the engine's arena; NULL
 * without memory. */
static const char *join(me_engine *e, const char *parent, const char *name)
{
    const size_t before = strlen(parent);
    const size_t bytes = before + strlen(name) + 2;
    char *path = me_arena_alloc(e->arena, bytes, 1);
    if (path != NULL) {
        (void)snprintf(path, bytes, "%s%s%s", parent, before == 0 ? "" : ".",
                       name);
    }
    return path;
}

me_module_id me_module_add(me_engine *e, me_module_id parent, const char *name)
{
    const char *path = join(e, e->tree.modules[parent].path, name);
    if (path == NULL || !reserve(&e->tree)) {
        me_engine_fail(e, ME_ERR_NOMEM, "no host memory for the module tree");
        return ME_NO_MODULE;
    }
    const char *dot = strrchr(path, '.');
    e->tree.modules[e->tree.count] = (me_module_info){
        .name = dot == NULL ? path : dot + 1,
        .path = path,
        .parent = parent,
        .depth = e->tree.modules[parent].depth + 1,
    };
    return e->tree.count++;
}

me_module_id me_module_add_as(me_engine *e, me_module_id parent,
                              const char *name, const char *class_name)
{
    const me_module_id module = me_module_add(e, parent, name);
    me_module_set_class(e, module, class_name);
    return module;
}

me_module_id me_module_add_index(me_engine *e, me_module_id parent,
                                 uint32_t index)
{
    char name[16] = "";
    (void)snprintf(name, sizeof name, "%u", index);
    return me_module_add(e, parent, name);
}

void me_module_enter(me_engine *e, me_module_id module)
{
    e->module = module;
    e->tree.modules[module].entered++;
    me_emit(e, &(me_event){.kind = ME_EVENT_MODULE_ENTER, .module = module});
}

/** A list of modules is not entered by the forward of what is in it, so it is
 * not what runs after that either. */
void me_module_leave(me_engine *e)
{
    me_module_info *modules = e->tree.modules;
    me_emit(e, &(me_event){.kind = ME_EVENT_MODULE_LEAVE, .module = e->module});
    modules[e->module].entered--;
    do {
        e->module = modules[e->module].parent;
    } while (e->module != ME_NO_MODULE && modules[e->module].entered == 0);
}

void me_module_resume(me_engine *e, me_module_id module)
{
    e->module = module;
}

me_module_id me_module_current(const me_engine *e)
{
    return e->module;
}

void me_module_set_class(me_engine *e, me_module_id module, const char *name)
{
    e->tree.modules[module].class_name = name;
}

void me_module_set_source(me_engine *e, me_module_id module, const char *where,
                          int line)
{
    e->tree.modules[module].where = where;
    e->tree.modules[module].line = line;
}

static bool is_within(const me_module_tree *tree, me_module_id module,
                      me_module_id ancestor)
{
    while (tree->modules[module].depth > tree->modules[ancestor].depth) {
        module = tree->modules[module].parent;
    }
    return module == ancestor;
}

/** Enter from @p ancestor (exclusive) down to @p module. */
static void enter_down(me_engine *e, me_module_id ancestor, me_module_id module)
{
    if (module != ancestor) {
        enter_down(e, ancestor, e->tree.modules[module].parent);
        me_module_enter(e, module);
    }
}

static void switch_to(me_engine *e, me_module_id module)
{
    if (module == e->module) {
        return;
    }
    while (!is_within(&e->tree, module, e->module)) {
        me_module_leave(e);
    }
    enter_down(e, e->module, module);
}

void me_module_switch(me_engine *e, me_module_id module)
{
    me_recording *r = &e->recording;
    me_module_switch_events x = {.begin = r->count,
                                 .from = e->module,
                                 .to = module,
                                 .is_there = r->is_on};
    const bool is_first = r->is_on && !r->has_module && !r->lead.is_there;
    const bool leads = is_first && (r->stays_outer || module != e->module);
    r->stays_outer = r->stays_outer || (is_first && !leads);
    e->is_at_shard = false;
    switch_to(e, module);
    if (r->is_on) {
        x.end = r->count;
        r->lead = leads ? x : r->lead;
        r->last = x;
        r->n_switches++;
    }
}

void me_module_switch_to_shard(me_engine *e, me_module_id module)
{
    me_module_switch(e, module);
    e->is_at_shard = true;
}

/** What PyTorch's allocator rounds a small block to. */
static uint64_t block_bytes(uint64_t bytes)
{
    return me_round_up(bytes, 512);
}

void me_module_count_buffer(me_engine *e, me_module_id module, uint64_t bytes)
{
    for (me_module_id m = module;; m = e->tree.modules[m].parent) {
        me_module_info *info = &e->tree.modules[m];
        info->buffer_blocks =
            me_size_add(info->buffer_blocks, block_bytes(bytes));
        if (m == ME_NO_MODULE) {
            return;
        }
    }
}

void me_module_share_parameter(me_engine *e, me_module_id module,
                               me_module_id owner, uint64_t bytes)
{
    for (me_module_id m = module; !is_within(&e->tree, owner, m);
         m = e->tree.modules[m].parent) {
        me_module_info *info = &e->tree.modules[m];
        info->parameter_blocks =
            me_size_add(info->parameter_blocks, block_bytes(bytes));
    }
}

void me_module_count_parameter(me_engine *e, me_module_id module,
                               uint64_t numel, uint64_t bytes)
{
    for (me_module_id m = module;; m = e->tree.modules[m].parent) {
        me_module_info *info = &e->tree.modules[m];
        info->parameters = me_size_add(info->parameters, numel);
        info->parameter_bytes = me_size_add(info->parameter_bytes, bytes);
        info->parameter_blocks =
            me_size_add(info->parameter_blocks, block_bytes(bytes));
        if (m == ME_NO_MODULE) {
            return;
        }
    }
}

void me_module_discount_parameter(me_engine *e, me_module_id module,
                                  uint64_t numel, uint64_t bytes)
{
    for (me_module_id m = module;; m = e->tree.modules[m].parent) {
        e->tree.modules[m].parameters -= numel;
        e->tree.modules[m].parameter_bytes -= bytes;
        e->tree.modules[m].parameter_blocks -= block_bytes(bytes);
        if (m == ME_NO_MODULE) {
            return;
        }
    }
}

/** Dotted name of the module that runs, "" for none; borrowed. */
static const char *current_path(const me_engine *e)
{
    return e->tree.modules[e->module].path;
}

const char *me_module_shown(const me_engine *e)
{
    const char *path = current_path(e);
    return path[0] == '\0' ? "(root)" : path;
}

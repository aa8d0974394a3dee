/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/memory_frames.h"

#include "base/alloc.h"

me_status me_frame_writer_init(me_frame_writer *f, const me_memory_trace *trace,
                               const me_module_tree *tree, bool is_shared)
{
    uint32_t n_places = 0;
    f->places = me_memory_trace_places(trace, &n_places);
    f->tree = tree;
    if (!is_shared) {
        return ME_OK;
    }
    f->stack_at = me_alloc(n_places, sizeof *f->stack_at, "report.snapshot");
    f->module_at =
        me_alloc(tree->count, sizeof *f->module_at, "report.snapshot");
    return f->stack_at == NULL || f->module_at == NULL ? ME_ERR_NOMEM : ME_OK;
}

void me_frame_writer_fini(me_frame_writer *f)
{
    me_free(f->stack_at);
    me_free(f->module_at);
    me_str_fini(&f->text);
}

me_status me_frame_writer_status(const me_frame_writer *f)
{
    return me_str_status(&f->text);
}

/** What was written before comes from where it was put. @return false: it was
 *  not, or nothing is shared */
static bool write_again(me_plain_writer *w, const uint32_t *at)
{
    if (at == NULL || *at == 0) {
        return false;
    }
    me_plain_get(w, *at - 1);
    return true;
}

static void put_aside(me_plain_writer *w, uint32_t *at)
{
    if (at != NULL) {
        *at = me_plain_put(w) + 1;
    }
}

static void write_frame(me_plain_writer *w, const char *name, const char *file,
                        int line)
{
    me_plain_open(w, true);
    me_plain_key(w, "name");
    me_plain_text(w, name);
    me_plain_key(w, "filename");
    me_plain_text(w, file);
    me_plain_key(w, "line");
    me_plain_number(w, (uint64_t)line);
    me_plain_close(w);
}

/** A module's frame: its class as the function, its path as the file. */
static void write_module(me_frame_writer *f, me_plain_writer *w,
                         uint32_t module)
{
    uint32_t *at = f->module_at == NULL ? NULL : &f->module_at[module];
    const me_module_info *m = &f->tree->modules[module];
    if (!write_again(w, at)) {
        write_frame(w, m->class_name == NULL ? m->name : m->class_name, m->path,
                    m->line);
        put_aside(w, at);
    }
}

/** An evaluation is no iteration of training, though its number follows theirs. */
static void append_iteration(me_frame_writer *f, const me_trace_place *p)
{
    f->text.length = 0;
    if (p->iteration < 0) {
        me_str_append(&f->text, "before training");
    } else if (p->phase == ME_PHASE_EVALUATION) {
        me_str_append(&f->text, me_phase_name(ME_PHASE_EVALUATION));
    } else {
        me_str_printf(&f->text, "iteration %d", (int)p->iteration);
    }
}

const char *me_frames_iteration(me_frame_writer *f, uint32_t place)
{
    append_iteration(f, &f->places[place]);
    return me_str_text(&f->text);
}

/** The outermost frame: which iteration and micro-batch. */
static void write_iteration(me_frame_writer *f, me_plain_writer *w,
                            const me_trace_place *p)
{
    append_iteration(f, p);
    if (p->microbatch != ME_NO_MICROBATCH) {
        me_str_printf(&f->text, ", micro-batch %d", (int)p->microbatch);
    }
    if (me_str_status(&f->text) == ME_OK) {
        write_frame(w, me_str_text(&f->text), "memest", 0);
    }
}

void me_frames_write(me_frame_writer *f, me_plain_writer *w, uint32_t place)
{
    const me_trace_place *p = &f->places[place];
    uint32_t *at = f->stack_at == NULL ? NULL : &f->stack_at[place];
    if (write_again(w, at)) {
        return;
    }
    me_plain_open(w, false);
    write_frame(w, p->op == NULL || p->op[0] == '\0' ? "(no operation)" : p->op,
                me_category_name((me_category)p->category), 0);
    uint32_t module = p->module < f->tree->count ? p->module : ME_NO_MODULE;
    while (module != ME_NO_MODULE) {
        write_module(f, w, module);
        module = f->tree->modules[module].parent;
    }
    write_frame(w, me_phase_name((me_phase)p->phase), "memest", 0);
    write_iteration(f, w, p);
    me_plain_close(w);
    put_aside(w, at);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "track/comm_tracker.h"

#include "base/alloc.h"
#include "base/size.h"

#include <string.h>

struct me_comm_tracker {
    me_engine *e;
    int32_t iteration;
    me_comm_row *rows;
    uint32_t n_rows;
    uint32_t rows_capacity;
    me_comm_sum *sums;
    uint32_t n_sums;
    uint32_t sums_capacity;
    char **paths; /**< of modules by their id, each owned, or NULL until one is
                       needed: the tracker outlives the engine */
    uint32_t n_paths;
};

/** Room for the path of module @p id. */
static bool grow_paths(me_comm_tracker *t, me_module_id id)
{
    if (id < t->n_paths) {
        return true;
    }
    const uint32_t n = me_engine_modules(t->e)->count;
    char **paths =
        me_realloc(t->paths, n, sizeof *t->paths, "comm_tracker.paths");
    if (paths == NULL) {
        return false;
    }
    memset(paths + t->n_paths, 0, (n - t->n_paths) * sizeof *paths);
    t->paths = paths;
    t->n_paths = n;
    return true;
}

/** A copy of its path; NULL without memory. */
static const char *path_of(me_comm_tracker *t, me_module_id id)
{
    if (!grow_paths(t, id)) {
        return NULL;
    }
    if (t->paths[id] == NULL) {
        t->paths[id] = me_strdup(me_engine_modules(t->e)->modules[id].path,
                                 "comm_tracker.paths");
    }
    return t->paths[id];
}

static me_status append_row(me_comm_tracker *t, const me_collective_op *op)
{
    me_comm_row *rows = me_grow(t->rows, t->n_rows, &t->rows_capacity,
                                sizeof *rows, "comm_tracker.rows");
    if (rows == NULL) {
        return ME_ERR_NOMEM;
    }
    t->rows = rows;
    const char *path = path_of(t, me_module_current(t->e));
    if (path == NULL) {
        return ME_ERR_NOMEM;
    }
    rows[t->n_rows++] = (me_comm_row){
        .op = *op,
        .iteration = me_iteration_get(t->e),
        .microbatch = me_microbatch_get(t->e),
        .phase = me_context_now(t->e)->phase,
        .module = path,
    };
    return ME_OK;
}

static bool is_of(const me_comm_sum *sum, const me_comm_row *row)
{
    return sum->iteration == row->iteration && sum->group == row->op.group &&
           strcmp(sum->name, row->op.name) == 0;
}

static me_status add_to_sums(me_comm_tracker *t, const me_comm_row *row)
{
    uint32_t at = 0;
    while (at < t->n_sums && !is_of(&t->sums[at], row)) {
        at++;
    }
    if (at == t->n_sums) {
        me_comm_sum *sums = me_grow(t->sums, t->n_sums, &t->sums_capacity,
                                    sizeof *sums, "comm_tracker.sums");
        if (sums == NULL) {
            return ME_ERR_NOMEM;
        }
        t->sums = sums;
        sums[t->n_sums++] = (me_comm_sum){.name = row->op.name,
                                          .group = row->op.group,
                                          .group_size = row->op.group_size,
                                          .iteration = row->iteration,
                                          .has_bytes = row->op.has_bytes};
    }
    t->sums[at].count++;
    t->sums[at].bytes = me_size_add(t->sums[at].bytes, row->op.bytes);
    return ME_OK;
}

static void on_collective(void *self, const me_collective_op *op)
{
    me_comm_tracker *t = self;
    const int32_t iteration = me_iteration_get(t->e);
    if (iteration >= 0 && iteration != t->iteration) {
        return;
    }
    me_status status = append_row(t, op);
    if (status == ME_OK) {
        status = add_to_sums(t, &t->rows[t->n_rows - 1]);
    }
    if (status != ME_OK) {
        me_engine_fail(t->e, status, "no host memory for collectives");
    }
}

me_comm_tracker *me_comm_tracker_create(me_engine *e, int32_t iteration)
{
    me_comm_tracker *t = me_alloc(1, sizeof *t, "comm_tracker");
    if (t == NULL) {
        return NULL;
    }
    t->e = e;
    t->iteration = iteration;
    me_engine_hook(e, (me_hooks){.collective = on_collective, .self = t});
    return t;
}

void me_comm_tracker_destroy(me_comm_tracker *t)
{
    if (t == NULL) {
        return;
    }
    for (uint32_t i = 0; i < t->n_paths; i++) {
        me_free(t->paths[i]);
    }
    me_free(t->paths);
    me_free(t->sums);
    me_free(t->rows);
    me_free(t);
}

const me_comm_row *me_comm_tracker_rows(const me_comm_tracker *t,
                                        uint32_t *count_out)
{
    *count_out = t->n_rows;
    return t->rows;
}

const me_comm_sum *me_comm_tracker_sums(const me_comm_tracker *t,
                                        uint32_t *count_out)
{
    *count_out = t->n_sums;
    return t->sums;
}

int32_t me_comm_tracker_iteration(const me_comm_tracker *t)
{
    return t->iteration;
}

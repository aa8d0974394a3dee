/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "run/rank_parts.h"
#include "run/simulate.h"

/** What there is at the last point. A report ends there: what a framework
 *  logs of the last iteration changes memory behind it. */
typedef struct last_point {
    const me_memory_trace *trace;
    me_status status; /**< the first failure */
    me_pool_listed *blocks;
    uint32_t n_blocks;
    uint32_t n_entries;
} last_point;

static void list_blocks(void *self, const me_event *event, const me_pool *pool)
{
    last_point *last = self;
    (void)event;
    if (last->status == ME_OK) {
        me_free(last->blocks);
        last->blocks = NULL;
        last->n_blocks = 0;
        (void)me_memory_trace_entries(last->trace, &last->n_entries);
        last->status = me_pool_list(pool, &last->blocks, &last->n_blocks);
    }
}

/** Every micro-batch is run, so that each of its entries is told. */
static me_status run_traced(me_rank_parts *p, me_memory_trace *trace,
                            last_point *last, me_diag *diag)
{
    me_status status = me_rank_parts_make_program(p, NULL, diag);
    p->program.runs_all_rounds = true;
    if (status == ME_OK) {
        status = me_rank_parts_observe_traced(p, trace, diag);
    }
    if (status == ME_OK) {
        if (last != NULL) {
            me_pool_observer_on_point(p->pool, list_blocks, last);
        }
        status = me_rank_parts_run(p, diag);
    }
    if (status == ME_OK && (me_memory_trace_status(trace) != ME_OK ||
                            (last != NULL && last->status != ME_OK))) {
        status = me_fail(diag, ME_ERR_NOMEM, "no host memory for the trace");
    }
    return status;
}

me_status me_simulate_traced(const me_simulation *simulation, int32_t rank,
                             const me_trace_reader *reader, me_diag *diag)
{
    me_memory_trace *trace = me_memory_trace_create();
    if (trace == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for the trace");
    }
    if (reader->iteration >= -1) {
        me_memory_trace_keep_marks(trace, reader->iteration);
    }
    me_rank_parts p = me_rank_parts_begin(simulation, rank);
    last_point last = {.trace = trace};
    me_status status =
        run_traced(&p, trace, reader->lists_blocks ? &last : NULL, diag);
    if (status == ME_OK) {
        const me_traced traced = {
            .trace = trace,
            .tree = me_engine_modules(p.engine),
            .blocks = last.blocks,
            .n_blocks = last.n_blocks,
            .n_entries = last.n_entries,
        };
        status = reader->read(reader->self, &traced, diag);
    }
    me_free(last.blocks);
    me_rank_parts_fini(&p);
    me_memory_trace_destroy(trace);
    return status;
}

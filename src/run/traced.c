/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/rank_parts.h"
#include "run/simulate.h"

/** Every micro-batch is run, so that each of its entries is told. */
static me_status run_traced(me_rank_parts *p, me_memory_trace *trace,
                            me_diag *diag)
{
    me_status status = me_rank_parts_make_program(p, NULL, diag);
    p->program.runs_all_rounds = true;
    if (status == ME_OK) {
        status = me_rank_parts_observe_traced(p, trace, diag);
    }
    if (status == ME_OK) {
        status = me_rank_parts_run(p, diag);
    }
    if (status == ME_OK && me_memory_trace_status(trace) != ME_OK) {
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
    me_status status = run_traced(&p, trace, diag);
    if (status == ME_OK) {
        const me_traced traced = {
            .trace = trace,
            .tree = me_engine_modules(p.engine),
            .pool = me_pool_observer_pool(p.pool),
        };
        status = reader->read(reader->self, &traced, diag);
    }
    me_rank_parts_fini(&p);
    me_memory_trace_destroy(trace);
    return status;
}

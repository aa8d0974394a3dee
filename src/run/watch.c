/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/program.h"
#include "run/simulate.h"

/** An engine and the program that it is to run; neither after a failure. */
static me_status make(const me_plan *plan, const me_card *kernels, int32_t rank,
                      me_diag *diag, me_engine **engine_out,
                      me_program *program_out)
{
    me_status status = me_engine_create(kernels, engine_out);
    if (status == ME_OK) {
        status = me_program_init(plan, rank, program_out);
    }
    if (status != ME_OK) {
        me_engine_destroy(*engine_out);
        return me_fail(diag, status, "no host memory for the engine");
    }
    return ME_OK;
}

me_status me_simulate_watched(const me_plan *plan, const me_job_card *card,
                              int32_t rank, const me_watcher *watcher,
                              me_diag *diag)
{
    const me_card kernels = me_job_card_kernels(card);
    me_engine *engine = NULL;
    me_program program = {.kind = NULL};
    me_status status = make(plan, &kernels, rank, diag, &engine, &program);
    if (status != ME_OK) {
        return status;
    }
    program.runs_all_rounds = true;
    status = watcher->begin(watcher->self, engine, diag);
    if (status == ME_OK) {
        me_program_run(engine, &program);
        status = me_engine_status(engine, diag);
    }
    if (status == ME_OK) {
        status = watcher->end(watcher->self, diag);
    }
    me_program_fini(&program);
    me_engine_destroy(engine);
    return status;
}

me_status me_simulate_modules(const me_plan *plan, int32_t rank, me_diag *diag,
                              me_str *text)
{
    const me_card kernels = {.multiprocessors = 1}; // no kernel runs
    me_engine *engine = NULL;
    me_program program = {.kind = NULL};
    me_status status = make(plan, &kernels, rank, diag, &engine, &program);
    if (status != ME_OK) {
        return status;
    }
    program.iterations = 0;
    me_program_run(engine, &program);
    status = me_engine_status(engine, diag);
    const me_module_tree *tree = me_engine_modules(engine);
    for (uint32_t i = 1; status == ME_OK && i < tree->count; i++) {
        const me_module_info *m = &tree->modules[i];
        me_str_printf(text, "%s parameters %llu bytes %llu\n", m->path,
                      (unsigned long long)m->parameters,
                      (unsigned long long)m->parameter_bytes);
    }
    me_program_fini(&program);
    me_engine_destroy(engine);
    return status;
}

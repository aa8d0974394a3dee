/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "report/node_memory.h"
#include "run/fit_internal.h"

#include <string.h>

static const me_fit_bounds quick = {
    .singles = 64, .pairs = 32, .together = 4, .whole = 8, .classes = 96};
static const me_fit_bounds thorough = {.singles = ME_FIT_CHANGES_MAX,
                                       .pairs = 400,
                                       .together = 8,
                                       .whole = 96,
                                       .classes = 16384};

me_status me_fit_from_first(me_transport *transport, void *bytes, size_t size,
                            me_diag *diag)
{
    me_blob *blobs = NULL;
    const me_status status =
        me_transport_all_gather(transport, bytes, size, diag, &blobs);
    if (status == ME_OK) {
        memcpy(bytes, blobs[0].bytes, size);
    }
    if (blobs != NULL) {
        me_blobs_free(blobs, me_transport_size(transport));
    }
    return status;
}

me_status me_fit_no_memory(me_diag *diag)
{
    return me_fail(diag, ME_ERR_NOMEM, "no host memory to search what fits");
}

static me_status try_singles(me_fit_run *r, me_diag *diag, bool *found_out)
{
    me_fit_changes *changes = me_alloc(1, sizeof *changes, "fit.changes");
    r->singles =
        me_alloc(ME_FIT_CHANGES_MAX, sizeof *r->singles, "fit.singles");
    me_status status =
        changes == NULL || r->singles == NULL ? me_fit_no_memory(diag) : ME_OK;
    status = me_transport_agree(r->transport, status, diag);
    if (status == ME_OK && changes != NULL && r->singles != NULL) {
        me_fit_changes_propose(r->base.finished, r->host_is_short, changes);
        r->n_singles = changes->count < r->bounds.singles ? changes->count
                                                          : r->bounds.singles;
        for (int32_t i = 0; i < r->n_singles; i++) {
            r->singles[i].change = changes->items[i];
        }
        status = me_fit_try(r, r->singles, r->n_singles, diag, found_out);
    }
    me_free(changes);
    return status;
}

static me_status search(me_fit_run *r, me_diag *diag)
{
    bool found = false;
    r->has_searched = true;
    r->fit.n_together = 1;
    me_status status = try_singles(r, diag, &found);
    if (status == ME_OK && !found) {
        status = me_fit_try_pairs(r, diag, &found);
    }
    if (status == ME_OK && !found) {
        status = me_fit_try_more(r, diag, &found);
    }
    if (status == ME_OK && !found) {
        r->fit.n_together = 0;
    }
    return status;
}

/** What process 0 knows of the job as it is. */
typedef struct facts {
    bool searches;
    bool host_is_short;
    int32_t worst_rank;
    uint64_t worst_bytes;
    uint64_t capacity_bytes;
} facts;

me_status me_fit_run_create(me_transport *transport, const me_config *job,
                            const me_run *base, const me_fit_request *request,
                            me_diag *diag, me_fit_run **run_out)
{
    me_fit_run *r = me_alloc(1, sizeof *r, "fit");
    me_status status = me_transport_agree(
        transport, r == NULL ? me_fit_no_memory(diag) : ME_OK, diag);
    const me_report *report = me_run_report(base);
    facts known;
    memset(&known, 0, sizeof known); // its gaps travel as well
    if (report != NULL) {
        const me_verdict *v = &report->verdict;
        known.searches =
            v->risk == ME_RISK_DOES_NOT_FIT || v->risk == ME_RISK_COIN_FLIP;
        known.host_is_short = me_node_memory_is_over(&v->node);
        known.worst_rank = v->worst_rank;
        known.worst_bytes = v->worst_bytes;
        known.capacity_bytes = v->capacity_bytes;
    }
    if (status == ME_OK) {
        status = me_fit_from_first(transport, &known, sizeof known, diag);
    }
    if (status == ME_OK && r != NULL) {
        r->transport = transport;
        r->request = *request;
        r->bounds = request->is_quick ? quick : thorough;
        r->base = (me_fit_base){.job = job,
                                .finished = me_run_config(base),
                                .worst_rank = known.worst_rank,
                                .strict = request->strict,
                                .shows_progress = request->shows_progress,
                                .threads = request->threads};
        r->host_is_short = known.host_is_short;
        r->base_report = report;
        r->base_bytes = known.worst_bytes;
        r->excess_bytes = known.worst_bytes > known.capacity_bytes
                              ? known.worst_bytes - known.capacity_bytes
                              : 1;
        status = known.searches ? search(r, diag) : ME_OK;
    }
    if (status != ME_OK) {
        me_fit_run_destroy(r);
        return status;
    }
    *run_out = r;
    return ME_OK;
}

void me_fit_run_destroy(me_fit_run *run)
{
    if (run == NULL) {
        return;
    }
    for (size_t i = 0; run->flags != NULL && i < run->fit.n_offers; i++) {
        me_str_fini(&run->flags[i]);
    }
    me_compare_run_destroy(run->whole);
    me_free(run->flags);
    me_free(run->offers);
    me_free(run->singles);
    me_free(run);
}

const me_fit *me_fit_run_result(const me_fit_run *run)
{
    return run != NULL && run->has_searched &&
                   me_transport_rank(run->transport) == 0
               ? &run->fit
               : NULL;
}

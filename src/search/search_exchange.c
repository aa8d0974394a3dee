/* SPDX-License-Identifier: BSD-3-Clause */
/* What processes tell each other of a batch. */
#include "base/alloc.h"
#include "collectives/wire.h"
#include "search/search_private.h"

#include <string.h>

bool me_search_is_known(const me_search_run *run, uint32_t index)
{
    return run->candidates.items[index].known != ME_SEARCH_UNDECIDED;
}

bool me_search_is_mine(const me_search_run *run, uint32_t task)
{
    return task % (uint32_t)me_transport_size(run->transport) ==
           (uint32_t)me_transport_rank(run->transport);
}

bool me_search_is_late(const me_search_run *run)
{
    const double budget = run->request.budget_seconds;
    return budget > 0 && me_search_seconds() - run->began >= budget;
}

static void put_result(me_writer *w, const me_search_result *r)
{
#define ME_SEARCH_PUT(type, member) me_writer_put(w, (uint64_t)r->member, 8);
    ME_SEARCH_RESULT_LIST(ME_SEARCH_PUT)
#undef ME_SEARCH_PUT
}

static me_search_result get_result(me_reader *reader)
{
    return (me_search_result){
#define ME_SEARCH_GET(type, member) .member = (type)me_reader_get(reader, 8),
        ME_SEARCH_RESULT_LIST(ME_SEARCH_GET)
#undef ME_SEARCH_GET
    };
}

/** What this process's candidates became, and whether time is up on process 0. */
static void put_outcomes(const me_search_batch *b, me_writer *w)
{
    const me_search_run *s = b->search;
    me_writer_put(w, me_search_is_late(s), 1);
    for (uint32_t i = 0; i < b->count; i++) {
        if (me_search_is_mine(s, i) && !me_search_is_known(s, b->indices[i])) {
            const me_search_outcome *o = &b->outcomes[i];
            char line[ME_DIAG_LINE] = "";
            me_diag_line(&o->diag, line);
            const size_t length = o->status == ME_OK ? 0 : strlen(line);
            if (b->is_screen) {
                me_writer_put(w, o->bound.bytes, 8);
                me_writer_put(w, (uint64_t)o->bound.step_ns, 8);
                me_writer_put(w, o->is_over, 1);
            } else {
                put_result(w, &o->result);
            }
            me_writer_put_int(w, (int)o->status);
            me_writer_put(w, length, 4);
            me_writer_put_bytes(w, line, length);
        }
    }
}

/** What a screen has shown. @return what becomes of the candidate by it */
static me_search_end get_screen(me_candidate *candidate, me_reader *reader)
{
    candidate->bound.bytes = me_reader_get(reader, 8);
    candidate->bound.step_ns = (int64_t)me_reader_get(reader, 8);
    return me_reader_get(reader, 1) != 0 ? ME_SEARCH_TOO_LARGE
                                         : ME_SEARCH_UNDECIDED;
}

static me_status get_outcome(const me_search_batch *b, me_candidate *candidate,
                             me_reader *reader, me_diag *diag)
{
    me_search_end end = ME_SEARCH_SIMULATED;
    if (b->is_screen) {
        end = get_screen(candidate, reader);
    } else {
        candidate->result = get_result(reader);
    }
    const me_status status = (me_status)me_reader_get_int(reader);
    const size_t length = (size_t)me_reader_get(reader, 4);
    if (reader->is_short || length > me_reader_rest(reader)) {
        return me_fail(diag, ME_ERR_INTERNAL, "a part of a search is cut");
    }
    candidate->end = status == ME_OK            ? end
                     : status == ME_ERR_STOPPED ? ME_SEARCH_UNDECIDED
                                                : ME_SEARCH_REFUSED;
    if (candidate->end == ME_SEARCH_REFUSED) {
        candidate->reason = me_alloc(length + 1, 1, "search.reason");
        if (candidate->reason == NULL) {
            return me_fail(diag, ME_ERR_NOMEM, "no host memory to search");
        }
        memcpy(candidate->reason, reader->bytes + reader->at, length);
    }
    reader->at += length;
    return ME_OK;
}

/** Every process has all outcomes, and process 0's word on the time. */
static me_status get_outcomes(me_search_run *s, const me_search_batch *b,
                              const me_blob *blobs, me_diag *diag,
                              bool *stops_out)
{
    const uint32_t n = (uint32_t)me_transport_size(s->transport);
    me_status status = ME_OK;
    for (uint32_t process = 0; process < n && status == ME_OK; process++) {
        me_reader reader = {.bytes = blobs[process].bytes,
                            .size = blobs[process].size};
        const bool is_over = me_reader_get(&reader, 1) != 0;
        *stops_out = *stops_out || (process == 0 && is_over);
        for (uint32_t i = process; i < b->count && status == ME_OK; i += n) {
            me_candidate *candidate = &s->candidates.items[b->indices[i]];
            if (me_search_is_known(s, b->indices[i])) {
                candidate->end =
                    b->is_screen ? ME_SEARCH_UNDECIDED : candidate->known;
            } else {
                status = get_outcome(b, candidate, &reader, diag);
            }
            *stops_out = *stops_out || (!b->is_screen &&
                                        candidate->end == ME_SEARCH_UNDECIDED);
        }
    }
    return status;
}

me_status me_search_exchange(me_search_run *run, const me_search_batch *batch,
                             me_diag *diag, bool *stops_out)
{
    me_search_run *s = run;
    const me_search_batch *b = batch;
    me_writer w = {.size = 0};
    me_blob *blobs = NULL;
    put_outcomes(b, &w);
    me_status status = me_transport_agree(s->transport, w.status, diag);
    if (status == ME_OK) {
        status = me_transport_all_gather(s->transport, w.bytes, w.size, diag,
                                         &blobs);
    }
    me_writer_fini(&w);
    if (status == ME_OK) {
        status = me_transport_agree(
            s->transport, get_outcomes(s, b, blobs, diag, stops_out), diag);
    }
    me_blobs_free(blobs, me_transport_size(s->transport));
    return status;
}

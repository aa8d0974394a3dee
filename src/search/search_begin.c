/* SPDX-License-Identifier: BSD-3-Clause */
/* What comes before the batches, and needs all processes. */
#include "base/alloc.h"
#include "base/log.h"
#include "base/workers.h"
#include "collectives/wire.h"
#include "search/search_log.h"
#include "search/search_private.h"

#include <stdlib.h>
#include <string.h>

static const char probing_name[] = "layers probed";

/** Probes of this process, and what became of them. */
typedef struct probing {
    me_search_run *search;
    me_probes *probes;
    me_status *statuses;
} probing;

void me_search_prepares(const me_search_run *run, const char *what, bool begins,
                        uint32_t count)
{
    const me_search_listener *l = &run->request.listener;
    if (l->prepares != NULL && me_transport_rank(run->transport) == 0) {
        l->prepares(l->self, what, begins, count);
    }
}

static bool probe_task(void *self, uint32_t task)
{
    const probing *p = self;
    me_search_run *s = p->search;
    me_probes *probes = p->probes;
    if (me_search_is_mine(s, task)) {
        me_diag diag = {.status = ME_OK};
        p->statuses[task] =
            me_probe_run(&s->candidates.items[probes->first[task]], s->job,
                         probes->kind, &s->card, &diag, &probes->items[task]);
    }
    me_search_prepares(s, probing_name, false, probes->count);
    return p->statuses[task] == ME_OK;
}

static void put_probe(me_writer *w, const me_probe *probe)
{
    me_writer_put(w, (uint64_t)probe->forward_ns, 8);
    me_writer_put(w, (uint64_t)probe->backward_ns, 8);
    me_writer_put(w, (uint64_t)probe->ends_ns, 8);
    me_writer_put(w, (uint64_t)probe->head_ns, 8);
    me_writer_put(w, (uint64_t)probe->host_ns, 8);
    me_writer_put(w, (uint64_t)probe->host_ends_ns, 8);
    me_writer_put(w, (uint64_t)probe->collectives_ns, 8);
    me_writer_put(w, probe->lasting_bytes, 8);
    me_writer_put(w, probe->held_bytes, 8);
    me_writer_put(w, probe->kept_bytes, 8);
    me_writer_put(w, probe->spike_bytes, 8);
    me_writer_put(w, probe->digest.a, 8);
    me_writer_put(w, probe->digest.b, 8);
    me_writer_put(w, probe->outside_bytes, 8);
}

static me_probe get_probe(me_reader *reader)
{
    me_probe probe = {.forward_ns = (int64_t)me_reader_get(reader, 8)};
    probe.backward_ns = (int64_t)me_reader_get(reader, 8);
    probe.ends_ns = (int64_t)me_reader_get(reader, 8);
    probe.head_ns = (int64_t)me_reader_get(reader, 8);
    probe.host_ns = (int64_t)me_reader_get(reader, 8);
    probe.host_ends_ns = (int64_t)me_reader_get(reader, 8);
    probe.collectives_ns = (int64_t)me_reader_get(reader, 8);
    probe.lasting_bytes = me_reader_get(reader, 8);
    probe.held_bytes = me_reader_get(reader, 8);
    probe.kept_bytes = me_reader_get(reader, 8);
    probe.spike_bytes = me_reader_get(reader, 8);
    probe.digest.a = me_reader_get(reader, 8);
    probe.digest.b = me_reader_get(reader, 8);
    probe.outside_bytes = me_reader_get(reader, 8);
    return probe;
}

/** Every process has all probes. */
static me_status exchange_probes(me_search_run *s, me_probes *probes,
                                 me_diag *diag)
{
    const uint32_t n = (uint32_t)me_transport_size(s->transport);
    me_writer w = {.size = 0};
    me_blob *blobs = NULL;
    for (uint32_t i = 0; i < probes->count; i++) {
        if (me_search_is_mine(s, i)) {
            put_probe(&w, &probes->items[i]);
        }
    }
    me_status status = me_transport_agree(s->transport, w.status, diag);
    if (status == ME_OK) {
        status = me_transport_all_gather(s->transport, w.bytes, w.size, diag,
                                         &blobs);
    }
    me_writer_fini(&w);
    for (uint32_t process = 0; status == ME_OK && process < n; process++) {
        me_reader reader = {.bytes = blobs[process].bytes,
                            .size = blobs[process].size};
        for (uint32_t i = process; i < probes->count; i += n) {
            probes->items[i] = get_probe(&reader);
        }
    }
    me_blobs_free(blobs, (int)n);
    return status;
}

me_status me_search_probe(me_search_run *run, me_probes *probes, me_diag *diag)
{
    me_search_run *s = run;
    const uint32_t n = probes->count;
    probing p = {.search = s, .probes = probes};
    p.statuses = me_alloc(n, sizeof *p.statuses, "search.probes");
    me_status status = p.statuses == NULL ? ME_ERR_NOMEM : ME_OK;
    if (status == ME_OK) {
        me_search_prepares(s, probing_name, true, n);
        me_workers_run(s->request.threads, n, probe_task, &p);
    }
    for (uint32_t i = 0; status == ME_OK && i < n; i++) {
        status = p.statuses[i];
    }
    me_free(p.statuses);
    if (status != ME_OK) {
        (void)me_fail(diag, status, "no host memory for probes");
    }
    status = me_transport_agree(s->transport, status, diag);
    me_log(ME_LOG_INFO, "search: %u probes, %.3f s", (unsigned)n,
           me_log_cpu_seconds());
    return status == ME_OK ? exchange_probes(s, probes, diag) : status;
}

/** Process 0's log, on all of them. */
static me_status share_log(me_search_run *s, me_diag *diag, me_str *text)
{
    me_status status = ME_OK;
    me_blob *blobs = NULL;
    if (me_transport_rank(s->transport) == 0) {
        status = me_search_log_read(s->log_path, diag, text);
    }
    status = me_transport_agree(s->transport, status, diag);
    if (status == ME_OK) {
        status = me_transport_all_gather(s->transport, me_str_text(text),
                                         text->length, diag, &blobs);
    }
    if (status == ME_OK && me_transport_rank(s->transport) != 0) {
        me_str_append_n(text, (const char *)blobs[0].bytes, blobs[0].size);
        status = me_str_status(text);
    }
    me_blobs_free(blobs, me_transport_size(s->transport));
    return me_transport_agree(s->transport, status, diag);
}

/** What the log has of one of several candidates that are the very same job is
 *  known of the first of them. */
static me_status take_like(me_search_run *s, me_diag *diag)
{
    me_candidate *items = s->candidates.items;
    for (uint32_t i = s->n_order; i-- > 0;) {
        me_candidate *first = &items[s->order[i]];
        uint32_t k = first->next_like;
        while (k != 0 && items[k].known == ME_SEARCH_UNDECIDED) {
            k = items[k].next_like;
        }
        if (k == 0 || first->known != ME_SEARCH_UNDECIDED) {
            continue;
        }
        first->known = items[k].known;
        first->result = items[k].result;
        if (items[k].reason != NULL) {
            first->reason = me_strdup(items[k].reason, "search.reason");
            if (first->reason == NULL) {
                return me_fail(diag, ME_ERR_NOMEM, "no host memory to search");
            }
        }
    }
    return ME_OK;
}

static me_status take_log(me_search_run *s, const me_str *text, me_diag *diag)
{
    me_search_digest digest;
    const char *log = me_str_text(text);
    me_status status = me_search_digest_make(s->job, &s->card,
                                             s->request.strict, diag, &digest);
    if (status == ME_OK) {
        status = me_search_log_apply(s->log_path, log, &digest, diag,
                                     &s->candidates);
    }
    if (status == ME_OK) {
        status = take_like(s, diag);
    }
    if (status == ME_OK && me_transport_rank(s->transport) == 0) {
        status = me_search_log_open(s->log_path, log, &digest, diag, &s->log);
    }
    return status;
}

me_status me_search_continue(me_search_run *run, me_diag *diag)
{
    me_search_run *s = run;
    const char *path = s->request.log_path;
    if (path == NULL) {
        return ME_OK;
    }
    if (strlen(path) >= sizeof s->log_path) {
        return me_fail(diag, ME_ERR_CONFIG, "--jsonl %.80s…: too long a name",
                       path);
    }
    me_str text = {0};
    (void)snprintf(s->log_path, sizeof s->log_path, "%s", path);
    me_status status = share_log(s, diag, &text);
    if (status == ME_OK) {
        status =
            me_transport_agree(s->transport, take_log(s, &text, diag), diag);
    }
    me_str_fini(&text);
    return status;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/memory_snapshot.h"

#include "base/alloc.h"
#include "base/str.h"
#include "report/memory_frames.h"
#include "report/plain_writer.h"

#include <string.h>

/** Of an entry on the average, in files with many; a pickle has each text once. */
enum {
    PICKLE_ENTRY_BYTES = 145,
    JSON_ENTRY_BYTES = 640
};

/** What is written, and what of it was written already. */
typedef struct writing {
    const me_memory_snapshot *s;
    me_plain_writer w;
    const me_trace_entry *entries;
    uint32_t n_entries;
    me_frame_writer frames;
    uint32_t *live; /**< per block at the end: the entry that made it */
} writing;

/** Of a block that no entry makes. */
#define NOT_RECORDED UINT32_MAX

static void number(writing *x, const char *key, uint64_t value)
{
    me_plain_key(&x->w, key);
    me_plain_number(&x->w, value);
}

static void word(writing *x, const char *key, const char *value)
{
    me_plain_key(&x->w, key);
    me_plain_word(&x->w, value);
}

static void boolean(writing *x, const char *key, bool value)
{
    me_plain_key(&x->w, key);
    me_plain_bool(&x->w, value);
}

static void frames(writing *x, uint32_t entry)
{
    me_plain_key(&x->w, "frames");
    if (entry == NOT_RECORDED) {
        me_plain_open(&x->w, false);
        me_plain_close(&x->w);
    } else {
        me_frames_write(&x->frames, &x->w, x->entries[entry].place);
    }
}

static void write_block(writing *x, uint32_t i)
{
    const me_pool_listed *b = &x->s->blocks[i];
    me_plain_open(&x->w, true);
    number(x, "address", b->address);
    number(x, "size", b->bytes);
    number(x, "requested_size", b->requested_bytes);
    word(x, "state", b->state);
    frames(x, x->live[i]);
    me_plain_close(&x->w);
}

/** What a segment's blocks add up to. */
typedef struct sums {
    uint64_t total;
    uint64_t allocated;
    uint64_t active;
    uint64_t requested;
} sums;

static sums add_up(const writing *x, uint32_t first, uint32_t end)
{
    sums sum = {0};
    for (uint32_t i = first; i < end; i++) {
        const me_pool_listed *b = &x->s->blocks[i];
        const bool is_active = strcmp(b->state, "inactive") != 0;
        sum.total += b->bytes;
        sum.allocated +=
            strcmp(b->state, "active_allocated") == 0 ? b->bytes : 0;
        sum.active += is_active ? b->bytes : 0;
        sum.requested += b->requested_bytes;
    }
    return sum;
}

static void write_segment(writing *x, uint32_t first, uint32_t end)
{
    const me_pool_listed *b = &x->s->blocks[first];
    const sums sum = add_up(x, first, end);
    me_plain_open(&x->w, true);
    number(x, "device", 0);
    number(x, "address", b->address);
    number(x, "total_size", sum.total);
    number(x, "allocated_size", sum.allocated);
    number(x, "active_size", sum.active);
    number(x, "requested_size", sum.requested);
    number(x, "stream", b->stream);
    word(x, "segment_type", b->is_large ? "large" : "small");
    me_plain_key(&x->w, "segment_pool_id");
    me_plain_open(&x->w, false);
    me_plain_number(&x->w, 0);
    me_plain_number(&x->w, b->mempool);
    me_plain_close(&x->w);
    boolean(x, "is_expandable", b->is_expandable);
    frames(x, NOT_RECORDED);
    me_plain_key(&x->w, "blocks");
    me_plain_open(&x->w, false);
    for (uint32_t i = first; i < end; i++) {
        write_block(x, i);
    }
    me_plain_close(&x->w);
    me_plain_close(&x->w);
}

static void write_segments(writing *x)
{
    me_plain_key(&x->w, "segments");
    me_plain_open(&x->w, false);
    for (uint32_t i = 0; i < x->s->n_blocks;) {
        uint32_t end = i + 1;
        while (end < x->s->n_blocks && !x->s->blocks[end].begins_segment) {
            end++;
        }
        write_segment(x, i, end);
        i = end;
    }
    me_plain_close(&x->w);
}

static void write_entry(writing *x, uint32_t i)
{
    const me_pool_trace *e = &x->entries[i].trace;
    const bool is_oom = e->action == ME_POOL_TRACE_OOM;
    me_plain_open(&x->w, true);
    word(x, "action", me_pool_action_name(e->action));
    number(x, is_oom ? "device_free" : "addr", e->address);
    number(x, "size", e->bytes);
    number(x, "stream", e->stream);
    number(x, "time_us", i); // no time: the order
    word(x, "compile_context", "N/A");
    me_plain_key(&x->w, "user_metadata");
    me_plain_text(&x->w, me_frames_iteration(&x->frames, x->entries[i].place));
    frames(x, i);
    me_plain_close(&x->w);
}

static void write_traces(writing *x)
{
    me_plain_key(&x->w, "device_traces");
    me_plain_open(&x->w, false);
    me_plain_open(&x->w, false);
    for (uint32_t i = 0; i < x->n_entries; i++) {
        write_entry(x, i);
    }
    me_plain_close(&x->w);
    me_plain_close(&x->w);
}

static void write_settings(writing *x)
{
    const me_alloc_conf *conf = x->s->conf;
    me_plain_key(&x->w, "allocator_settings");
    me_plain_open(&x->w, true);
    me_plain_key(&x->w, "PYTORCH_CUDA_ALLOC_CONF");
    me_plain_text(&x->w, x->s->alloc_conf_text);
    me_plain_key(&x->w, "garbage_collection_threshold");
    me_plain_real(&x->w, conf->garbage_collection_threshold);
    boolean(x, "expandable_segments", conf->expandable_segments);
    me_plain_close(&x->w);
}

/** Which entry made each block that is there at the end: the last one of its
 *  address. Addresses rise, so a block is found by bisection. */
static void find_makers(writing *x)
{
    for (uint32_t i = 0; i < x->s->n_blocks; i++) {
        x->live[i] = NOT_RECORDED;
    }
    for (uint32_t i = 0; i < x->n_entries; i++) {
        const me_pool_trace *e = &x->entries[i].trace;
        uint32_t low = 0;
        uint32_t high = x->s->n_blocks;
        while (low < high) {
            const uint32_t middle = low + (high - low) / 2;
            if (x->s->blocks[middle].address < e->address) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if (e->action == ME_POOL_TRACE_ALLOC && low < x->s->n_blocks &&
            x->s->blocks[low].address == e->address &&
            strcmp(x->s->blocks[low].state, "inactive") != 0) {
            x->live[low] = i;
        }
    }
}

uint64_t me_memory_snapshot_bytes(const me_memory_snapshot *snapshot,
                                  bool is_pickle)
{
    return (uint64_t)snapshot->n_entries *
           (is_pickle ? PICKLE_ENTRY_BYTES : JSON_ENTRY_BYTES);
}

me_status me_memory_snapshot_write(const me_memory_snapshot *snapshot,
                                   bool is_pickle, FILE *stream, me_diag *diag)
{
    uint32_t n_traced = 0;
    writing x = {.s = snapshot, .n_entries = snapshot->n_entries};
    x.entries = me_memory_trace_entries(snapshot->trace, &n_traced);
    x.live = me_alloc(snapshot->n_blocks, sizeof *x.live, "report.snapshot");
    me_status status = x.live == NULL
                           ? ME_ERR_NOMEM
                           : me_frame_writer_init(&x.frames, snapshot->trace,
                                                  snapshot->tree, is_pickle);
    if (status == ME_OK) {
        find_makers(&x);
        me_plain_begin(&x.w, stream, is_pickle);
        me_plain_open(&x.w, true);
        write_segments(&x);
        write_traces(&x);
        write_settings(&x);
        number(&x, "rank", (uint64_t)snapshot->rank);
        me_plain_key(&x.w, "external_annotations");
        me_plain_open(&x.w, false);
        me_plain_close(&x.w);
        me_plain_close(&x.w);
        me_plain_end(&x.w);
        status = me_frame_writer_status(&x.frames);
    }
    me_frame_writer_fini(&x.frames);
    me_free(x.live);
    return status == ME_OK
               ? ME_OK
               : me_fail(diag, status, "no host memory for the snapshot");
}

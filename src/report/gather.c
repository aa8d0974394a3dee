/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "report/gather_parts.h"
#include "report/verdict.h"

#include <stdlib.h>
#include <string.h>

enum {
    NUMBER_BYTES = 4,
    SIZE_BYTES = 8
};

/**
 * A process's block is a run of parts: 8 bytes the length of the encoded
 * result, 8 that of its times, 4 bytes the number of places, the places,
 * whose fields are numbers of 4 bytes each, the encoded result, its times. All
 * little-endian. Of a stage the times of the lowest rank count, so others are
 * not sent.
 */
static void put_number(me_str *out, uint64_t value, unsigned width)
{
    char bytes[SIZE_BYTES];
    for (unsigned i = 0; i < width; i++) {
        bytes[i] = (char)(unsigned char)(value >> (8 * i));
    }
    me_str_append_n(out, bytes, width);
}

static void put_place(me_str *out, const me_rank_place *place)
{
    for (size_t i = 0; i < me_place_schema.n_fields; i++) {
        const int32_t *number = me_field_at(&me_place_schema.fields[i], place);
        put_number(out, (uint32_t)*number, NUMBER_BYTES);
    }
}

static me_status put_part(me_str *out, const me_report_part *part)
{
    unsigned char *bytes = NULL;
    size_t size = 0;
    me_status status = me_rank_result_encode(part->result, &bytes, &size);
    if (status != ME_OK) {
        return status;
    }
    unsigned char *times = NULL;
    size_t times_size = 0;
    status = me_place_is_lowest(&part->places[0])
                 ? me_rank_result_encode_time(part->result, &times, &times_size)
                 : ME_OK;
    if (status != ME_OK) {
        me_free(bytes);
        return status;
    }
    put_number(out, size, SIZE_BYTES);
    put_number(out, times_size, SIZE_BYTES);
    put_number(out, part->n_places, NUMBER_BYTES);
    for (uint32_t i = 0; i < part->n_places; i++) {
        put_place(out, &part->places[i]);
    }
    me_str_append_n(out, (const char *)bytes, size);
    me_str_append_n(out, (const char *)times, times_size);
    me_free(bytes);
    me_free(times);
    return me_str_status(out);
}

/** What is left of a process's block. */
typedef struct reader {
    const unsigned char *bytes;
    size_t left;
    bool is_short;
} reader;

static uint64_t get_number(reader *in, unsigned width)
{
    if (in->left < width) {
        in->is_short = true;
        in->left = 0;
        return 0;
    }
    uint64_t value = 0;
    for (unsigned i = 0; i < width; i++) {
        value |= (uint64_t)in->bytes[i] << (8 * i);
    }
    in->bytes += width;
    in->left -= width;
    return value;
}

static int32_t get_int(reader *in)
{
    const uint64_t bits = get_number(in, NUMBER_BYTES);
    return bits <= INT32_MAX ? (int32_t)bits : -1;
}

static me_rank_place get_place(reader *in)
{
    me_rank_place place = {0};
    for (size_t i = 0; i < me_place_schema.n_fields; i++) {
        const int32_t number = get_int(in);
        memcpy((char *)&place + me_place_schema.fields[i].offset, &number,
               sizeof number);
    }
    return place;
}

/** A rank's encoded result, borrowed from the gathered blocks. */
typedef struct encoded {
    const unsigned char *bytes;
    size_t size;
} encoded;

/** An encoded result that ranks share. */
typedef struct part {
    encoded result;
    int32_t lowest; /**< of its ranks */
    int32_t first;  /**< the lowest of all that have an equal result */
} part;

/** Which rank has which encoded result. */
typedef struct rank_table {
    me_rank_place *places; /**< by rank */
    uint32_t *part_of;     /**< by rank: index + 1; 0: it has none yet */
    part *parts;           /**< in the order in which they came */
    uint32_t n_parts;
    uint32_t parts_capacity;
    encoded *times; /**< of the lowest rank of each stage; by stage */
    int32_t n_stages;
    int32_t world_size;
} rank_table;

/** @return NULL without memory */
static part *add_part(rank_table *table, const encoded *result)
{
    if (table->n_parts == table->parts_capacity) {
        part *grown =
            me_grow(table->parts, table->n_parts, &table->parts_capacity,
                    sizeof *grown, "report.parts");
        if (grown == NULL) {
            return NULL;
        }
        table->parts = grown;
    }
    part *p = &table->parts[table->n_parts++];
    *p = (part){.result = *result, .lowest = INT32_MAX};
    return p;
}

me_status me_gather_refuse(int32_t world_size, int32_t rank, bool has_result,
                           me_diag *diag)
{
    if (rank < 0 || rank >= world_size) {
        return me_fail(diag, ME_ERR_INTERNAL,
                       "there is a result of rank %d in a world of %d",
                       (int)rank, (int)world_size);
    }
    return me_fail(diag, ME_ERR_INTERNAL,
                   has_result ? "there are two results of rank %d"
                              : "there is no result of rank %d",
                   (int)rank);
}

static me_status read_part(reader *in, rank_table *table, me_diag *diag)
{
    const uint64_t size = get_number(in, SIZE_BYTES);
    const uint64_t times_size = get_number(in, SIZE_BYTES);
    const uint64_t n_places = get_number(in, NUMBER_BYTES);
    const uint64_t place_bytes =
        (uint64_t)me_place_schema.n_fields * NUMBER_BYTES;
    if (in->is_short || n_places > in->left / place_bytes ||
        size > in->left - n_places * place_bytes ||
        times_size > in->left - n_places * place_bytes - size) {
        return me_fail(diag, ME_ERR_INTERNAL, "a gathered result is cut short");
    }
    const encoded result = {in->bytes + n_places * place_bytes, size};
    part *p = add_part(table, &result);
    if (p == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory for the report");
    }
    for (uint64_t i = 0; i < n_places; i++) {
        const me_rank_place place = get_place(in);
        if (place.rank < 0 || place.rank >= table->world_size ||
            table->part_of[place.rank] != 0) {
            return me_gather_refuse(table->world_size, place.rank, true, diag);
        }
        table->places[place.rank] = place;
        table->part_of[place.rank] = table->n_parts;
        p->lowest = place.rank < p->lowest ? place.rank : p->lowest;
        if (me_place_is_lowest(&place) && place.pp >= 0 &&
            place.pp < table->n_stages) {
            table->times[place.pp] = (encoded){result.bytes + size, times_size};
        }
    }
    in->bytes += size + times_size;
    in->left -= size + times_size;
    return ME_OK;
}

static me_status read_blocks(const me_blob *blobs, int n_blobs,
                             rank_table *table, me_diag *diag)
{
    for (int i = 0; i < n_blobs; i++) {
        reader in = {.bytes = blobs[i].bytes, .left = blobs[i].size};
        while (in.left > 0) {
            const me_status status = read_part(&in, table, diag);
            if (status != ME_OK) {
                return status;
            }
        }
    }
    for (int32_t rank = 0; rank < table->world_size; rank++) {
        if (table->part_of[rank] == 0) {
            return me_gather_refuse(table->world_size, rank, false, diag);
        }
    }
    return ME_OK;
}

/** By what the results are, then by rank. */
static int compare_parts(const void *a, const void *b)
{
    const part *x = *(const part *const *)a;
    const part *y = *(const part *const *)b;
    if (x->result.size != y->result.size) {
        return x->result.size < y->result.size ? -1 : 1;
    }
    const int order = memcmp(x->result.bytes, y->result.bytes, x->result.size);
    return order != 0 ? order
                      : (x->lowest > y->lowest) - (x->lowest < y->lowest);
}

static bool is_equal(const encoded *a, const encoded *b)
{
    return a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}

/** For each part the lowest rank with an equal result. */
static me_status find_firsts(rank_table *table)
{
    part **sorted = me_alloc(table->n_parts, sizeof(part *), "report.order");
    if (sorted == NULL) {
        return ME_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < table->n_parts; i++) {
        sorted[i] = &table->parts[i];
    }
    qsort(sorted, table->n_parts, sizeof(part *), compare_parts);
    for (uint32_t i = 0; i < table->n_parts; i++) {
        const bool is_again =
            i > 0 && is_equal(&sorted[i]->result, &sorted[i - 1]->result);
        sorted[i]->first = is_again ? sorted[i - 1]->first : sorted[i]->lowest;
    }
    me_free(sorted);
    return ME_OK;
}

static me_status fill_ranks(const rank_table *table, me_diag *diag,
                            me_report *report)
{
    if (table->parts == NULL) {
        return me_fail(diag, ME_ERR_INTERNAL, "no rank has a result");
    }
    for (int32_t rank = 0; rank < table->world_size; rank++) {
        me_report_rank *entry = &report->ranks[rank];
        entry->place = table->places[rank];
        const part *p = &table->parts[table->part_of[rank] - 1];
        if (p->first != rank) {
            entry->result = report->ranks[p->first].result;
            continue;
        }
        const encoded *result = &p->result;
        const me_status status =
            me_rank_result_decode(result->bytes, result->size, diag,
                                  &report->results[report->n_results]);
        if (status != ME_OK) {
            return status;
        }
        entry->result = report->n_results++;
    }
    return ME_OK;
}

/** The step's time, if the times of all stages are there. */
static me_status predict(const rank_table *table, const me_rates *rates,
                         me_diag *diag, me_report *report)
{
    static const uint64_t ceiling_bytes = UINT64_C(1) << 30;
    const size_t n = (size_t)table->n_stages;
    if (!me_report_is_timed(rates, report)) {
        return ME_OK;
    }
    me_arena *arena = me_arena_create(ceiling_bytes, "report.times");
    me_time_program *programs = me_alloc(n, sizeof *programs, "report.times");
    me_status status = ME_ERR_NOMEM;
    bool is_complete = true;
    if (arena != NULL && programs != NULL) {
        status = ME_OK;
    }
    for (size_t i = 0; status == ME_OK && i < n; i++) {
        status =
            me_time_program_decode(table->times[i].bytes, table->times[i].size,
                                   arena, diag, &programs[i]);
        is_complete = is_complete && programs[i].n_items > 0;
    }
    if (status == ME_OK && is_complete) {
        status = me_report_predict(report, rates, programs, diag);
    }
    me_free(programs);
    me_arena_destroy(arena);
    return status;
}

static me_status fill_results(const me_blob *blobs, int n_blobs,
                              const me_rates *rates, me_diag *diag,
                              me_report *report)
{
    const size_t count = (size_t)report->world_size;
    rank_table table = {.world_size = report->world_size,
                        .n_stages = report->config->parallel.pipeline};
    table.times =
        me_alloc((size_t)table.n_stages, sizeof *table.times, "report.encoded");
    table.places = me_alloc(count, sizeof *table.places, "report.places");
    table.part_of = me_alloc(count, sizeof *table.part_of, "report.encoded");
    report->ranks = me_alloc(count, sizeof *report->ranks, "report.ranks");
    report->results =
        me_alloc(count, sizeof(me_rank_result *), "report.results");
    me_status status = ME_ERR_NOMEM;
    if (table.places != NULL && table.part_of != NULL && table.times != NULL &&
        report->ranks != NULL && report->results != NULL) {
        status = read_blocks(blobs, n_blobs, &table, diag);
        if (status == ME_OK) {
            status = find_firsts(&table);
        }
        if (status == ME_OK) {
            status = fill_ranks(&table, diag, report);
        }
        if (status == ME_OK) {
            status = predict(&table, rates, diag, report);
        }
    }
    me_free(table.places);
    me_free(table.part_of);
    me_free(table.parts);
    me_free(table.times);
    return status;
}

/** The configuration's assumptions, then those of the input. */
static me_status copy_assumptions(const me_report_input *input,
                                  me_report *report)
{
    const me_flag_list *own = &input->config->assumptions;
    const size_t count = (size_t)own->count + input->n_assumptions;
    report->assumptions =
        me_alloc(count, sizeof *report->assumptions, "report.assumptions");
    if (report->assumptions == NULL) {
        return ME_ERR_NOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        const char *text = i < (size_t)own->count
                               ? own->flags[i].note
                               : input->assumptions[i - (size_t)own->count];
        char *copy = me_strdup(text == NULL ? "" : text, "report.assumption");
        if (copy == NULL) {
            return ME_ERR_NOMEM;
        }
        report->assumptions[report->n_assumptions++] = copy;
    }
    return ME_OK;
}

/** The parts of all ranks. */
typedef struct gathered {
    const me_report_part
        *lent; /**< of the only process; NULL: all are encoded */
    uint32_t n_lent;
    const me_blob *blobs;
    int n_blobs;
} gathered;

static me_status build_report(const me_report_input *input, const gathered *all,
                              me_diag *diag, me_report **report_out)
{
    me_report *report = me_alloc(1, sizeof *report, "report");
    if (report == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory for the report");
    }
    report->config = input->config;
    report->world_size = input->world_size;
    report->links = input->links;
    report->version = me_strdup(input->version, "report.version");
    me_status status = report->version == NULL
                           ? ME_ERR_NOMEM
                           : copy_assumptions(input, report);
    if (status == ME_OK) {
        status = all->lent != NULL ? me_report_lend(all->lent, all->n_lent,
                                                    input->rates, diag, report)
                                   : fill_results(all->blobs, all->n_blobs,
                                                  input->rates, diag, report);
    }
    if (status != ME_OK) {
        me_report_destroy(report);
        return status == ME_ERR_NOMEM
                   ? me_fail(diag, status, "no memory for the report")
                   : status;
    }
    report->limit_bytes = input->limit_bytes;
    report->verdict = me_verdict_judge(report, input->capacity_bytes);
    *report_out = report;
    return ME_OK;
}

/** Are all results of the only process lent? */
static bool can_lend(const me_transport *transport, const me_report_part *parts,
                     uint32_t n_parts)
{
    bool are_lent = n_parts > 0 && me_transport_size(transport) == 1;
    for (uint32_t i = 0; are_lent && i < n_parts; i++) {
        are_lent = parts[i].lent != NULL;
    }
    return are_lent;
}

/** Through the transport. @param report_out  NULL on other processes than 0 */
static me_status gather_encoded(me_transport *transport,
                                const me_report_input *input,
                                const me_report_part *parts, uint32_t n_parts,
                                me_diag *diag, me_report **report_out)
{
    me_str block = {0};
    me_blob *blobs = NULL;
    me_status status = ME_OK;
    for (uint32_t i = 0; i < n_parts && status == ME_OK; i++) {
        status = put_part(&block, &parts[i]);
        if (status != ME_OK) {
            (void)me_fail(diag, status, "no memory for the gathered results");
        }
    }
    status = me_transport_agree(transport, status, diag);
    if (status == ME_OK) {
        status = me_transport_gather(transport, me_str_text(&block),
                                     block.length, diag, &blobs);
    }
    const int size = me_transport_size(transport);
    if (status == ME_OK && me_transport_rank(transport) == 0) {
        const gathered all = {.blobs = blobs, .n_blobs = size};
        status = build_report(input, &all, diag, report_out);
    }
    if (blobs != NULL) {
        me_blobs_free(blobs, size);
    }
    me_str_fini(&block);
    return status;
}

me_status me_report_gather(me_transport *transport,
                           const me_report_input *input,
                           const me_report_part *parts, uint32_t n_parts,
                           me_diag *diag, me_report **report_out)
{
    *report_out = NULL;
    me_report *report = NULL;
    me_status status = ME_OK;
    if (input->world_size < 1) {
        status = me_fail(diag, ME_ERR_INTERNAL, "a report of a world of %d",
                         (int)input->world_size);
    }
    status = me_transport_agree(transport, status, diag);
    if (status == ME_OK) {
        const gathered lent = {.lent = parts, .n_lent = n_parts};
        status = can_lend(transport, parts, n_parts)
                     ? build_report(input, &lent, diag, &report)
                     : gather_encoded(transport, input, parts, n_parts, diag,
                                      &report);
    }
    status = me_transport_agree(transport, status, diag);
    if (status == ME_OK) {
        *report_out = report;
        report = NULL;
    }
    me_report_destroy(report);
    return status;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of the only process: their results stay where they are, and are encoded
 * one after the other to see which of them are equal. */
#include "base/alloc.h"
#include "collectives/digest.h"
#include "report/gather_parts.h"

#include <stdlib.h>
#include <string.h>

/** A part of the report. */
typedef struct lent {
    me_rank_result *result;
    size_t size; /**< encoded */
    me_digest digest;
    int32_t lowest; /**< of its ranks */
    int32_t first;  /**< the lowest of all that have an equal result */
} lent;

static me_status digest_result(lent *x)
{
    enum {
        WORD = sizeof(uint64_t)
    };

    unsigned char *bytes = NULL;
    const me_status status = me_rank_result_encode(x->result, &bytes, &x->size);
    for (size_t at = 0; status == ME_OK && at < x->size; at += WORD) {
        uint64_t word = 0;
        memcpy(&word, bytes + at, x->size - at < WORD ? x->size - at : WORD);
        me_digest_add(&x->digest, word);
    }
    me_free(bytes);
    return status;
}

/** Give the ranks of part @p index their places. */
static me_status place_ranks(const me_report_part *part, uint32_t index,
                             lent *x, me_diag *diag, me_report *report)
{
    for (uint32_t i = 0; i < part->n_places; i++) {
        const me_rank_place *place = &part->places[i];
        if (place->rank < 0 || place->rank >= report->world_size ||
            report->ranks[place->rank].result != 0) {
            return me_gather_refuse(report->world_size, place->rank, true,
                                    diag);
        }
        report->ranks[place->rank] =
            (me_report_rank){.place = *place, .result = index + 1};
        x->lowest = place->rank < x->lowest ? place->rank : x->lowest;
    }
    return ME_OK;
}

static me_status read_parts(const me_report_part *parts, uint32_t n_parts,
                            lent *all, me_diag *diag, me_report *report)
{
    me_status status = ME_OK;
    for (uint32_t i = 0; status == ME_OK && i < n_parts; i++) {
        all[i] = (lent){.result = parts[i].lent, .lowest = INT32_MAX};
        status = digest_result(&all[i]);
        if (status == ME_OK) {
            status = place_ranks(&parts[i], i, &all[i], diag, report);
        }
    }
    for (int32_t rank = 0; status == ME_OK && rank < report->world_size;
         rank++) {
        if (report->ranks[rank].result == 0) {
            status = me_gather_refuse(report->world_size, rank, false, diag);
        }
    }
    return status;
}

static bool is_equal(const lent *a, const lent *b)
{
    return a->size == b->size && me_digest_is_equal(a->digest, b->digest);
}

/** By what the results are, then by rank. */
static int compare_lent(const void *a, const void *b)
{
    const lent *x = *(const lent *const *)a;
    const lent *y = *(const lent *const *)b;
    if (x->size != y->size) {
        return x->size < y->size ? -1 : 1;
    }
    if (x->digest.a != y->digest.a) {
        return x->digest.a < y->digest.a ? -1 : 1;
    }
    if (x->digest.b != y->digest.b) {
        return x->digest.b < y->digest.b ? -1 : 1;
    }
    return (x->lowest > y->lowest) - (x->lowest < y->lowest);
}

/** For each part the lowest rank with an equal result. */
static me_status find_firsts(lent *all, uint32_t n)
{
    lent **sorted = me_alloc(n, sizeof(lent *), "report.order");
    if (sorted == NULL) {
        return ME_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < n; i++) {
        sorted[i] = &all[i];
    }
    qsort(sorted, n, sizeof(lent *), compare_lent);
    for (uint32_t i = 0; i < n; i++) {
        const bool is_again = i > 0 && is_equal(sorted[i], sorted[i - 1]);
        sorted[i]->first = is_again ? sorted[i - 1]->first : sorted[i]->lowest;
    }
    me_free(sorted);
    return ME_OK;
}

/** Ranks, which know their parts, have results from now on. */
static void number_results(const lent *all, me_report *report)
{
    for (int32_t rank = 0; rank < report->world_size; rank++) {
        me_report_rank *entry = &report->ranks[rank];
        const lent *x = &all[entry->result - 1];
        if (x->first != rank) {
            entry->result = report->ranks[x->first].result;
            continue;
        }
        report->results[report->n_results] = x->result;
        entry->result = report->n_results++;
    }
}

/** The step's time, if the times of all stages are there. */
static me_status predict(const me_report_part *parts, uint32_t n_parts,
                         const me_rates *rates, me_diag *diag,
                         me_report *report)
{
    const int32_t n = report->config->parallel.pipeline;
    if (!me_report_is_timed(rates, report)) {
        return ME_OK;
    }
    me_time_program *programs =
        me_alloc((size_t)n, sizeof *programs, "report.times");
    if (programs == NULL) {
        return ME_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < n_parts; i++) {
        const me_rank_place *place = &parts[i].places[0];
        if (me_place_is_lowest(place) && place->pp >= 0 && place->pp < n) {
            programs[place->pp] = parts[i].lent->time;
        }
    }
    bool is_complete = true;
    for (int32_t i = 0; i < n; i++) {
        is_complete = is_complete && programs[i].n_items > 0;
    }
    const me_status status =
        is_complete ? me_report_predict(report, rates, programs, diag) : ME_OK;
    me_free(programs);
    return status;
}

me_status me_report_lend(const me_report_part *parts, uint32_t n_parts,
                         const me_rates *rates, me_diag *diag,
                         me_report *report)
{
    const size_t count = (size_t)report->world_size;
    lent *all = me_alloc(n_parts, sizeof *all, "report.parts");
    report->has_lent_results = true;
    report->ranks = me_alloc(count, sizeof *report->ranks, "report.ranks");
    report->results =
        me_alloc(n_parts, sizeof(me_rank_result *), "report.results");
    me_status status =
        all == NULL || report->ranks == NULL || report->results == NULL
            ? ME_ERR_NOMEM
            : read_parts(parts, n_parts, all, diag, report);
    if (status == ME_OK) {
        status = find_firsts(all, n_parts);
    }
    if (status == ME_OK) {
        number_results(all, report);
        status = predict(parts, n_parts, rates, diag, report);
    }
    me_free(all);
    return status;
}

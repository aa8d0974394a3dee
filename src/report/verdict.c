/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/verdict.h"

#include "base/size.h"
#include "report/units.h"

#include <inttypes.h>

/* How exact memest is where it models everything (docs/accuracy.md): device
 * bytes on a measured card, and reserved bytes where blocks come back late
 * because another stream still uses them. */
static const uint64_t device_band_bytes = UINT64_C(8) << 20;

enum {
    OVERLAP_BAND_PARTS = 50, /**< 1/50 of the reserved bytes: 2 % */
    TIGHT_PARTS = 20         /**< less than 1/20 of the card left: tight */
};

const char *me_risk_name(me_risk risk)
{
    switch (risk) {
#define NAME_CASE(constant, name)                                              \
    case constant: return name;
        ME_RISK_LIST(NAME_CASE)
    }
    return "unknown";
}

const char *me_basis_name(me_basis basis)
{
    switch (basis) {
        ME_BASIS_LIST(NAME_CASE)
#undef NAME_CASE
    }
    return "unknown";
}

static uint64_t point_bytes(const me_point_result *point, me_basis basis)
{
    switch (basis) {
    case ME_BASIS_DEVICE: return point->device_bytes;
    case ME_BASIS_RESERVED: return point->reserved_peak_bytes;
    case ME_BASIS_REQUESTED: return point->requested_peak_bytes;
    }
    return ME_BYTES_UNKNOWN;
}

static uint64_t peak_bytes(const me_peak_result *peak, me_basis basis)
{
    switch (basis) {
    case ME_BASIS_DEVICE: return peak->device_bytes;
    case ME_BASIS_RESERVED: return peak->reserved_bytes;
    case ME_BASIS_REQUESTED: return peak->requested_bytes;
    }
    return ME_BYTES_UNKNOWN;
}

/* Unknown is the largest number: one unknown makes the answer unknown. */
uint64_t me_result_most_bytes(const me_rank_result *result, me_basis basis)
{
    if (result->n_points == 0 && result->n_iterations == 0) {
        return ME_BYTES_UNKNOWN;
    }
    uint64_t most = 0;
    for (uint32_t i = 0; i < result->n_points; i++) {
        most = me_max_u64(most, point_bytes(&result->points[i], basis));
    }
    for (uint32_t i = 0; i < result->n_iterations; i++) {
        most = me_max_u64(most, peak_bytes(&result->iterations[i].peak, basis));
    }
    return most;
}

static bool is_known_everywhere(const me_report *report, me_basis basis)
{
    for (uint32_t i = 0; i < report->n_results; i++) {
        if (me_result_most_bytes(report->results[i], basis) ==
            ME_BYTES_UNKNOWN) {
            return false;
        }
    }
    return true;
}

static me_basis choose_basis(const me_report *report)
{
    if (is_known_everywhere(report, ME_BASIS_DEVICE)) {
        return ME_BASIS_DEVICE;
    }
    return is_known_everywhere(report, ME_BASIS_RESERVED) ? ME_BASIS_RESERVED
                                                          : ME_BASIS_REQUESTED;
}

/** Lowest rank that dies under its limit; -1: none. */
static int32_t find_oom(const me_report *report, bool *is_known_out)
{
    *is_known_out = true;
    int32_t found = -1;
    for (int32_t i = 0; i < report->world_size; i++) {
        const me_limit_result *limit =
            &report->results[report->ranks[i].result]->limit;
        *is_known_out = *is_known_out && limit->is_known;
        if (found < 0 && limit->is_known && limit->oom) {
            found = i;
        }
    }
    return found;
}

static uint64_t band_bytes(const me_report *report, const me_verdict *verdict)
{
    const me_optimizer_config *optimizer = &report->config->optimizer;
    uint64_t band = verdict->basis == ME_BASIS_DEVICE ? device_band_bytes : 0;
    if (optimizer->overlap_grad_reduce || optimizer->overlap_param_gather) {
        band += verdict->worst_bytes / OVERLAP_BAND_PARTS;
    }
    return band;
}

static void judge_risk(me_verdict *v, bool is_limit_known)
{
    const uint64_t capacity = v->capacity_bytes;
    const bool is_over = v->worst_bytes > capacity;
    const uint64_t apart =
        is_over ? v->worst_bytes - capacity : capacity - v->worst_bytes;
    const bool runs_under_limit = is_limit_known && v->oom_rank < 0;
    v->fits = v->oom_rank < 0 && (!is_over || runs_under_limit);
    if (apart <= v->band_bytes && v->band_bytes > 0) {
        v->risk = ME_RISK_COIN_FLIP;
    } else if (!v->fits) {
        v->risk = ME_RISK_DOES_NOT_FIT;
    } else if (is_over || apart < capacity / TIGHT_PARTS) {
        v->risk = ME_RISK_TIGHT;
    } else {
        v->risk = ME_RISK_FITS;
    }
}

me_verdict me_verdict_judge(const me_report *report, uint64_t capacity_bytes)
{
    me_verdict v = {.basis = choose_basis(report),
                    .capacity_bytes = capacity_bytes};
    for (int32_t i = 0; i < report->world_size; i++) {
        const uint64_t bytes = me_result_most_bytes(
            report->results[report->ranks[i].result], v.basis);
        if (bytes != ME_BYTES_UNKNOWN && bytes > v.worst_bytes) {
            v.worst_bytes = bytes;
            v.worst_rank = i;
        }
    }
    bool is_limit_known = false;
    v.oom_rank = find_oom(report, &is_limit_known);
    v.band_bytes = band_bytes(report, &v);
    if (capacity_bytes != 0) {
        judge_risk(&v, is_limit_known);
    } else if (v.oom_rank >= 0) {
        v.risk = ME_RISK_DOES_NOT_FIT;
    }
    return v;
}

static const char *risk_phrase(me_risk risk)
{
    switch (risk) {
    case ME_RISK_UNKNOWN: return "no capacity given";
    case ME_RISK_FITS: return "fits";
    case ME_RISK_TIGHT: return "fits, but tight";
    case ME_RISK_COIN_FLIP: return "coin flip, too close to call";
    case ME_RISK_DOES_NOT_FIT: return "does not fit";
    }
    return "?";
}

static void print_oom(const me_report *report, me_str *text)
{
    const int32_t rank = report->verdict.oom_rank;
    const me_limit_result *limit =
        &report->results[report->ranks[rank].result]->limit;
    me_str_printf(text, "; under its limit rank %d dies in iteration %d",
                  (int)rank, (int)limit->iteration);
    if (limit->phase != NULL) {
        me_str_printf(text, ", %s", limit->phase);
    }
    if (limit->module != NULL && *limit->module != '\0') {
        me_str_printf(text, ", %s", limit->module);
    }
    if (limit->op != NULL) {
        me_str_printf(text, ", %s", limit->op);
    }
    me_str_printf(text, ", asking for %" PRIu64 " bytes", limit->tried_bytes);
}

void me_verdict_print(const me_report *report, me_str *text)
{
    const me_verdict *v = &report->verdict;
    me_str_printf(text, "%s; rank %d takes ", risk_phrase(v->risk),
                  (int)v->worst_rank);
    me_gib_append(text, v->worst_bytes);
    if (v->capacity_bytes != 0) {
        me_str_append(text, " of ");
        me_gib_append(text, v->capacity_bytes);
    }
    me_str_printf(text, " GiB (%s", me_basis_name(v->basis));
    if (v->capacity_bytes != 0) {
        me_str_append(text, ", ");
        me_percent_append(text, v->worst_bytes, v->capacity_bytes);
    }
    if (v->basis != ME_BASIS_DEVICE) {
        me_str_append(text, "; what lies outside is not counted");
    }
    me_str_append(text, ")");
    if (v->oom_rank >= 0) {
        print_oom(report, text);
    }
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/verdict.h"

#include "base/size.h"
#include "report/node_memory.h"
#include "report/quantity.h"

#include <stdint.h>

/**
 * The band, as tests/accuracy/bands derives it: shares of the reserved bytes that
 * memest gives. Equal runs of a job on equal cards, and ranks with equal programs,
 * repeat to the byte but for these: one segment of the allocator's small kind
 * (2 MiB: g2_tp2_sp, g4_tp2_pp2); transfers of interleaved schedules that overlap
 * with kernels, so that blocks come back when a neighbour lets the GPU go on
 * (g4_pp2_vpp2_dp2_do_ov, rank 3: 250 MiB over 1408 between six runs); routing of
 * tokens to experts (g4_ep4_do, rank 1: 12 over 2280 MiB), and where no routing is
 * given the balanced one that is taken for it (g4_pp2_ep2, rank 2: the measured
 * reserved bytes 7.4 % over memest's). What is left of pipelines is where the
 * driver puts segments: with another order of them than the measured one reserved
 * bytes are off by at most 2.5 % (g4_pp4_full, rank 2), and another driver or NCCL
 * may have another. Where a result has the latest that frees can be (pipelines of
 * plain PyTorch) their part is what that reserves more. The device's part comes
 * with each result.
 */
static const uint64_t segment_band_bytes = UINT64_C(2) << 20;

enum {
    LATE_FREES_PER_MILLE = 25,
    OVERLAP_PER_MILLE = 153, /* beyond late frees */
    ROUTING_PER_MILLE = 6,
    BALANCED_ROUTING_PER_MILLE = 74
};

/** What is small: the largest of what the words stand for, a CUDA context or a
 * communicator with its buffers, or a few percent where it grows with the job.
 * Some: what Transformer Engine's layers take against the local ones, at most 24
 * percent of reserved bytes in measured jobs. Much: one byte an element in place
 * of two, or two in place of four. */
enum {
    SMALL_PER_MILLE = 20,
    SOME_PER_MILLE = 250,
    MUCH_PER_MILLE = 500
};

static const uint64_t small_reach_bytes = UINT64_C(512) << 20;

const char *me_risk_name(me_risk risk)
{
    switch (risk) {
#define NAME_CASE(constant, name, phrase)                                      \
    case constant: return name;
        ME_RISK_LIST(NAME_CASE)
#undef NAME_CASE
    }
    return "unknown";
}

const char *me_risk_phrase(me_risk risk)
{
    switch (risk) {
#define PHRASE_CASE(constant, name, phrase)                                    \
    case constant: return phrase;
        ME_RISK_LIST(PHRASE_CASE)
#undef PHRASE_CASE
    }
    return "?";
}

const char *me_basis_name(me_basis basis)
{
    switch (basis) {
#define NAME_CASE(constant, name)                                              \
    case constant: return name;
        ME_BASIS_LIST(NAME_CASE)
#undef NAME_CASE
    }
    return "unknown";
}

static uint64_t bytes_of(me_basis basis, uint64_t device, uint64_t reserved,
                         uint64_t requested)
{
    switch (basis) {
    case ME_BASIS_DEVICE: return device;
    case ME_BASIS_RESERVED: return reserved;
    case ME_BASIS_REQUESTED: return requested;
    }
    return ME_BYTES_UNKNOWN;
}

/** Unknown is the largest number: one unknown makes the answer unknown. */
uint64_t me_result_most_bytes(const me_rank_result *result, me_basis basis)
{
    if (result->n_points == 0 && result->n_iterations == 0) {
        return ME_BYTES_UNKNOWN;
    }
    uint64_t most = 0;
    for (uint32_t i = 0; i < result->n_points; i++) {
        const me_point_result *p = &result->points[i];
        most = me_max_u64(most, bytes_of(basis, p->device_bytes,
                                         p->reserved_peak_bytes,
                                         p->requested_peak_bytes));
    }
    for (uint32_t i = 0; i < result->n_iterations; i++) {
        const me_peak_result *p = &result->iterations[i].peak;
        most =
            me_max_u64(most, bytes_of(basis, p->device_bytes, p->reserved_bytes,
                                      p->requested_bytes));
    }
    return most;
}

static bool is_known_everywhere(const me_report *report, me_basis basis)
{
    uint32_t i = 0;
    while (i < report->n_results &&
           me_result_most_bytes(report->results[i], basis) !=
               ME_BYTES_UNKNOWN) {
        i++;
    }
    return i == report->n_results;
}

static me_basis choose_basis(const me_report *report)
{
    if (is_known_everywhere(report, ME_BASIS_DEVICE)) {
        return ME_BASIS_DEVICE;
    }
    return is_known_everywhere(report, ME_BASIS_RESERVED) ? ME_BASIS_RESERVED
                                                          : ME_BASIS_REQUESTED;
}

/** How ranks end with the memory that there is, and with a band less or more. */
typedef struct ends {
    bool is_known;
    int32_t oom_rank; /**< the lowest that dies; -1: none */
    bool oom_with_less;
    bool oom_with_more;
} ends;

static ends find_ends(const me_report *report)
{
    ends found = {.is_known = true, .oom_rank = -1};
    for (uint32_t i = 0; i < report->n_results; i++) {
        const me_limit_result *limit = &report->results[i]->limit;
        found.is_known = found.is_known && limit->is_known;
        if (!limit->is_known) {
            continue;
        }
        if (found.oom_rank < 0 && limit->oom) {
            found.oom_rank = me_report_lowest_rank(report, i);
        }
        found.oom_with_less |= limit->oom_with_less;
        found.oom_with_more |= limit->oom_with_more;
    }
    return found;
}

static uint64_t per_mille(uint64_t bytes, uint64_t parts)
{
    return bytes / 1000 * parts + bytes % 1000 * parts / 1000;
}

/**
 * At most by how many bytes a job with what is not modelled lies above what is
 * estimated, or below it; UINT64_MAX: nobody knows. Local.
 *
 * @param bytes  that are estimated, of which some reaches are shares
 */
static uint64_t reach_bytes(me_reach reach, uint64_t bytes)
{
    switch (reach) {
    case ME_REACH_NONE: return 0;
    case ME_REACH_SMALL:
        return me_max_u64(small_reach_bytes, per_mille(bytes, SMALL_PER_MILLE));
    case ME_REACH_SOME:
        return me_max_u64(small_reach_bytes, per_mille(bytes, SOME_PER_MILLE));
    case ME_REACH_MUCH:
        return me_max_u64(small_reach_bytes, per_mille(bytes, MUCH_PER_MILLE));
    case ME_REACH_UNKNOWN:
    case ME_REACH_ANY: break;
    }
    return UINT64_MAX;
}

bool me_verdict_leaves_out_much(const me_config *config)
{
    for (int32_t i = 0; i < config->not_modelled.count; i++) {
        const me_effect effect = config->not_modelled.flags[i].effect;
        if (reach_bytes(effect.lower, 0) == UINT64_MAX ||
            reach_bytes(effect.higher, 0) == UINT64_MAX) {
            return true;
        }
    }
    return false;
}

/** All that is left out together, which is more than any job will see. */
static void sum_reaches(const me_config *config, me_verdict *v)
{
    for (int32_t i = 0; i < config->not_modelled.count; i++) {
        const me_effect effect = config->not_modelled.flags[i].effect;
        v->lower_bytes = me_size_add(v->lower_bytes,
                                     reach_bytes(effect.lower, v->worst_bytes));
        v->higher_bytes = me_size_add(
            v->higher_bytes, reach_bytes(effect.higher, v->worst_bytes));
    }
}

me_band me_verdict_band(const me_config *config, me_basis basis,
                        const me_rank_result *result)
{
    const uint64_t reserved = me_result_most_bytes(result, ME_BASIS_RESERVED);
    me_band band = {0};
    if (basis == ME_BASIS_REQUESTED || reserved == ME_BYTES_UNKNOWN) {
        return band;
    }
    band.segment = segment_band_bytes;
    if (basis == ME_BASIS_DEVICE && result->device.is_known) {
        band.device = result->device.band_bytes;
    }
    band.compile_cache = result->timing_buffer_bytes;
    band.workspace = result->workspace_doubt_bytes;
    if (result->late.is_known) {
        band.late_frees = result->late.reserved_bytes > reserved
                              ? result->late.reserved_bytes - reserved
                              : 0;
    } else if (config->parallel.pipeline > 1) {
        band.late_frees = per_mille(reserved, LATE_FREES_PER_MILLE);
    }
    if (!result->late.is_known && config->parallel.virtual_pipeline > 1 &&
        (config->optimizer.overlap_grad_reduce ||
         config->parallel.overlap_p2p_comm)) {
        band.overlap = per_mille(reserved, OVERLAP_PER_MILLE);
    }
    if (config->moe.num_experts > 0) {
        const bool is_taken = config->parallel.expert > 1 &&
                              config->moe.tokens[0] == '\0' &&
                              !config->moe.is_skewed;
        band.routing = per_mille(reserved, is_taken ? BALANCED_ROUTING_PER_MILLE
                                                    : ROUTING_PER_MILLE);
    }
    return band;
}

me_reserved_range me_verdict_reserved_range(const me_config *config,
                                            const me_rank_result *result)
{
    const uint64_t reserved = me_result_most_bytes(result, ME_BASIS_RESERVED);
    const uint64_t requested = me_result_most_bytes(result, ME_BASIS_REQUESTED);
    const me_band band = me_verdict_band(config, ME_BASIS_RESERVED, result);
    if (band.overlap == 0 || requested == ME_BYTES_UNKNOWN) {
        return (me_reserved_range){.is_known = false};
    }
    const uint64_t width = band.late_frees + band.overlap;
    return (me_reserved_range){
        .is_known = true,
        .least_bytes = me_max_u64(reserved - width, requested),
        .most_bytes = reserved + width,
    };
}

uint64_t me_band_bytes(const me_band *band)
{
    uint64_t sum = 0;
#define ADD_PART(member, what) sum += band->member;
    ME_BAND_LIST(ADD_PART)
#undef ADD_PART
    return sum;
}

static bool is_over(const me_verdict *v)
{
    return v->worst_bytes > v->capacity_bytes;
}

static uint64_t distance(const me_verdict *v)
{
    return is_over(v) ? v->worst_bytes - v->capacity_bytes
                      : v->capacity_bytes - v->worst_bytes;
}

/** Without simulated ends: by what ranks want alone. */
static me_risk risk_by_bytes(const me_verdict *v)
{
    if (distance(v) <= v->band_bytes && v->band_bytes > 0) {
        return ME_RISK_COIN_FLIP;
    }
    if (is_over(v)) {
        return ME_RISK_DOES_NOT_FIT;
    }
    return distance(v) < v->tight_bytes ? ME_RISK_TIGHT : ME_RISK_FITS;
}

/** Tight: it has to give cached blocks back, or a second context on the card,
 *  such as a data loader makes, or a band less would make it do so. */
static void judge_risk(me_verdict *v, const ends *found)
{
    v->fits = v->oom_rank < 0 && (!is_over(v) || found->is_known);
    if (!found->is_known) {
        v->risk = risk_by_bytes(v);
    } else if (found->oom_with_more) {
        v->risk = ME_RISK_DOES_NOT_FIT;
    } else if (v->oom_rank >= 0 || found->oom_with_less) {
        v->risk = ME_RISK_COIN_FLIP;
    } else if (is_over(v) || distance(v) < v->tight_bytes) {
        v->risk = ME_RISK_TIGHT;
    } else {
        v->risk = ME_RISK_FITS;
    }
}

/** Could what is left out turn the verdict over? */
static bool is_open(const me_verdict *v)
{
    const uint64_t room = is_over(v) ? 0 : distance(v);
    const uint64_t excess = is_over(v) ? distance(v) : 0;
    switch (v->risk) {
    case ME_RISK_UNKNOWN:
    case ME_RISK_CANNOT_SAY: return false;
    case ME_RISK_FITS:
    case ME_RISK_TIGHT: return v->higher_bytes > room;
    case ME_RISK_COIN_FLIP:
        return v->higher_bytes > v->band_bytes ||
               v->lower_bytes > v->band_bytes;
    case ME_RISK_DOES_NOT_FIT: break;
    }
    return v->lower_bytes > excess;
}

int32_t me_report_worst_by(const me_report *report, me_basis basis,
                           uint64_t *bytes_out)
{
    uint32_t worst = 0;
    *bytes_out = ME_BYTES_UNKNOWN;
    for (uint32_t i = 0; i < report->n_results; i++) {
        const uint64_t bytes = me_result_most_bytes(report->results[i], basis);
        if (bytes != ME_BYTES_UNKNOWN &&
            (*bytes_out == ME_BYTES_UNKNOWN || bytes > *bytes_out)) {
            *bytes_out = bytes;
            worst = i;
        }
    }
    return me_report_lowest_rank(report, worst);
}

/** The worst rank by one number, against one capacity. */
static me_verdict weigh(const me_report *report, me_basis basis,
                        uint64_t capacity_bytes)
{
    me_verdict v = {.basis = basis, .capacity_bytes = capacity_bytes};
    uint64_t bytes = 0;
    v.worst_rank = me_report_worst_by(report, basis, &bytes);
    v.worst_bytes = bytes == ME_BYTES_UNKNOWN ? 0 : bytes;
    const me_rank_result *worst =
        report->results[report->ranks[v.worst_rank].result];
    v.band = me_verdict_band(report->config, basis, worst);
    v.band_bytes = me_band_bytes(&v.band);
    sum_reaches(report->config, &v);
    v.tight_bytes = v.band_bytes;
    if (basis == ME_BASIS_DEVICE && worst->device.is_known) {
        v.tight_bytes += worst->device.context_bytes;
    }
    return v;
}

/** Which of two capacities is met first? */
static bool is_closer(const me_verdict *a, const me_verdict *b)
{
    if (is_over(a) != is_over(b)) {
        return is_over(a);
    }
    return is_over(a) ? distance(a) > distance(b) : distance(a) < distance(b);
}

me_verdict me_verdict_judge(const me_report *report, uint64_t capacity_bytes)
{
    me_verdict v = weigh(report, choose_basis(report), capacity_bytes);
    const uint64_t limit = report->limit_bytes;
    if (limit != 0 && is_known_everywhere(report, ME_BASIS_RESERVED)) {
        const me_verdict limited = weigh(report, ME_BASIS_RESERVED, limit);
        v = capacity_bytes == 0 || is_closer(&limited, &v) ? limited : v;
    }
    const ends found = find_ends(report);
    v.oom_rank = found.oom_rank;
    v.node = me_report_node_memory(report);
    if (v.capacity_bytes != 0) {
        judge_risk(&v, &found);
    } else if (v.oom_rank >= 0) {
        v.risk = ME_RISK_DOES_NOT_FIT;
    }
    v.risk = is_open(&v) ? ME_RISK_CANNOT_SAY : v.risk;
    if (me_node_memory_is_over(&v.node)) {
        v.risk = ME_RISK_DOES_NOT_FIT;
        v.fits = false;
    }
    return v;
}

bool me_verdict_lets_go(const me_verdict *verdict)
{
    switch (verdict->risk) {
    case ME_RISK_UNKNOWN:
    case ME_RISK_FITS:
    case ME_RISK_TIGHT: return true;
    case ME_RISK_COIN_FLIP:
    case ME_RISK_DOES_NOT_FIT:
    case ME_RISK_CANNOT_SAY: break;
    }
    return false;
}

/** The first of the flags whose reach is the largest of all. */
static const me_flag_note *farthest(const me_verdict *v,
                                    const me_flag_list *missing)
{
    const me_flag_note *most = NULL;
    uint64_t most_bytes = 0;
    for (int32_t i = 0; i < missing->count; i++) {
        const me_effect effect = missing->flags[i].effect;
        const uint64_t bytes =
            me_max_u64(reach_bytes(effect.lower, v->worst_bytes),
                       reach_bytes(effect.higher, v->worst_bytes));
        if (most == NULL || bytes > most_bytes) {
            most = &missing->flags[i];
            most_bytes = bytes;
        }
    }
    return most;
}

static void append_reach(const char *verb, uint64_t bytes, me_str *text)
{
    me_str_printf(text, " %s it by ", verb);
    if (bytes == UINT64_MAX) {
        me_str_append(text, "any amount");
    } else {
        me_str_append(text, "up to ");
        me_gib_append(text, bytes);
        me_str_append(text, " GiB");
    }
}

/** Why nothing can be said. */
static void append_reason(const me_verdict *v, const me_flag_list *missing,
                          me_str *text)
{
    const me_flag_note *flag = farthest(v, missing);
    me_str_append(text, ", because what is not modelled");
    if (flag != NULL) {
        me_str_printf(text, " (%s%s)", flag->flag,
                      missing->count > 1 ? " above all" : "");
    }
    me_str_append(text, " may");
    if (v->lower_bytes == v->higher_bytes) {
        append_reach("lower or raise", v->lower_bytes, text);
    } else if (v->lower_bytes > 0) {
        append_reach("lower", v->lower_bytes, text);
        me_str_append(text, v->higher_bytes > 0 ? " or" : "");
    }
    if (v->higher_bytes > 0 && v->lower_bytes != v->higher_bytes) {
        append_reach("raise", v->higher_bytes, text);
    }
}

void me_verdict_print(const me_report *report, me_str *text)
{
    const me_verdict *v = &report->verdict;
    // A limited run has shown that what is over the capacity is cached.
    const bool is_squeezed = v->risk == ME_RISK_TIGHT && is_over(v);
    me_str_append(text, me_risk_phrase(v->risk));
    if (v->risk == ME_RISK_CANNOT_SAY) {
        append_reason(v, &report->config->not_modelled, text);
    }
    me_node_memory_append_excess(&v->node, text);
    me_str_printf(text, "; rank %d %s ", (int)v->worst_rank,
                  is_squeezed ? "has to give cached blocks back, and would take"
                              : "takes");
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
    const int missing = (int)report->config->not_modelled.count;
    if (missing > 0) {
        me_str_printf(text, ", not counting %d flag%s that %s not modelled",
                      missing, missing == 1 ? "" : "s",
                      missing == 1 ? "is" : "are");
    }
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/confidence.h"
#include "report/json.h"
#include "report/verdict.h"

static json_t *make_band(const me_band *band)
{
    json_t *object = json_object();
#define SET_PART(member, what)                                                 \
    object = me_json_put(object, #member "_bytes", me_json_bytes(band->member));
    ME_BAND_LIST(SET_PART)
#undef SET_PART
    return object;
}

/** The worst rank by each number: they may be different ranks. */
static json_t *make_worst(const me_report *report)
{
    json_t *object = json_object();
#define SET_WORST(basis, name)                                                 \
    {                                                                          \
        uint64_t bytes = 0;                                                    \
        const int32_t rank = me_report_worst_by(report, basis, &bytes);        \
        object = me_json_put(object, name,                                     \
                             json_pack("{s:i, s:o}", "rank", (int)rank,        \
                                       "bytes", me_json_bytes(bytes)));        \
    }
    ME_BASIS_LIST(SET_WORST)
#undef SET_WORST
    return object;
}

/** NULL: no host holds anything. */
static json_t *make_node(const me_node_memory *node)
{
    return node->n_ranks == 0
               ? NULL
               : json_pack("{s:i, s:i, s:i, s:o, s:o, s:o}", "node",
                           (int)node->node, "first_rank", (int)node->first_rank,
                           "ranks", (int)node->n_ranks, "bytes",
                           me_json_bytes(node->bytes), "pinned_bytes",
                           me_json_bytes(node->pinned_bytes), "capacity_bytes",
                           me_json_bytes(node->capacity_bytes == 0
                                             ? ME_BYTES_UNKNOWN
                                             : node->capacity_bytes));
}

json_t *me_json_verdict(const me_report *report)
{
    const me_verdict *v = &report->verdict;
    const bool is_judged = v->risk != ME_RISK_UNKNOWN;
    const uint64_t capacity =
        v->capacity_bytes == 0 ? ME_BYTES_UNKNOWN : v->capacity_bytes;
    const bool is_known = is_judged && v->risk != ME_RISK_CANNOT_SAY;
    const me_confidence confidence = me_confidence_of(report);
    return json_pack(
        "{s:o, s:s?, s:o, s:o, s:i, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o*}",
        "fits", is_known ? json_boolean(v->fits) : json_null(), "risk",
        is_judged ? me_risk_name(v->risk) : NULL, "confidence",
        me_confidence_json(&confidence), "capacity_bytes",
        me_json_bytes(capacity), "worst_rank", (int)v->worst_rank, "basis",
        me_basis_name(v->basis), "worst_bytes", me_json_bytes(v->worst_bytes),
        "band_bytes", me_json_bytes(v->band_bytes), "band", make_band(&v->band),
        "lower_bytes", me_json_bytes(v->lower_bytes), "higher_bytes",
        me_json_bytes(v->higher_bytes), "worst_by", make_worst(report), "host",
        make_node(&v->node));
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/confidence.h"

#include "base/size.h"
#include "model/effect.h"
#include "report/json.h"
#include "report/quantity.h"
#include "report/verdict.h"

#include <stddef.h>

me_confidence me_confidence_of(const me_report *report)
{
    const me_verdict *v = &report->verdict;
    if (me_verdict_leaves_out_much(report->config)) {
        return (me_confidence){.level = ME_CONFIDENCE_NOT_MODELLED,
                               .lower_bytes = ME_BYTES_UNKNOWN,
                               .higher_bytes = ME_BYTES_UNKNOWN};
    }
    // What lies outside of the allocator has a band on any card, and so has how
    // the allocator cuts segments.
    const uint64_t undecided =
        me_size_add(me_size_add(v->band.late_frees, v->band.overlap),
                    me_size_add(v->band.routing, v->band.workspace));
    const bool is_modelled = undecided == 0 &&
                             v->band.device <= ME_MEASURED_DEVICE_BAND_BYTES &&
                             v->lower_bytes == 0 && v->higher_bytes == 0;
    me_confidence confidence = {
        .level = ME_CONFIDENCE_APPROXIMATED,
        .lower_bytes = me_size_add(v->lower_bytes, v->band_bytes),
        .higher_bytes = me_size_add(v->higher_bytes, v->band_bytes)};
    if (is_modelled) {
        confidence.level =
            v->band_bytes > 0 ? ME_CONFIDENCE_MODELLED : ME_CONFIDENCE_EXACT;
    }
    return confidence;
}

const char *me_confidence_word(me_confidence_level level)
{
    static const char *const words[] = {
#define ME_CONFIDENCE_WORD(constant, name) [constant] = (name),
        ME_CONFIDENCE_LIST(ME_CONFIDENCE_WORD)
#undef ME_CONFIDENCE_WORD
    };
    return words[level];
}

void me_confidence_append(const me_confidence *confidence, me_str *text)
{
    me_str_append(text, me_confidence_word(confidence->level));
    if (confidence->level == ME_CONFIDENCE_EXACT ||
        confidence->level == ME_CONFIDENCE_NOT_MODELLED) {
        return;
    }
    me_str_append(text, ", -");
    me_gib_append(text, confidence->lower_bytes);
    me_str_append(text, " to +");
    me_gib_append(text, confidence->higher_bytes);
    me_str_append(text, " GiB");
}

json_t *me_confidence_json(const me_confidence *confidence)
{
    return json_pack("{s:s, s:o, s:o}", "level",
                     me_confidence_word(confidence->level), "lower_bytes",
                     me_json_bytes(confidence->lower_bytes), "higher_bytes",
                     me_json_bytes(confidence->higher_bytes));
}

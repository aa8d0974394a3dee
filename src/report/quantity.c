/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/quantity.h"

#include "model/event.h"
#include "track/result.h"

#include <inttypes.h>

enum {
    GIB_SHIFT = 30,
    THOUSANDTHS = 1000,
    GROUP = 1000
};

void me_gib_append(me_str *text, uint64_t bytes)
{
    if (bytes == ME_BYTES_UNKNOWN) {
        me_str_append(text, "-");
        return;
    }
    const uint64_t gib = UINT64_C(1) << GIB_SHIFT;
    uint64_t whole = bytes >> GIB_SHIFT;
    uint64_t thousandths =
        ((bytes & (gib - 1)) * THOUSANDTHS + gib / 2) >> GIB_SHIFT;
    if (thousandths == THOUSANDTHS) {
        whole++;
        thousandths = 0;
    }
    me_str_printf(text, "%" PRIu64 ".%03" PRIu64, whole, thousandths);
}

void me_count_append(me_str *text, uint64_t count)
{
    if (count == ME_BYTES_UNKNOWN) {
        me_str_append(text, "-");
        return;
    }
    uint64_t unit = 1;
    while (count / unit >= GROUP) {
        unit *= GROUP;
    }
    me_str_printf(text, "%" PRIu64, count / unit);
    for (unit /= GROUP; unit > 0; unit /= GROUP) {
        me_str_printf(text, ",%03" PRIu64, count / unit % GROUP);
    }
}

/** part * scale / whole to the nearest; part and whole are shifted alike
 * until the product fits. */
static uint64_t scale_to(uint64_t part, uint64_t whole, uint64_t scale)
{
    while (part > UINT64_MAX / scale - whole / scale ||
           whole > UINT64_MAX / 2) {
        part >>= 1;
        whole >>= 1;
    }
    return whole == 0 ? 0 : (part * scale + whole / 2) / whole;
}

void me_percent_append(me_str *text, uint64_t part, uint64_t whole)
{
    if (whole == 0 || part == ME_BYTES_UNKNOWN || whole == ME_BYTES_UNKNOWN) {
        me_str_append(text, "-");
        return;
    }
    const uint64_t tenths = scale_to(part, whole, THOUSANDTHS);
    me_str_printf(text, "%" PRIu64 ".%" PRIu64 " %%", tenths / 10, tenths % 10);
}

void me_bar_append(me_str *text, uint64_t part, uint64_t whole, unsigned width)
{
    const uint64_t length = scale_to(part, whole, width);
    for (uint64_t i = 0; i < length && i < width; i++) {
        me_str_append(text, "#");
    }
}

void me_iteration_append(me_str *text, int32_t iteration, const char *phase)
{
    if (iteration < 0) {
        me_str_append(text, " in set-up");
    } else if (me_phase_is_evaluation(phase)) {
        me_str_append(text, " in evaluation");
    } else {
        me_str_printf(text, " in iteration %d, %s", (int)iteration,
                      phase == NULL ? "?" : phase);
    }
}

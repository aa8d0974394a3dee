/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/compiled.h"

#include "base/size.h"

#include <string.h>

/** Configurations that an element-wise kernel is tried with: a block size and
 *  half of it, or tiles of four shapes beside two with one row or one column
 *  (torch/_inductor/runtime/triton_heuristics.py, pointwise()). */
enum {
    CONFIGURATIONS = 2,
    TILED_CONFIGURATIONS = 6,
    REDUCTION_CONFIGURATIONS = 3,
    MOST_VERSIONS = 2 /**< for the first strides, then for any */
};

_Static_assert((int)ME_COMPILED_KERNELS <= (int)ME_MAX_COMPILED,
               "the engine has no room for all compiled kernels");

/** Is this kernel new? Strides are compared as torch.compile's guards do. */
static bool is_new(me_engine *e, me_compiled_kernel kernel,
                   const me_tensor *input)
{
    me_compiled *known = me_engine_compiled(e, kernel);
    if (known->versions == 0) {
        if (input != NULL) {
            memcpy(known->strides, input->strides, sizeof known->strides);
        }
        me_collect(e);
    } else if (known->versions == MOST_VERSIONS || input == NULL ||
               memcmp(known->strides, input->strides, sizeof known->strides) ==
                   0) {
        return false;
    }
    known->versions++;
    return true;
}

static void copy_once(me_engine *e, const me_tensor *changed, int n_changed)
{
    const me_frame frame = me_enter(e);
    for (int i = 0; i < n_changed; i++) {
        me_empty_like(e, "autotune.clone", changed);
    }
    me_leave(e, frame, NULL);
}

/** Of other numbers of configurations: a kernel that reads its inputs along unlike
 *  dimensions is tiled, and blocks of a reduction have 1, 8 or 32 rows. */
static const int configurations[ME_COMPILED_KERNELS] = {
    [ME_COMPILED_RING_OUTPUT_INIT] = TILED_CONFIGURATIONS,
    [ME_COMPILED_L2_NORM] = REDUCTION_CONFIGURATIONS,
    [ME_COMPILED_L2_NORM_BACKWARD] = REDUCTION_CONFIGURATIONS,
};

static int configurations_of(me_compiled_kernel kernel)
{
    return configurations[kernel] > 0 ? configurations[kernel] : CONFIGURATIONS;
}

/** All that the timing of a kernel asks for, as if each of it got segments of its
 *  own. */
static uint64_t timing_bytes(const me_engine *e, me_compiled_kernel kernel,
                             const me_tensor *changed, int n_changed)
{
    const uint64_t segment = UINT64_C(2) << 20;
    const uint64_t copy =
        n_changed == 0 ? 0 : me_round_up(me_bytes(changed), segment);
    const uint64_t copies = me_size_mul(copy, 2 * (uint64_t)n_changed);
    const uint64_t once = me_size_add(
        me_round_up(me_engine_card(e)->l2_cache_bytes, segment), copies);
    return me_size_mul(once, (uint64_t)configurations_of(kernel));
}

/** @param changed  shape of each of @p n_changed that it writes to */
static void time_kernel(me_engine *e, me_compiled_kernel kernel,
                        const me_tensor *changed, int n_changed)
{
    const uint64_t cache = me_engine_card(e)->l2_cache_bytes;
    me_compile_timing_note(e, timing_bytes(e, kernel, changed, n_changed));
    if (me_compile_cache_is_warm(e)) {
        return;
    }
    const me_frame frame = me_enter(e);
    for (int i = 0; i < configurations_of(kernel); i++) {
        copy_once(e, changed, n_changed);
        me_tensor *flush =
            me_empty(e, "autotune.flush", ME_DTYPE_UINT8, ME_SHAPE(cache));
        copy_once(e, changed, n_changed);
        me_drop(e, flush);
    }
    me_leave(e, frame, NULL);
}

void me_compiled_run(me_engine *e, me_compiled_kernel kernel,
                     const me_tensor *input)
{
    if (me_engine_is_ok(e) && is_new(e, kernel, input)) {
        time_kernel(e, kernel, NULL, 0);
    }
}

/** Bits of `versions` where rows are told apart. */
enum {
    FOR_FIRST_ROWS = 1,
    FOR_ANY_ROWS = 2,
    FOR_ONE_ROW = 4
};

static uint32_t version_for(const me_compiled *known, uint64_t rows)
{
    if (rows == 1) {
        return FOR_ONE_ROW;
    }
    return (known->versions & FOR_FIRST_ROWS) == 0 || known->strides[0] == rows
               ? FOR_FIRST_ROWS
               : FOR_ANY_ROWS;
}

void me_compiled_run_rows(me_engine *e, me_compiled_kernel kernel,
                          uint64_t rows)
{
    me_compiled *known = me_engine_compiled(e, kernel);
    const uint32_t version = version_for(known, rows);
    if (!me_engine_is_ok(e) || rows == 0 || (known->versions & version) != 0) {
        return;
    }
    if (version == FOR_FIRST_ROWS) {
        me_collect(e);
        known->strides[0] = rows;
    }
    known->versions |= version;
    time_kernel(e, kernel, NULL, 0);
}

void me_compiled_run_in_place(me_engine *e, me_compiled_kernel kernel,
                              const me_tensor *changed)
{
    if (me_engine_is_ok(e) && is_new(e, kernel, NULL)) {
        time_kernel(e, kernel, changed, 1);
    }
}

void me_compiled_run_updating(me_engine *e, me_compiled_kernel kernel,
                              const me_tensor *input, const me_tensor *changed)
{
    if (me_engine_is_ok(e) && is_new(e, kernel, input)) {
        time_kernel(e, kernel, changed, 2);
    }
}

/** Versions are bits by which numbers a version takes for any; `strides` has
 *  the first numbers. */
static bool has_version(const me_compiled *known, const uint64_t *numbers)
{
    for (uint32_t any = 0; any < 1U << ME_COMPILED_NUMBERS; any++) {
        bool fits = (known->versions >> any & 1) != 0;
        for (int i = 0; i < ME_COMPILED_NUMBERS; i++) {
            fits = fits &&
                   ((any >> i & 1) != 0 || numbers[i] == known->strides[i]);
        }
        if (fits) {
            return true;
        }
    }
    return false;
}

/** Numbers that any version takes for any, and those that are new. */
static uint32_t changed_numbers(const me_compiled *known,
                                const uint64_t *numbers)
{
    uint32_t changed = 0;
    for (uint32_t any = 0; any < 1U << ME_COMPILED_NUMBERS; any++) {
        changed |= (known->versions >> any & 1) != 0 ? any : 0;
    }
    for (int i = 0; i < ME_COMPILED_NUMBERS; i++) {
        changed |= numbers[i] != known->strides[i] ? 1U << i : 0;
    }
    return changed;
}

void me_compiled_run_numbers(me_engine *e, me_compiled_kernel kernel,
                             const uint64_t *numbers, const me_tensor *changed,
                             int n_changed)
{
    me_compiled *known = me_engine_compiled(e, kernel);
    if (!me_engine_is_ok(e) || has_version(known, numbers)) {
        return;
    }
    if (known->versions == 0) {
        memcpy(known->strides, numbers, ME_COMPILED_NUMBERS * sizeof *numbers);
        me_collect(e);
    }
    known->versions |= 1U << changed_numbers(known, numbers);
    time_kernel(e, kernel, changed, n_changed);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "time/roofline.h"

#include "base/parse.h"
#include "base/size.h"
#include "tensor/tensor.h"

#include <string.h>

/** A multiprocessor has four parts, each of so many multiply-adds a cycle:
 *  tensor cores, and SIMD lanes, which float32 is left to (triton/testing.py). */
enum {
    PARTS = 4,
    TENSOR_CORE_OPS = 512,
    SIMD_OPS = 32
};

/** What PyTorch expects of the peak. */
static const double REACHED = 0.75;

me_status me_roofline_of(const me_rates *rates, const char *card, me_diag *diag,
                         me_roofline *roofline_out)
{
    if (!(rates->sm_clock > 0) || !(rates->memory_sheet > 0)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "%s: the roofline needs rates.sm_clock_mhz and "
                       "rates.memory_gbs in the card's file",
                       card);
    }
    const double cycles = rates->multiprocessors * PARTS * rates->sm_clock;
    *roofline_out = (me_roofline){.half_peak = cycles * TENSOR_CORE_OPS,
                                  .single_peak = cycles * SIMD_OPS,
                                  .memory = rates->memory_sheet};
    return ME_OK;
}

/** Is it an operation that costs nothing, without its overload? */
static bool is_free(const char *name)
{
    // _VIEW_OPS, then _CREATE_OPS
    static const char *const names[] = {
        "lift_fresh", "t",          "transpose",    "view",
        "detach",     "split",      "adjoint",      "as_strided",
        "diagonal",   "expand",     "expand_as",    "movedim",
        "permute",    "select",     "squeeze",      "mT",
        "mH",         "real",       "imag",         "view_as",
        "unflatten",  "unfold",     "unbind",       "unsqueeze",
        "vsplit",     "hsplit",     "swapaxes",     "swapdims",
        "chunk",      "randint",    "randn",        "rand",
        "randn_like", "rand_like",  "arange",       "randint_like",
        "ones_like",  "zeros_like", "_unsafe_view", "split_with_sizes",
    };
    return me_is_one_of(name, strcspn(name, "."), names,
                        sizeof names / sizeof names[0]);
}

uint64_t me_roofline_tensor_bytes(const me_tensor *x)
{
    if (x == NULL) {
        return 0;
    }
    uint64_t bytes = me_dtype_bytes((me_dtype)x->dtype);
    for (int32_t i = 0; i < x->shape.ndim; i++) {
        bytes =
            x->strides[i] == 0 ? bytes : me_size_mul(bytes, x->shape.dim[i]);
    }
    return bytes;
}

static uint64_t bytes_of_all(me_tensors tensors)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < tensors.count; i++) {
        bytes = me_size_add(bytes, me_roofline_tensor_bytes(tensors.items[i]));
    }
    return bytes;
}

uint64_t me_roofline_bytes(const me_operation *operation)
{
    return me_size_add(operation->more_bytes,
                       me_size_add(bytes_of_all(operation->arguments),
                                   bytes_of_all(operation->results)));
}

/** The first result of numbers with a fraction says which units compute. */
static double peak_of(const me_roofline *roofline, me_tensors results)
{
    for (uint32_t i = 0; i < results.count; i++) {
        const me_tensor *x = results.items[i];
        if (x != NULL && me_dtype_is_floating((me_dtype)x->dtype)) {
            return me_dtype_bytes((me_dtype)x->dtype) <= 2
                       ? roofline->half_peak
                       : roofline->single_peak;
        }
    }
    return roofline->single_peak;
}

/** Milliseconds that so many bytes take. */
static double ms_of_transfer(const me_roofline *roofline, uint64_t bytes)
{
    return (double)bytes / roofline->memory * 1e3;
}

double me_roofline_ms(const me_roofline *roofline,
                      const me_operation *operation)
{
    if (is_free(operation->name)) {
        return 0;
    }
    const double transfer_ms =
        ms_of_transfer(roofline, me_roofline_bytes(operation));
    const double peak = peak_of(roofline, operation->results);
    const double compute_ms =
        (double)operation->flops / 2 / (REACHED * peak) * 1e3;
    return transfer_ms > compute_ms ? transfer_ms : compute_ms;
}

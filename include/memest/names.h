/**
 * @file
 * What bytes are for, and which part of a job's life runs: the numbers and the
 * names under which events and reports have them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NAMES_H
#define MEMEST_NAMES_H

#include "memest/version.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A number of bytes that nobody knows. */
#define MEMEST_BYTES_UNKNOWN UINT64_MAX

/** What bytes are for. More may be added before COUNT, which is that of these
 *  headers; memest_category_name() knows what the library has. */
typedef enum memest_category {
    MEMEST_CATEGORY_PARAMETER,
    MEMEST_CATEGORY_GRADIENT,
    MEMEST_CATEGORY_MAIN_PARAMETER,
    MEMEST_CATEGORY_OPTIMIZER_STATE,
    MEMEST_CATEGORY_ACTIVATION,
    MEMEST_CATEGORY_TEMPORARY,
    MEMEST_CATEGORY_COMMUNICATION,
    MEMEST_CATEGORY_INPUT,
    MEMEST_CATEGORY_BUFFER,
    MEMEST_CATEGORY_OTHER,
    MEMEST_CATEGORY_COUNT
} memest_category;

/** Which part of a job's life runs. */
typedef enum memest_phase {
    MEMEST_PHASE_SETUP,
    MEMEST_PHASE_FORWARD,
    MEMEST_PHASE_BACKWARD,
    MEMEST_PHASE_RECOMPUTE, /**< a forward again, within a backward */
    MEMEST_PHASE_GRADIENT_REDUCTION,
    MEMEST_PHASE_OPTIMIZER,
    MEMEST_PHASE_OTHER,
    MEMEST_PHASE_EVALUATION, /**< forwards alone, between iterations */
    MEMEST_PHASE_COUNT
} memest_phase;

/** Name as reports and JSON write it, "optimizer_state"; static; NULL for a
 *  number that the library does not know. */
MEMEST_API const char *memest_category_name(memest_category category);
MEMEST_API const char *memest_phase_name(memest_phase phase);

#ifdef __cplusplus
}
#endif

#endif /* MEMEST_NAMES_H */

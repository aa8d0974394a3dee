/**
 * @file
 * What a part of a job that is left out may do to the numbers: in which
 * direction, and how far.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_MODEL_EFFECT_H
#define MEMEST_MODEL_EFFECT_H

#include <stdbool.h>
#include <stdint.h>

/** How far the memory of CUDA, its libraries and NCCL may lie from what is
 *  predicted on a card that was measured; on others it is more. */
#define ME_MEASURED_DEVICE_BAND_BYTES (UINT64_C(8) << 20)

/**
 * How far a rank's bytes may lie from what is estimated, in one direction.
 * docs/accounting.md has what the words stand for in bytes.
 */
#define ME_REACH_LIST(X)                                                       \
    X(ME_REACH_UNKNOWN, "unknown") /* as any */                                \
    X(ME_REACH_NONE, "none")                                                   \
    X(ME_REACH_SMALL, "small") /* buffers, workspaces, a communicator */       \
    X(ME_REACH_SOME, "some")   /* activations of a few operations */           \
    X(ME_REACH_MUCH, "much")   /* another type, other attention */             \
    X(ME_REACH_ANY, "any")     /* of whole layers, parameters or states */

typedef enum me_reach {
#define ME_REACH_ENUM(constant, name) constant,
    ME_REACH_LIST(ME_REACH_ENUM)
#undef ME_REACH_ENUM
} me_reach;

/** Its word; static. Local. */
const char *me_reach_name(me_reach reach);

/** The reach of that word. Local. */
bool me_reach_find(const char *name, me_reach *reach_out);

/** A job with the part takes less than is estimated, or more. Zero: nobody
 *  knows. */
typedef struct me_effect {
    me_reach lower;
    me_reach higher;
} me_effect;

#define ME_LOWER(reach)                                                        \
    {                                                                          \
        .lower = ME_REACH_##reach, .higher = ME_REACH_NONE                     \
    }
#define ME_HIGHER(reach)                                                       \
    {                                                                          \
        .lower = ME_REACH_NONE, .higher = ME_REACH_##reach                     \
    }
#define ME_EITHER(reach)                                                       \
    {                                                                          \
        .lower = ME_REACH_##reach, .higher = ME_REACH_##reach                  \
    }

#endif /* MEMEST_MODEL_EFFECT_H */

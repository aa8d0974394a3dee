/**
 * @file
 * What a prediction or a real run says of memory, rank by rank, as far as its
 * source has it: the one form in which they are compared.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_DIFF_PROFILE_H
#define MEMEST_DIFF_PROFILE_H

#include "base/progress.h"
#include "base/status.h"
#include "diff/places.h"

#include <stdbool.h>
#include <stdint.h>

/** X(constant, key, text): bytes of a rank. */
#define ME_QUANTITY_LIST(X)                                                    \
    X(ME_QUANTITY_REQUESTED_PEAK, "requested_peak", "requested, peak")         \
    X(ME_QUANTITY_ALLOCATED_END, "allocated_end", "allocated, end")            \
    X(ME_QUANTITY_ALLOCATED_PEAK, "allocated_peak", "allocated, peak")         \
    X(ME_QUANTITY_RESERVED_END, "reserved_end", "reserved, end")               \
    X(ME_QUANTITY_RESERVED_PEAK, "reserved_peak", "reserved, peak")            \
    X(ME_QUANTITY_DEVICE_PEAK, "device_peak", "on the device, peak")

typedef enum me_quantity {
#define ME_QUANTITY_ENUM(constant, key, text) constant,
    ME_QUANTITY_LIST(ME_QUANTITY_ENUM) ME_QUANTITY_COUNT
#undef ME_QUANTITY_ENUM
} me_quantity;

/** X(constant, key, text): how a rank's bytes are divided. */
#define ME_DIVISION_LIST(X)                                                    \
    X(ME_DIVISION_CATEGORY, "categories", "category at the peak")              \
    X(ME_DIVISION_PHASE, "phases", "peak of a phase")                          \
    X(ME_DIVISION_MODULE, "modules", "module: parameters and activations")     \
    X(ME_DIVISION_BLOCK, "blocks", "blocks that live at the peak")

typedef enum me_division {
#define ME_DIVISION_ENUM(constant, key, text) constant,
    ME_DIVISION_LIST(ME_DIVISION_ENUM) ME_DIVISION_COUNT
#undef ME_DIVISION_ENUM
} me_division;

/** A part of a rank's bytes. */
typedef struct me_part {
    char *name;     /**< owned */
    uint64_t key;   /**< what parts are matched by; 0: the name */
    uint64_t bytes; /**< of all of them */
    uint64_t count; /**< of blocks or modules */
} me_part;

typedef struct me_part_list {
    me_part *parts;
    uint32_t count;
    uint32_t capacity;
    me_places places;
} me_part_list;

/** What is known of a rank. */
typedef struct me_profile_rank {
    int32_t rank; /**< -1: the source does not say */
    bool has[ME_QUANTITY_COUNT];
    uint64_t bytes[ME_QUANTITY_COUNT];
    me_part_list divisions[ME_DIVISION_COUNT];
} me_profile_rank;

/** An option of the job. */
typedef struct me_profile_option {
    char *name;  /**< owned, as the next */
    char *value; /**< as text that sets it again */
} me_profile_option;

/** Allocations and frees in their order: bytes, negative for a free. */
typedef struct me_profile_calls {
    int64_t *bytes;
    uint32_t count;
    uint32_t capacity;
    uint32_t first;  /**< of the last iteration, where the source says */
    uint32_t end;    /**< behind its last one; 0: it does not say */
    char *iteration; /**< what it calls it; owned */
} me_profile_calls;

typedef struct me_profile {
    const char *name;   /**< of the file; borrowed */
    const char *source; /**< what it is; static */
    uint64_t
        rounding; /**< by as much its bytes may be off; 0: they are exact */
    me_profile_rank *ranks;
    uint32_t n_ranks;
    uint32_t rank_capacity;
    me_places places; /**< of ranks */
    bool has_options;
    me_profile_option *options;
    uint32_t n_options;
    uint32_t option_capacity;
    me_profile_calls calls; /**< of a memory snapshot */
    uint32_t n_iterations;  /**< that have run at its end; 0: it does not say */
    me_progress_part *part; /**< while it is read; NULL: nobody looks */
    bool is_cut; /**< while it is read: the line at hand has no end */
} me_profile;

/**
 * Read a file: memest's JSON report, a memory snapshot of PyTorch's (pickle or
 * JSON), a log with Megatron-LM's or torchtitan's lines on memory, or samples of
 * nvidia-smi in CSV. Which one it is follows from its contents. Local.
 *
 * @param path         its name; borrowed by the profile
 * @param part         of what is to be read; borrowed for the call; NULL: nobody
 *                     looks
 * @param profile_out  owned by the caller
 * @return ME_OK; ME_ERR_SYNTAX, ME_ERR_CONFIG; ME_ERR_IO, ME_ERR_NOMEM
 */
me_status me_profile_read(const char *path, me_progress_part *part,
                          me_diag *diag,
                          me_profile **profile_out) ME_MUST_CHECK;

/** Give back; NULL is allowed. */
void me_profile_destroy(me_profile *profile);

/** The record of a rank, made if it is not there. @return NULL without memory;
 *  else borrowed until the next one is made */
me_profile_rank *me_profile_rank_add(me_profile *profile, int32_t rank);

/** The record of a rank, borrowed; NULL: there is none. */
const me_profile_rank *me_profile_rank_find(const me_profile *profile,
                                            int32_t rank);

/** The larger of what was known and @p bytes. */
void me_profile_raise(me_profile_rank *rank, me_quantity quantity,
                      uint64_t bytes);

/** What is known last. */
void me_profile_set(me_profile_rank *rank, me_quantity quantity,
                    uint64_t bytes);

/** Iterations that have run when the one of a number ends: 2 of `1_end`. @return 0:
 *  the text does not begin with one */
uint32_t me_profile_iterations(const char *number);

/** Add to the part of that name, or of that key if it is not 0. @p name is
 *  copied. @return ME_OK or ME_ERR_NOMEM */
me_status me_part_add(me_part_list *list, const char *name, uint64_t key,
                      uint64_t bytes, uint64_t count) ME_MUST_CHECK;

/** The part that is the same as @p like, of a list of another rank, borrowed; NULL:
 *  there is none. */
const me_part *me_part_find(const me_part_list *list, const me_part *like);

/** @return ME_OK or ME_ERR_NOMEM */
me_status me_profile_option_add(me_profile *profile, const char *name,
                                const char *value) ME_MUST_CHECK;

/** As JSON calls it, and as the text does; static. */
const char *me_quantity_key(me_quantity quantity);
const char *me_quantity_text(me_quantity quantity);
const char *me_division_key(me_division division);
const char *me_division_text(me_division division);

#endif /* MEMEST_DIFF_PROFILE_H */

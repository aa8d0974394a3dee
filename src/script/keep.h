/**
 * @file
 * The process between memest and a script: it puts the fences up, starts the
 * script and outlives all that the script starts.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SCRIPT_KEEP_H
#define MEMEST_SCRIPT_KEEP_H

#include "script/place.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    ME_KEEP_MAX_PROCESSES = 128, /**< of a script at one time */
    ME_KEEP_GRACE_SECONDS = 2,   /**< for background jobs after its end */
};

/** First byte of what the keeper says, on one line each. */
enum {
    ME_KEEP_ENDED = 'E',  /**< the script's exit code follows */
    ME_KEEP_FENCE = 'F',  /**< a fence does not stand: which, and why */
    ME_KEEP_CROWD = 'C',  /**< too many processes */
    ME_KEEP_FAILED = 'S', /**< the shell did not start: why */
    ME_KEEP_PATHS = 'P',  /**< programs run by their paths are not replaced */
};

/** Which fences stand around the script. */
typedef struct me_fences {
    bool layer;    /**< namespaces and an overlay take what it writes */
    bool landlock; /**< else it cannot write; what may run is listed */
    bool filter;   /**< no sockets */
} me_fences;

/** What the keeper works with; all borrowed. */
typedef struct me_keep {
    const me_place *place;
    me_fences fences;
    char *const *argv; /**< the shell's real path, and its words */
    char *const *environment;
    bool traces; /**< where the machine can */
    int output;  /**< a descriptor: stdout and stderr of the script */
    int record;  /**< becomes ME_RECORD_FD */
    int said;    /**< where the keeper's lines go */
} me_keep;

/** Does a script's process have a limit of memory? A sanitizer's shadow exceeds
 *  any. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#    define ME_SCRIPT_LIMITS_MEMORY 0
#elif defined(__has_feature)
#    if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
        __has_feature(memory_sanitizer)
#        define ME_SCRIPT_LIMITS_MEMORY 0
#    endif
#endif
#ifndef ME_SCRIPT_LIMITS_MEMORY
#    define ME_SCRIPT_LIMITS_MEMORY 1
#endif

enum {
    ME_SCRIPT_MEMORY_MIB = 2048 /**< of each of a script's processes */
};

/** The most that this process and what it starts may take of @p what (RLIMIT_…),
 *  for good. */
void me_limit_for_good(int what, uint64_t most);

/** Be the keeper, in a process of its own that leads its group. Ends with the
 *  process. */
_Noreturn void me_keeper_run(const me_keep *keep);

#endif /* MEMEST_SCRIPT_KEEP_H */

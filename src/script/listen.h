/**
 * @file
 * What comes out of a script's run: records of its commands, what it prints,
 * what its keeper says, until all of its processes have ended or are ended.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SCRIPT_LISTEN_H
#define MEMEST_SCRIPT_LISTEN_H

#include "script/script_run.h"

#include <sys/types.h>

/** What memest holds of a run; descriptors to read from. */
typedef struct me_listening {
    me_script *script;
    const char *name; /**< of the script */
    pid_t keeper;     /**< leads a group */
    int records;
    int output;
    int said;
    int seconds;           /**< that it may take */
    bool is_fence_missing; /**< one does not stand; @p fence says which */
    char fence[256];
} me_listening;

/**
 * Listen until the end, which this makes sure of: the keeper's group is killed
 * and waited for in any case.
 *
 * @return ME_OK; ME_ERR_CONFIG naming the script and the limit that it
 *         crossed; ME_ERR_NOMEM
 */
me_status me_listen(me_listening *l, me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_SCRIPT_LISTEN_H */

/**
 * @file
 * A script of the user's is run by the user's own shell where nothing can
 * happen, to learn which jobs it launches. Nothing that it writes stays,
 * nothing that it calls is reached, no process of it is left.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SCRIPT_SCRIPT_RUN_H
#define MEMEST_SCRIPT_SCRIPT_RUN_H

#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"
#include "script/order.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    ME_SCRIPT_SECONDS = 10,            /**< that a script may take */
    ME_SCRIPT_OUTPUT_BYTES = 16 << 20, /**< that it may print */
    ME_SCRIPT_LAUNCHES_MAX = 64,       /**< then it has told enough */
    ME_SCRIPT_NOTHINGS_MAX = 256,      /**< that are remembered */
};

/** One launch: what would have been started, and its environment. */
typedef struct me_script_launch {
    int argc;
    const char *const *argv;
    int n_variables;
    const char *const *variables; /**< NAME=VALUE */
    me_order order;               /**< where it stands in the script */
} me_script_launch;

/** What a script did. All of it lives in its arena. */
typedef struct me_script {
    me_arena *arena;
    me_script_launch launches[ME_SCRIPT_LAUNCHES_MAX]; /**< by their places */
    uint32_t n_launches;
    const char
        *nothings[ME_SCRIPT_NOTHINGS_MAX]; /**< commands without effect */
    uint32_t n_nothings;
    int exit_code;       /**< of the script; -1: it was stopped */
    bool is_replaced;    /**< programs run by their paths were memest as well */
    char last_line[256]; /**< that it printed; printable, "" if none */
} me_script;

/** What is to be run, and how. All borrowed. */
typedef struct me_script_order {
    const char *name;        /**< of the script, for messages */
    int argc;                /**< words of a shell's command line */
    const char *const *argv; /**< the first is the shell's name */
    const char *card; /**< what nvidia-smi says: NAME|MiB|GPUs, or NULL */
    bool is_trusted;  /**< goes on where the machine lacks a fence */
    bool
        tells_by_environment; /**< a job that submits itself with other variables
                                    is another; the run that launches nothing is
                                    made again so */
} me_script_order;

/**
 * Run a script. Fences: a layer of its own for files where namespaces are
 * allowed, else Landlock; Landlock for what may run; a seccomp filter for the
 * network. Variables MEMEST_SCRIPT_WITHOUT (names of fences that are not to be
 * used: layer, overlay, landlock, filter, trace) and MEMEST_SCRIPT_SECONDS
 * change that. Local; starts processes, all of which have ended when it
 * returns.
 *
 * @param script_out  owned by the caller: me_script_destroy()
 * @return ME_OK, with at least one launch; ME_ERR_CONFIG naming the script and
 *         why there is none, or which fence is missing; ME_ERR_IO; ME_ERR_NOMEM
 */
me_status me_script_run(const me_script_order *order, me_diag *diag,
                        me_script **script_out) ME_MUST_CHECK;

/** NULL is allowed. */
void me_script_destroy(me_script *script);

#endif /* MEMEST_SCRIPT_SCRIPT_RUN_H */

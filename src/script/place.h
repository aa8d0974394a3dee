/**
 * @file
 * The folder that a script's run has to itself: the commands that it finds
 * (memest in the guise of their names, or programs that only compute), and
 * room for what it writes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SCRIPT_PLACE_H
#define MEMEST_SCRIPT_PLACE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/** In the folder of commands: a link to this machine's Python, a folder of modules
 *  that stand in for what asks a machine for its cards, and in front of a command's
 *  name a link to its file, where that is in Python. */
#define ME_PLACE_PYTHON  ".python"
#define ME_PLACE_MODULES ".modules"
#define ME_PLACE_TOOL    ".python-"

/** Paths are owned by the place. */
typedef struct me_place {
    char *folder;    /**< everything lies in it; NULL: not made */
    char *bin;       /**< PATH of the script, and nothing else */
    char *other;     /**< a link in it: memest for any other program */
    char *tmp;       /**< TMPDIR of the script, on the machine's own disk */
    char *layer;     /**< an empty folder to mount over */
    char *self;      /**< memest's own program */
    char *python;    /**< file of this machine's Python; NULL: it has none */
    char **programs; /**< files that may run: memest, shells, what computes */
    uint32_t n_programs;
    uint32_t capacity;
} me_place;

/**
 * Make the folder in $TMPDIR or /tmp. Programs are looked for on PATH as it is
 * now. Local.
 *
 * @param writes_vanish  programs that write may run: a layer takes it
 * @param place          all zero; for me_place_remove(), also on failure
 * @return ME_OK; ME_ERR_IO naming the folder; ME_ERR_NOMEM
 */
me_status me_place_make(bool writes_vanish, me_place *place,
                        me_diag *diag) ME_MUST_CHECK;

/** The file that runs for a name of this machine's shells, or NULL: there is
 *  none. Borrowed from the place. */
const char *me_place_program(const me_place *place, const char *name);

/** Remove the folder with all that lies in it. */
void me_place_remove(me_place *place);

#endif /* MEMEST_SCRIPT_PLACE_H */

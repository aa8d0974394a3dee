/**
 * @file
 * How one observer is told a stretch of a script, for script.c and strand_tape.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TENSOR_SCRIPT_TELL_H
#define MEMEST_TENSOR_SCRIPT_TELL_H

#include "tensor/script.h"

/** A script that is told. All borrowed. */
typedef struct me_telling {
    me_script *script;
    const uint32_t *ids; /**< of the slots' blocks */
    me_module_id outer;  /**< the program's module */
    int32_t iteration;
    int32_t microbatch; /**< that events' ones count from */
} me_telling;

/** The event as it is this time, which is the script's until it is told again.
 *  Local. */
me_event *me_telling_fill(const me_telling *telling, me_script_event *event);

/** Tell an observer what lies between stretches @p index - 1 and @p index.
 *
 *  @param kinds  that it must be told of this time, see me_observer.on_repeated */
void me_telling_stretch(const me_telling *telling, const me_observer *observer,
                        uint32_t kinds, uint32_t index);

#endif /* MEMEST_TENSOR_SCRIPT_TELL_H */

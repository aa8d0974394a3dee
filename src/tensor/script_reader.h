/**
 * @file
 * A recording that is being made a script of, for script_record.c and
 * script_keep.c alone: the latter reads what happens to blocks that modules
 * keep as attributes, of which others may be the last to let go.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TENSOR_SCRIPT_READER_H
#define MEMEST_TENSOR_SCRIPT_READER_H

#include "tensor/engine_private.h"
#include "tensor/script.h"

/** A recording on its way into a script. */
typedef struct me_script_reader {
    me_engine *e;
    me_script *script;
    const me_script_inputs *inputs;
    uint32_t *birth; /**< slot -> event that makes it */
    uint32_t *asked; /**< slot -> event that asks for its free, or none */
    bool *is_gone;   /**< slot -> has its block been given back? */
    int64_t level;   /**< requested bytes, beyond those at the beginning */
    int64_t peak;
    uint32_t n_keepings; /**< that were read */
    uint32_t n_set;      /**< attributes that were set, one or more times */
    uint32_t let_go;     /**< event in which an attribute let go of its block
                            last, whose free may follow; none */
    uint32_t let_go_block;
    uint32_t handed_block; /**< that an attribute's graph held last */
    bool is_letting_go;
    bool is_handed;
    bool is_outer; /**< the running module is the one around the action */
    bool is_sound;
} me_script_reader;

/** One more event of the script, borrowed until the next one. Local. */
me_script_event *me_script_add_event(me_script_reader *r, const me_event *event,
                                     uint32_t slot);

/** An attribute changes. Local. */
void me_script_read_keeping(me_script_reader *r, const me_kept_change *change);

/** The free of a block that attributes hold or held, which is no event of its
 *  own. Local. @return false: it is another block */
bool me_script_read_shared_free(me_script_reader *r, const me_event *event,
                                uint32_t slot);

/** Attributes that were set and still are; what they hold alone is not the
 *  micro-batch's. Local. @return false without memory */
bool me_script_list_attributes(me_script_reader *r);

/** Where the micro-batch keeps blocks of attributes. Local. */
void me_script_find_kept(me_script_reader *r);

#endif /* MEMEST_TENSOR_SCRIPT_READER_H */

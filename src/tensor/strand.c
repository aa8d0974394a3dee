/* SPDX-License-Identifier: BSD-3-Clause */
#include "tensor/strand.h"

#include "tensor/engine_private.h"
#include "tensor/strand_tape.h"

void me_strand_set(me_engine *e, int strand)
{
    me_strand_tell(e);
    e->strand = (int8_t)strand;
}

void me_strands_settle(me_engine *e)
{
    me_strand_tell(e);
}

bool me_strands_can_part(const me_engine *e)
{
    return e->pending.count == 0 && e->module == ME_NO_MODULE &&
           !e->recording.is_on;
}

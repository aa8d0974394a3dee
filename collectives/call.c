/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/call.h"

#include "base/assert.h"
#include "base/size.h"
#include "collectives/nccl_type.h"

#include <inttypes.h>

const char *me_call_kind_name(me_call_kind kind)
{
    switch (kind) {
#define CALL_CASE(constant, value, name)                                       \
    case constant: return name;
        ME_CALL_LIST(CALL_CASE)
#undef CALL_CASE
    case ME_CALL_COUNT: break;
    }
    ME_ASSERT(false);
    return "?";
}

uint64_t me_call_sent_bytes(const me_call *call, int n)
{
    const uint64_t size = me_nccl_type_bytes((ncclDataType_t)call->dtype);
    const uint64_t bytes = me_size_mul(call->count, size);
    const uint64_t members = (uint64_t)n;
    switch ((me_call_kind)call->kind) {
    case ME_CALL_ALL_REDUCE:
        return me_div_up(me_size_mul(bytes, 2 * (members - 1)), members);
    case ME_CALL_ALL_GATHER:
    case ME_CALL_REDUCE_SCATTER:
    case ME_CALL_ALL_TO_ALL: return me_size_mul(bytes, members - 1);
    case ME_CALL_BROADCAST:
    case ME_CALL_REDUCE:
        return me_div_up(me_size_mul(bytes, members - 1), members);
    case ME_CALL_SEND: return bytes;
    case ME_CALL_RECV:
    case ME_CALL_SPLIT:
    case ME_CALL_WAIT:
    case ME_CALL_COUNT: break;
    }
    return 0;
}

void me_call_print(const me_call *call, me_str *str)
{
    me_str_append(str, me_call_kind_name((me_call_kind)call->kind));
    if (call->kind == ME_CALL_SPLIT || call->kind == ME_CALL_WAIT) {
        return;
    }
    me_str_printf(str, " of %" PRIu64 " %s", call->count,
                  me_nccl_type_name((ncclDataType_t)call->dtype));
    if (me_call_has_op(call) && call->op != ncclSum) {
        me_str_printf(str, " (%s)", me_nccl_op_name((ncclRedOp_t)call->op));
    }
    if (me_call_has_root(call)) {
        me_str_printf(str, " with root %d", (int)call->peer);
    }
}

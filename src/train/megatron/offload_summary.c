/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/fine_offload.h"
#include "train/megatron/bookkeeping.h"
#include "train/megatron/finalize.h"
#include "train/megatron/trainer.h"

#include <string.h>

/** What a list takes as pickle (protocol 4) writes it: a header and a frame, the
 * list and a memo of it, its items, the instruction that appends one or all
 * between two marks, and a stop. */
enum {
    HEADER_BYTES = 2,
    FRAME_BYTES = 9, /**< of anything but an empty list */
    LIST_BYTES = 2,
    STRING_BYTES = 3, /**< beside its characters */
    STOP_BYTES = 1
};

static uint64_t list_bytes(uint32_t count, uint64_t items)
{
    const uint64_t append = count > 1 ? 2 : 1;
    return count == 0 ? HEADER_BYTES + LIST_BYTES + STOP_BYTES
                      : HEADER_BYTES + FRAME_BYTES + LIST_BYTES + items +
                            append + STOP_BYTES;
}

/** An integer of one, two or four bytes, or of as many as it and its sign need. */
static uint64_t integer_bytes(uint64_t value)
{
    if (value <= INT32_MAX) {
        return value <= UINT8_MAX ? 2 : value <= UINT16_MAX ? 3 : 5;
    }
    uint64_t n = 2;
    for (; value > INT8_MAX; value >>= 8) {
        n++;
    }
    return n + 1;
}

/** print_offload_summary_table(): names and bytes of all ranks, taken to be as
 *  many and as long as this rank's. */
static void gather_summary(me_trainer *t, const me_offload_summary *summary)
{
    uint32_t n = 0;
    uint64_t names = 0;
    uint64_t numbers = 0;
    for (int i = 0; i < ME_OFFLOAD_MODULES; i++) {
        if (summary->groups[i] > 0) {
            n++;
            names += STRING_BYTES +
                     strlen(me_offload_module_name((me_offload_module)i));
            numbers += integer_bytes(summary->bytes[i]);
        }
    }
    me_gather_own_object(t, list_bytes(n, names));
    me_gather_own_object(t, list_bytes(n, numbers));
    me_barriers(t, 1);
}

void me_reset_offload(me_trainer *t)
{
    me_offload_summary summary;
    if (me_fine_offload_reset(t->e, t->nn.fine_offload, &summary)) {
        gather_summary(t, &summary);
    }
}

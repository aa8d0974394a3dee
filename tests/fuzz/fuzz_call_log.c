/* links: collectives base */
/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes that claim to be a log of calls: decoding refuses them or gives a log
 * that encodes to the same bytes and can be queued for a replay. */
#include "base/alloc.h"
#include "collectives/call_log.h"
#include "collectives/lanes.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    me_call_log *log = NULL;
    me_diag diag = {0};
    if (me_call_log_decode(data, size, &diag, &log) != ME_OK) {
        return 0;
    }
    unsigned char *bytes = NULL;
    size_t n_bytes = 0;
    if (me_call_log_encode(log, &diag, &bytes, &n_bytes) != ME_OK ||
        n_bytes != size || memcmp(bytes, data, size) != 0) {
        __builtin_trap();
    }
    me_lanes lanes = {0};
    if (me_lanes_init(log, &lanes) == ME_OK) {
        me_lanes_fini(&lanes);
    }
    me_free(bytes);
    me_call_log_destroy(log);
    return 0;
}

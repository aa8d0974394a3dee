/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/trace_size.h"

#include "base/log.h"
#include "base/outfile.h"

#include <inttypes.h>

static uint64_t mib(uint64_t bytes)
{
    return (bytes + (1U << 20U) - 1) >> 20U;
}

me_status me_trace_size_tell(const char *format, uint64_t bytes,
                             const char *smaller, FILE *stream, me_diag *diag)
{
    const uint64_t room = me_stream_room(stream);
    if (room < bytes / 2) {
        return me_fail(diag, ME_ERR_IO,
                       "--format %s: about %" PRIu64 " MiB, and the disk has "
                       "room for %" PRIu64 ": %s",
                       format, mib(bytes), mib(room), smaller);
    }
    const bool is_large = bytes >= ME_TRACE_LARGE_BYTES;
    me_log(is_large ? ME_LOG_WARN : ME_LOG_INFO,
           "--format %s: about %" PRIu64 " MiB%s%s", format, mib(bytes),
           is_large ? ": " : "", is_large ? smaller : "");
    return ME_OK;
}

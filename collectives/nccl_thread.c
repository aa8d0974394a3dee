/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/nccl_thread.h"

#include "collectives/call_log_impl.h"

#include <stdarg.h>
#include <stdio.h>

typedef struct nccl_thread {
    int depth;
    uint64_t section;     /* of the outermost ncclGroupStart, counted */
    ncclResult_t result;  /* first failure in it */
    ncclComm_t touched;   /* list of those to settle at its end */
    char last_error[256]; /* what ncclGetLastError() says */
} nccl_thread;

/** Writable at file scope, because NCCL's ncclGroupStart() and
 * ncclGetLastError() name no object either; it belongs to the thread. */
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): see above
static _Thread_local nccl_thread thread;

uint64_t me_nccl_section(void)
{
    return thread.depth > 0 ? thread.section : 0;
}

void me_nccl_section_touch(ncclComm_t comm)
{
    if (comm->self_sends + comm->self_recvs == 0) {
        comm->next_in_section = thread.touched;
        thread.touched = comm;
    }
}

ncclResult_t me_nccl_fail(ncclResult_t result, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(thread.last_error, sizeof thread.last_error, format,
                    arguments);
    va_end(arguments);
    if (thread.depth > 0 && thread.result == ncclSuccess) {
        thread.result = result;
    }
    return result;
}

ncclResult_t me_nccl_settle_self(ncclComm_t comm)
{
    const uint32_t sends = comm->self_sends;
    const uint32_t recvs = comm->self_recvs;
    comm->self_sends = 0;
    comm->self_recvs = 0;
    if (sends > recvs) {
        return me_nccl_fail(ncclInvalidUsage,
                            "Trying to send to self without a matching recv");
    }
    if (recvs > sends) {
        return me_nccl_fail(ncclInvalidUsage,
                            "Trying to recv to self without a matching send");
    }
    return ncclSuccess;
}

static void settle_touched(void)
{
    while (thread.touched != NULL) {
        ncclComm_t comm = thread.touched;
        thread.touched = comm->next_in_section;
        comm->next_in_section = NULL;
        (void)me_nccl_settle_self(comm);
    }
}

void me_nccl_section_drop(void)
{
    settle_touched();
    thread.depth = 0;
    thread.result = ncclSuccess;
}

ncclResult_t ncclGroupStart(void)
{
    if (thread.depth++ == 0) {
        thread.section++;
        thread.result = ncclSuccess;
    }
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    if (thread.depth == 0) {
        return me_nccl_fail(ncclInvalidUsage,
                            "ncclGroupEnd: not in a group call.");
    }
    if (thread.depth == 1) {
        settle_touched();
    }
    thread.depth--;
    return thread.depth == 0 ? thread.result : ncclSuccess;
}

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return thread.last_error;
}

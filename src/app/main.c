/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/command.h"
#include "app/estimate_command.h"
#include "base/heap.h"
#include "base/input.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/outfile.h"
#include "collectives/transport.h"
#include "script/act.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

static int fail(const me_diag *diag)
{
    char line[ME_DIAG_LINE];
    me_diag_line(diag, line);
    me_log(ME_LOG_ERROR, "%s", line);
    return me_exit_code(diag->status);
}

/** A standard stream that the caller closed would be the next file that is
 *  opened, and a report for stdout would go there. */
static void hold_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) == -1) {
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
        }
    }
}

static me_status check_stack(me_diag *diag)
{
    return me_limit_raise((int)RLIMIT_STACK, ME_STACK_BYTES)
               ? ME_OK
               : me_fail(diag, ME_ERR_UNSUPPORTED,
                         "the stack may not have the %d KiB that memest needs: "
                         "raise its limit (ulimit -s)",
                         ME_STACK_BYTES >> 10);
}

int main(int argc, char **argv)
{
    if (me_guise_is_worn()) {            // a script that is being run calls us
        _exit(me_guise_act(argc, argv)); // nothing of ours is to be flushed
    }
    me_transport *transport = NULL;
    me_diag diag = {.status = ME_OK};
    hold_standard_streams();
    me_heap_keep();
    if (check_stack(&diag) != ME_OK ||
        me_transport_mpi_create(&argc, &argv, &diag, &transport) != ME_OK) {
        return fail(&diag);
    }
    me_outfile_guard_signals();
    me_input_keep_texts();
    const int code = me_command_run(transport, argc, argv, &diag);
    me_input_drop_texts();
    if (code != ME_EXIT_OK && code != ME_EXIT_DOES_NOT_FIT &&
        code != ME_EXIT_CANNOT_SAY && me_transport_rank(transport) == 0) {
        (void)fail(&diag);
    }
    me_transport_destroy(transport);
    me_log_close();
    return code;
}

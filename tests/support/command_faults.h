/**
 * @file
 * A whole command with one request for host memory failing: the first, the
 * second, and so on in growing steps, since there are thousands. Each time it
 * must say so and leave nothing behind.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_SUPPORT_COMMAND_FAULTS_H
#define MEMEST_TESTS_SUPPORT_COMMAND_FAULTS_H

#include "app/cli.h"
#include "base/alloc.h"
#include "run/exit_code.h"
#include "support/test.h"

#include <unistd.h>

/** me_estimate(), me_compare(), me_track(). */
typedef int command_run(me_transport *transport, const me_cli *cli,
                        me_diag *diag);

/** @param nth  the request that fails, 0: none; an even one fails with all that
 *              follow, an odd one alone
 *  @return requests that were made */
static inline uint64_t command_with_fault(command_run *run, const me_cli *cli,
                                          uint64_t nth, int *code_out,
                                          me_diag *diag)
{
    me_transport *transport = NULL;
    me_cli began = *cli;
    began.lost = me_alloc_lost();
    assert_int_equal(me_transport_local_create(&transport), ME_OK);
    if (nth % 2 == 0) {
        me_alloc_fail_at(nth == 0 ? UINT64_MAX : nth);
    } else {
        me_alloc_fail_once(nth);
    }
    *code_out = run(transport, &began, diag);
    const uint64_t requests = me_alloc_count();
    me_alloc_fail_at(0);
    me_transport_destroy(transport);
    return requests;
}

/** @return whether the request number @p nth was made, and so failed */
static inline bool command_fails_at(command_run *run, const me_cli *cli,
                                    uint64_t nth)
{
    int code = ME_EXIT_OK;
    me_diag diag = {0};
    const bool has_failed =
        command_with_fault(run, cli, nth, &code, &diag) >= nth;
    if (has_failed &&
        (code != ME_EXIT_INTERNAL || diag.status != ME_ERR_NOMEM ||
         diag.text[0] == '\0' || access(cli->output, F_OK) == 0)) {
        fail_msg("request %llu failed: exit code %d, status \"%s\", \"%s\"",
                 (unsigned long long)nth, code, me_status_text(diag.status),
                 diag.text);
    }
    if (!has_failed && code != ME_EXIT_OK) {
        fail_msg("no request failed: exit code %d, \"%s\"", code, diag.text);
    }
    return has_failed;
}

/** Each step is a @p step th of the way longer.
 *  @return the first request that was not made; @p most if all were */
static inline uint64_t command_sweep(command_run *run, const me_cli *cli,
                                     uint64_t step, uint64_t most)
{
    uint64_t nth = 1;
    (void)unlink(cli->output);
    while (nth < most && command_fails_at(run, cli, nth)) {
        nth += 1 + nth / step;
    }
    (void)unlink(cli->output);
    return nth;
}

#endif /* MEMEST_TESTS_SUPPORT_COMMAND_FAULTS_H */

/* SPDX-License-Identifier: BSD-3-Clause */
/* No answer on a lost allocation, of several processes: one of them loses a
 * request for host memory, alone or with all that follow. All leave with one
 * exit code and one reason, or with the report of an undisturbed run; nobody
 * waits for ever. */
#include "app/command.h"
#include "app/estimate_command.h"
#include "base/alloc.h"
#include "support/lost.h"
#include "support/mpi.h"
#include "support/test.h"
#include "support/words.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    EACH = 1,   /* requests of a name */
    MOST = 400, /* runs of each process's requests */
    REPORT_BYTES = 1 << 20
};

static me_transport *transport;
static char right[REPORT_BYTES];
static char seen[REPORT_BYTES];

static const char report[] = "mpi_lost_allocations.report";

/* @return whether there is one */
static bool read_report(char *bytes)
{
    FILE *file = fopen(report, "rb");
    if (file == NULL) {
        return false;
    }
    const size_t n = fread(bytes, 1, REPORT_BYTES - 1, file);
    bytes[n] = '\0';
    (void)fclose(file);
    return true;
}

static int run(const char *command, uint64_t nth, bool is_once, me_diag *diag)
{
    static me_words words;
    const uint64_t lost = me_alloc_lost();
    me_words_split(&words, SOURCE_DIR, command);
    if (me_transport_rank(transport) == 0) {
        (void)unlink(report);
    }
    if (is_once) {
        me_alloc_fail_once(nth);
    } else {
        me_alloc_fail_at(nth);
    }
    const int code = me_command_run(transport, words.argc, words.argv, diag);
    me_alloc_fail_at(0);
    me_alloc_set_lost(lost, NULL); /* the next run begins anew */
    return code;
}

/* What this process makes of one run; the report is process 0's. */
static void check(int code, const me_diag *diag, me_diag *verdict)
{
    const bool is_answer = code == ME_EXIT_OK;
    const bool is_refusal =
        code == ME_EXIT_INTERNAL && diag->status == ME_ERR_NOMEM;
    MPI_EXPECT(verdict, is_answer || is_refusal);
    if (me_transport_rank(transport) == 0) {
        const bool is_there = read_report(seen);
        MPI_EXPECT(verdict, is_there == is_answer);
        MPI_EXPECT(verdict, !is_there || strcmp(seen, right) == 0);
    }
}

/* One process loses each of its requests in turn. */
static void sweep_process(const char *command, int victim,
                          const uint64_t *chosen, size_t n, me_diag *verdict)
{
    const bool is_victim = me_transport_rank(transport) == victim;
    for (size_t i = 0; i < MOST; i++) {
        const uint64_t nth = is_victim && i < n ? chosen[i] : 0;
        for (int once = 0; once < 2; once++) {
            me_diag diag = {0};
            check(run(command, nth, once != 0, &diag), &diag, verdict);
        }
        me_diag over = {0};
        if (is_victim && i + 1 >= n) {
            (void)me_fail(&over, ME_ERR_STOPPED, "all requests were lost");
        }
        if (me_transport_agree(transport, over.status, &over) != ME_OK) {
            return;
        }
    }
}

static bool sweep(const char *command)
{
    static me_lost_names names;
    me_diag verdict = {0};
    me_diag diag = {0};
    me_lost_begin(&names);
    MPI_EXPECT(&verdict, run(command, 0, false, &diag) == ME_EXIT_OK);
    me_lost_end();
    if (me_transport_rank(transport) == 0) {
        MPI_EXPECT(&verdict, read_report(right));
    }
    size_t n = 0;
    uint64_t *chosen = me_lost_choose(&names, EACH, &n);
    MPI_EXPECT(&verdict, n > 20 && n < MOST);
    for (int victim = 0; victim < me_transport_size(transport); victim++) {
        sweep_process(command, victim, chosen, n, &verdict);
    }
    free(chosen);
    me_lost_fini(&names);
    if (me_transport_rank(transport) == 0) {
        (void)unlink(report);
    }
    return mpi_agree(transport, &verdict);
}

static void test_estimate(void **state)
{
    (void)state;
    assert_true(sweep("memest --model @tests/golden/tiny_moe/tiny.cfg "
                      "--world-size 2 --no-fold --threads 1 --format json "
                      "--output mpi_lost_allocations.report"));
}

static void test_compare(void **state)
{
    (void)state;
    assert_true(sweep("memest compare --model @tests/golden/compare/tiny.cfg "
                      "--world-size 4 --schedule 1f1b --threads 1 "
                      "--output mpi_lost_allocations.report"));
}

int main(int argc, char **argv)
{
    me_diag diag = {0};
    if (me_transport_mpi_create(&argc, &argv, &diag, &transport) != ME_OK) {
        (void)fprintf(stderr, "%s\n", diag.text);
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_estimate),
        cmocka_unit_test(test_compare),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    me_transport_destroy(transport);
    return failed;
}

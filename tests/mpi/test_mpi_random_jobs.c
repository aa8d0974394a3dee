/* SPDX-License-Identifier: BSD-3-Clause */
/* Fifty random jobs: whatever the number of processes, and with equal ranks
 * simulated once or each for itself, the report is the same to the byte in
 * every format. ME_TEST_SEED=seed runs the jobs that begin at that seed. */
#include "app/estimate_command.h"
#include "config/file.h"
#include "config/options.h"
#include "support/mpi.h"
#include "support/random_assignments.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    N_JOBS = 50,
    PATH_BYTES = 64
};

static me_transport *transport;

static const char *const formats[] = {"text", "json", "csv"};

/* Is it a job? The same answer on every process. */
static bool is_valid(const random_job *job)
{
    me_diag diag = {0};
    me_config *config = me_config_create();
    me_status status =
        config == NULL
            ? ME_ERR_NOMEM
            : me_config_read_file(config, SOURCE_DIR "/configs/gpt.cfg", &diag);
    for (int i = 0; status == ME_OK && i < job->n_sets; i++) {
        status = me_config_set_assignment(config, job->sets[i], &diag);
    }
    if (status == ME_OK) {
        status = me_config_finish(config, 1, &diag);
    }
    me_config_destroy(config);
    return status == ME_OK;
}

static me_cli cli_of(const random_job *job, const char *format,
                     const char *path)
{
    me_cli cli = {.command = "estimate",
                  .model = SOURCE_DIR "/configs/gpt.cfg",
                  .format = format,
                  .output = path,
                  .rank = -1,
                  .iteration = -1,
                  .n_sets = job->n_sets};
    for (int i = 0; i < job->n_sets; i++) {
        cli.sets[i] = job->sets[i];
    }
    return cli;
}

static bool are_equal(const char *path_a, const char *path_b)
{
    FILE *a = fopen(path_a, "rb");
    FILE *b = fopen(path_b, "rb");
    long n_bytes = 0;
    bool is_equal = a != NULL && b != NULL;
    for (int byte = 0; is_equal && byte != EOF; n_bytes++) {
        byte = fgetc(a);
        is_equal = byte == fgetc(b);
    }
    if (a != NULL) {
        (void)fclose(a);
    }
    if (b != NULL) {
        (void)fclose(b);
    }
    return is_equal && n_bytes > 100;
}

static void path_of(const char *name, char path_out[PATH_BYTES])
{
    (void)snprintf(path_out, PATH_BYTES, "random_jobs.%d.%s",
                   me_transport_size(transport), name);
}

/* On this process alone; @p no_fold simulates every rank. */
static void estimate_alone(const random_job *job, const char *format,
                           bool no_fold, const char *path, me_diag *verdict)
{
    me_transport *local = NULL;
    me_diag diag = {0};
    me_cli cli = cli_of(job, format, path);
    cli.no_fold = no_fold;
    MPI_EXPECT(verdict, me_transport_local_create(&local) == ME_OK);
    if (local != NULL) {
        MPI_EXPECT(verdict, me_estimate(local, &cli, &diag) == ME_EXIT_OK);
        me_transport_destroy(local);
    }
    if (diag.text[0] != '\0') {
        (void)fprintf(stderr, "%s\n", diag.text);
    }
}

static void check_format(const random_job *job, const char *format,
                         me_diag *verdict)
{
    char alone[PATH_BYTES];
    char unfolded[PATH_BYTES];
    char together[PATH_BYTES];
    path_of("alone", alone);
    path_of("unfolded", unfolded);
    path_of("together", together);
    const bool is_first = me_transport_rank(transport) == 0;
    if (is_first) {
        estimate_alone(job, format, false, alone, verdict);
        if (me_transport_size(transport) == 1) {
            estimate_alone(job, format, true, unfolded, verdict);
            MPI_EXPECT(verdict, are_equal(alone, unfolded));
        }
    }
    const me_cli cli = cli_of(job, format, together);
    me_diag diag = {0};
    MPI_EXPECT(verdict, me_estimate(transport, &cli, &diag) == ME_EXIT_OK);
    if (is_first) {
        MPI_EXPECT(verdict, are_equal(alone, together));
        (void)unlink(alone);
        (void)unlink(unfolded);
        (void)unlink(together);
    }
}

static void print_job(uint64_t seed, const random_job *job)
{
    (void)fprintf(stderr, "ME_TEST_SEED=%llu", (unsigned long long)seed);
    for (int i = 0; i < job->n_sets; i++) {
        (void)fprintf(stderr, " --set %s", job->sets[i]);
    }
    (void)fputc('\n', stderr);
}

static void test_mpi_random_jobs__same_report(void **state)
{
    (void)state;
    const char *given = getenv("ME_TEST_SEED");
    uint64_t seed = given == NULL ? 1 : strtoull(given, NULL, 10);
    int n_valid = 0;
    bool is_right = true;
    for (; is_right && n_valid < N_JOBS; seed++) {
        me_random random = {seed};
        random_job job;
        me_diag verdict = {0};
        me_random_job_draw(&random, &job);
        if (!is_valid(&job)) {
            continue;
        }
        check_format(&job, formats[n_valid % 3], &verdict);
        n_valid++;
        is_right = mpi_agree(transport, &verdict);
        if (!is_right && me_transport_rank(transport) == 0) {
            print_job(seed, &job);
        }
    }
    assert_true(is_right);
}

int main(int argc, char **argv)
{
    me_diag diag = {0};
    if (me_transport_mpi_create(&argc, &argv, &diag, &transport) != ME_OK) {
        (void)fprintf(stderr, "%s\n", diag.text);
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mpi_random_jobs__same_report),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    me_transport_destroy(transport);
    return failed;
}

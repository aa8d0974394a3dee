/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a job by its name and says what is wrong with it. */
#include <memest/memest.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    memest_error *error = memest_error_create();
    memest_job *job = memest_job_create();
    if (argc != 2 || error == NULL || job == NULL) {
        return 2;
    }
    const memest_status status = memest_job_read_file(job, argv[1], error);
    if (status != MEMEST_OK) {
        fprintf(stderr, "%s: %s\n", memest_status_text(status),
                memest_error_text(error));
    }
    memest_job_destroy(job);
    memest_error_destroy(error);
    return status == MEMEST_OK ? 0 : 1;
}

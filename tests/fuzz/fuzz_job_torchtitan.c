/* links: api */
/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole jobs of torchtitan's. */
#include "support/fuzz_job.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file(".toml", data, size);
    memest_error *error = memest_error_create();
    memest_job *job = memest_job_create();
    if (memest_job_read_file(job, path, error) == MEMEST_OK) {
        fuzz_run_job(job, error, NULL);
    } else {
        fuzz_check_line(memest_error_text(error));
    }
    (void)unlink(path);
    memest_job_destroy(job);
    memest_error_destroy(error);
    return 0;
}

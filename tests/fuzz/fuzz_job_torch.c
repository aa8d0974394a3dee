/* links: api */
/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole jobs of plain PyTorch: `.cfg` files with a tree of layers. */
#include "support/fuzz_job.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    memest_error *error = memest_error_create();
    memest_job *job = memest_job_create();
    if (memest_job_read_text(job, "job.cfg", (const char *)data, size, error) ==
        MEMEST_OK) {
        fuzz_run_job(job, error, NULL);
    } else {
        fuzz_check_line(memest_error_text(error));
    }
    memest_job_destroy(job);
    memest_error_destroy(error);
    return 0;
}

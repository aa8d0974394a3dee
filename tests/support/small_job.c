/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/small_job.h"

static const char text[] =
    "model = { num_layers = 4; hidden_size = 64; num_attention_heads = 4;\n"
    "          seq_length = 32; vocab_size = 500; };\n"
    "parallel = { world_size = 4; tensor = 2; pipeline = 2; };\n"
    "train = { micro_batch_size = 1; global_batch_size = 8;\n"
    "          params_dtype = \"bfloat16\"; };\n"
    "recompute = { granularity = \"full\"; method = \"uniform\";\n"
    "              num_layers = 1; };\n";

memest_job *me_small_job_create(memest_error *error)
{
    memest_job *job = memest_job_create();
    if (job != NULL &&
        memest_job_read_text(job, "small_job", text, sizeof text - 1, error) !=
            MEMEST_OK) {
        memest_job_destroy(job);
        return NULL;
    }
    return job;
}

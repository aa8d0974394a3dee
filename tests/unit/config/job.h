/**
 * @file
 * Jobs for the tests of src/config: made from text and from commands.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_UNIT_CONFIG_JOB_H
#define MEMEST_TESTS_UNIT_CONFIG_JOB_H

#include "config/file.h"
#include "config/launch_command.h"
#include "config/options.h"
#include "support/test.h"

#include <string.h>

/** A small job that is right as it is. */
#define JOB_TEXT                                                               \
    "model = { num_layers = 8; hidden_size = 512; num_attention_heads = 8;"    \
    " seq_length = 128; vocab_size = 1000; };"                                 \
    "train = { micro_batch_size = 1; params_dtype = \"bfloat16\";"             \
    " masked_softmax_fusion = false; gradient_accumulation_fusion = false; };" \
    "impl = { transformer = \"local\"; };"

/** The same as flags. */
#define JOB_FLAGS                                                              \
    "--num-layers", "8", "--hidden-size", "512", "--num-attention-heads", "8", \
        "--seq-length", "128", "--max-position-embeddings", "128",             \
        "--vocab-size", "1000", "--micro-batch-size", "1", "--bf16",           \
        "--transformer-impl", "local", "--no-masked-softmax-fusion",           \
        "--no-gradient-accumulation-fusion"

static inline me_config *job_from_text(const char *text)
{
    me_diag diag = {0};
    me_config *config = me_config_create();
    assert_non_null(config);
    const me_status status =
        me_config_read_text(config, "job.cfg", text, strlen(text), &diag);
    assert_string_equal(diag.text, "");
    assert_int_equal(status, ME_OK);
    return config;
}

/** JOB_TEXT with some assignments, blanks between them. */
static inline me_config *job_with(const char *assignments)
{
    me_config *config = job_from_text(JOB_TEXT);
    while (*assignments != '\0') {
        char one[128] = "";
        const size_t length = strcspn(assignments, " ");
        assert_true(length < sizeof one);
        memcpy(one, assignments, length);
        me_diag diag = {0};
        const me_status status = me_config_set_assignment(config, one, &diag);
        assert_string_equal(diag.text, "");
        assert_int_equal(status, ME_OK);
        assignments += length;
        assignments += strspn(assignments, " ");
    }
    return config;
}

static inline bool list_has(const me_flag_list *list, const char *flag)
{
    for (int32_t i = 0; i < list->count; i++) {
        if (strcmp(list->flags[i].flag, flag) == 0) {
            return true;
        }
    }
    return false;
}

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

/** Read and finish a text. @return the first failure, or ME_OK */
static inline me_status finish_text(const char *text, me_diag *diag)
{
    me_config *config = me_config_create();
    assert_non_null(config);
    me_status status =
        me_config_read_text(config, "job.cfg", text, strlen(text), diag);
    if (status == ME_OK) {
        status = me_config_finish(config, 0, diag);
    }
    me_config_destroy(config);
    return status;
}

#endif /* MEMEST_TESTS_UNIT_CONFIG_JOB_H */

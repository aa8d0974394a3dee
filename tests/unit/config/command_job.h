/**
 * @file
 * A command that Megatron-LM runs, with flags more or less.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_UNIT_CONFIG_COMMAND_JOB_H
#define MEMEST_TESTS_UNIT_CONFIG_COMMAND_JOB_H

#include "job.h"

#include <stdio.h>

/** A job that Megatron-LM runs. */
static const char base[] =
    "--num-layers 4 --hidden-size 1024 --num-attention-heads 16 "
    "--seq-length 1024 --max-position-embeddings 1024 --vocab-size 50257 "
    "--tokenizer-type NullTokenizer --micro-batch-size 2 "
    "--global-batch-size 32 --bf16 --mock-data --train-iters 10";

enum {
    MOST_WORDS = 64
};

/** Words of @p text as arguments, without the flag @p taken and its value.
 *  @return how many there are then */
static inline int append_words(char *text, const char *taken,
                               const char **words, int count)
{
    bool is_taken = false;
    for (char *at = text; *at != '\0';) {
        char *end = at + strcspn(at, " ");
        char *next = end + strspn(end, " ");
        *end = '\0';
        if (at[0] == '-' && at[1] == '-') {
            is_taken = strcmp(at, taken) == 0;
        }
        if (!is_taken) {
            assert_true(count < MOST_WORDS);
            words[count++] = at;
        }
        at = next;
    }
    return count;
}

/** The base on eight ranks with flags more, a variable before it, and a flag less;
 *  "": none. @param config_out  the caller's, whatever the status */
static inline me_status make_job(const char *added, const char *variable,
                                 const char *taken, me_diag *diag,
                                 me_config **config_out)
{
    char first[512];
    char second[512];
    const char *words[MOST_WORDS];
    int count = 0;
    (void)snprintf(first, sizeof first, "%s", base);
    (void)snprintf(second, sizeof second, "%s", added);
    if (variable[0] != '\0') {
        words[count++] = variable;
    }
    words[count++] = "pretrain_gpt.py";
    count = append_words(first, taken, words, count);
    count = append_words(second, "", words, count);
    me_config *config = me_config_create();
    assert_non_null(config);
    me_status status = me_config_read_launch(config, count, words, diag);
    if (status == ME_OK) {
        status = me_config_finish(config, 8, diag);
    }
    *config_out = config;
    return status;
}

/** Is it a job? */
static inline me_status read_job(const char *added, const char *variable,
                                 const char *taken, me_diag *diag)
{
    me_config *config = NULL;
    const me_status status = make_job(added, variable, taken, diag, &config);
    me_config_destroy(config);
    return status;
}

#endif /* MEMEST_TESTS_UNIT_CONFIG_COMMAND_JOB_H */

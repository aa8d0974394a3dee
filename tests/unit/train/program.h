/**
 * @file
 * The program of a rank of a launched job, run for the tests of src/train.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_UNIT_TRAIN_PROGRAM_H
#define MEMEST_TESTS_UNIT_TRAIN_PROGRAM_H

#include "config/launch_command.h"
#include "run/program.h"
#include "support/test.h"

#include <string.h>

/** A small GPT: 8 layers of 512, tied unless more flags say otherwise. */
#define SMALL_JOB                                                              \
    "pretrain_gpt.py --num-layers 8 --hidden-size 512 "                        \
    "--num-attention-heads 8 --seq-length 128 "                                \
    "--max-position-embeddings 128 --vocab-size 1000 --micro-batch-size 1 "    \
    "--bf16 --transformer-impl local --no-masked-softmax-fusion "              \
    "--no-gradient-accumulation-fusion "

/** A command and who runs it. */
typedef struct launched {
    const char *command; /**< words with blanks between them */
    int32_t world_size;
    int32_t rank;
    int32_t iterations;
    int32_t n_classes; /**< of its ranks, found out */
} launched;

static inline void read_command(me_config *config, const char *command)
{
    enum {
        MAX_WORDS = 64,
        MAX_BYTES = 2048
    };

    static char text[MAX_BYTES];
    const char *words[MAX_WORDS] = {NULL};
    int n = 0;
    assert_true(strlen(command) < sizeof text);
    memcpy(text, command, strlen(command) + 1);
    for (char *c = text; *c != '\0';) {
        assert_true(n < MAX_WORDS);
        words[n++] = c;
        c += strcspn(c, " ");
        while (*c == ' ') {
            *c++ = '\0';
        }
    }
    me_diag diag = {.status = ME_OK};
    const me_status status = me_config_read_launch(config, n, words, &diag);
    assert_string_equal(diag.text, "");
    assert_int_equal(status, ME_OK);
}

/** Run a job that has been read, which goes with it. */
static inline void run_config(launched *job, me_config *config,
                              me_observer observer)
{
    me_diag diag = {.status = ME_OK};
    config->parallel.world_size = job->world_size;
    me_status status = me_config_finish(config, 1, &diag);
    assert_string_equal(diag.text, "");
    assert_int_equal(status, ME_OK);
    me_plan *plan = NULL;
    assert_int_equal(me_plan_create(config, true, &diag, &plan), ME_OK);
    const me_shard_classes shards = {.find = me_program_shard_classes};
    assert_int_equal(me_plan_fold_shards(plan, &shards, &diag), ME_OK);
    job->n_classes = plan->n_classes;
    me_program program;
    assert_int_equal(me_program_init(plan, job->rank, &program), ME_OK);
    program.iterations = job->iterations;
    const me_card card = {.multiprocessors = 132,
                          .threads_per_multiprocessor = 2048};
    me_engine *e = NULL;
    assert_int_equal(me_engine_create(&card, &e), ME_OK);
    me_engine_observe(e, observer);
    me_program_run(e, &program);
    assert_int_equal(me_engine_status(e, &diag), ME_OK);
    me_engine_destroy(e);
    me_program_fini(&program);
    me_plan_destroy(plan);
    me_config_destroy(config);
}

/** Run it, and tell @p observer. */
static inline void run_launched(launched *job, me_observer observer)
{
    me_config *config = me_config_create();
    assert_non_null(config);
    read_command(config, job->command);
    run_config(job, config, observer);
}

#endif /* MEMEST_TESTS_UNIT_TRAIN_PROGRAM_H */

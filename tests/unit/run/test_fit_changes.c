/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/file.h"
#include "config/launch_command.h"
#include "config/options.h"
#include "config/paste.h"
#include "run/fit_changes.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define COUNT_OF(array) ((int)(sizeof(array) / sizeof *(array)))

static me_fit_change change_of(const char *name, const char *sets)
{
    me_fit_change change = {.changes_numerics = false};
    (void)snprintf(change.name, sizeof change.name, "%s", name);
    (void)snprintf(change.sets, sizeof change.sets, "%s", sets);
    return change;
}

static void test_fit__joins_what_does_not_contradict(void **state)
{
    (void)state;

    static const struct {
        const char *a;
        const char *b;
        const char *both; /* NULL: they do not go together */
    } cases[] = {
        {"x.a=1", "x.b=2", "x.a=1,x.b=2"},
        {"x.a=1", "x.a=2", NULL},
        {"x.a=1,x.b=2", "x.b=2,x.c=3", "x.a=1,x.b=2,x.c=3"},
        {"x.a=1,x.b=2", "x.b=2", NULL}, // nothing more
        {"x.a=1", "x.ab=2", "x.a=1,x.ab=2"},
        {"x.a=(4, 8)", "x.b=u:1,v:2", "x.a=(4, 8),x.b=u:1,v:2"},
        // the default of what is recomputed is no wish
        {"r=s,recompute.core_attn=true",
         "r=s,recompute.core_attn=false,recompute.mlp=true",
         "r=s,recompute.core_attn=true,recompute.mlp=true"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const me_fit_change a = change_of("A", cases[i].a);
        const me_fit_change b = change_of("B", cases[i].b);
        me_fit_change both;
        assert_int_equal(me_fit_changes_join(&a, &b, &both),
                         cases[i].both != NULL);
        if (cases[i].both != NULL) {
            assert_string_equal(both.sets, cases[i].both);
            assert_string_equal(both.name, "A + B");
        }
    }
}

static me_config *launched(const char *const *words, int count)
{
    me_diag diag = {0};
    me_config *config = me_config_create();
    assert_non_null(config);
    assert_int_equal(me_config_read_launch(config, count, words, &diag), ME_OK);
    assert_int_equal(me_config_finish(config, 1, &diag), ME_OK);
    return config;
}

static const char *const words[] = {"torchrun",
                                    "--nproc-per-node",
                                    "8",
                                    "pretrain_gpt.py",
                                    "--num-layers",
                                    "8",
                                    "--hidden-size",
                                    "256",
                                    "--num-attention-heads",
                                    "4",
                                    "--seq-length",
                                    "128",
                                    "--max-position-embeddings",
                                    "128",
                                    "--micro-batch-size",
                                    "4",
                                    "--vocab-size",
                                    "1000",
                                    "--bf16",
                                    "--pipeline-model-parallel-size",
                                    "2",
                                    "--num-virtual-stages-per-pipeline-rank",
                                    "2",
                                    "--global-batch-size",
                                    "32"};

/** Whatever is proposed keeps the batch, and says so where the job does not. */
static void test_fit__variants_keep_world_and_batch(void **state)
{
    (void)state;
    me_config *with = launched(words, COUNT_OF(words));
    me_config *without = launched(words, 19);
    const me_fit_change change = change_of("n", "parallel.tensor=2");
    const me_fit_change other = change_of("n", "recompute.mlp=true");
    char text[ME_FIT_TEXT];
    assert_true(me_fit_change_variant(&change, with, text));
    assert_string_equal(text, "n:parallel.tensor=2");
    assert_true(me_fit_change_variant(&change, without, text));
    assert_string_equal(text, "n:parallel.tensor=2,train.global_batch_size=32");
    assert_true(me_fit_change_variant(&other, without, text));
    assert_string_equal(text, "n:recompute.mlp=true");
    me_config_destroy(with);
    me_config_destroy(without);
}

/** What another change takes away is not offered with it: shards of parameters
 *  where every rank is of another tensor or pipeline rank. */
static void test_fit__two_changes_are_both_of_use(void **state)
{
    (void)state;
    static me_fit_changes changes; // too large for a stack
    me_config *config = launched(words, COUNT_OF(words)); // data 4
    me_fit_changes_propose(config, false, &changes);
    const me_fit_change tensor = change_of("tensor 8", "parallel.tensor=8");
    bool is_found = false;
    for (int32_t i = 0; i < changes.count; i++) {
        if (strcmp(changes.items[i].name, "Megatron-FSDP") != 0) {
            continue;
        }
        me_fit_change both;
        assert_true(me_fit_changes_join(&tensor, &changes.items[i], &both));
        assert_true(me_fit_change_is_of_use(&both, config));
        config->parallel.data = 1;
        config->parallel.tensor = 4;
        assert_false(me_fit_change_is_of_use(&both, config));
        assert_true(me_fit_change_is_of_use(&tensor, config));
        is_found = true;
        break;
    }
    assert_true(is_found);
    me_config_destroy(config);
}

static void test_fit__proposes_what_the_job_lacks(void **state)
{
    (void)state;
    static me_fit_changes changes; // too large for a stack
    me_config *config = launched(words, COUNT_OF(words));
    me_fit_changes_propose(config, false, &changes);
    bool has[6] = {false};
    const char *const names[6] = {"micro-batch 2",     "micro-batch 1",
                                  "no virtual stages", "tensor 2",
                                  "pipeline 8",        "micro-batch 4"};
    // pretrain_gpt.py of core_v0.19.0 stops at Transformer Engine's.
    const char *const stops = "train.cross_entropy_fusion_impl=te";
    for (int32_t i = 0; i < changes.count; i++) {
        assert_null(strstr(changes.items[i].sets, stops));
        for (size_t j = 0; j < 6; j++) {
            has[j] = has[j] || strcmp(changes.items[i].name, names[j]) == 0;
        }
    }
    for (size_t j = 0; j < 5; j++) {
        assert_true(has[j]);
    }
    assert_false(has[5]); // as it is
    me_config_destroy(config);
}

/** Where the host has no room, what is there comes back, by halves or as a whole;
 *  and nowhere else. */
static void test_fit__takes_from_a_short_host(void **state)
{
    (void)state;
    static me_fit_changes changes; // too large for a stack
    static const char *const asked[][2] = {
        {"optimizer.cpu_offload=true", "optimizer on the card"},
        {"optimizer.cpu_offload=true", "0.5 of the optimizer on the host"},
        {"optimizer.cpu_offload=true", "0.25 of the optimizer on the host"},
        {"offload.fine_grained=true", "activations on the card"},
        {"offload.num_layers=2", "activations of 1 layers on the host"},
        {"offload.num_layers=1", "activations on the card"},
    };
    for (size_t i = 0; i < COUNT_OF(asked); i++) {
        me_diag diag = {0};
        me_config *config = launched(words, COUNT_OF(words));
        assert_int_equal(me_config_set_assignment(config, asked[i][0], &diag),
                         ME_OK);
        for (int is_short = 0; is_short <= 1; is_short++) {
            bool has = false;
            me_fit_changes_propose(config, is_short != 0, &changes);
            for (int32_t j = 0; j < changes.count; j++) {
                has = has || strcmp(changes.items[j].name, asked[i][1]) == 0;
            }
            assert_int_equal(has, is_short);
        }
        me_config_destroy(config);
    }
}

static void test_fit__pastes_flags(void **state)
{
    (void)state;

    static const struct {
        const char *set;
        const char *flags;
    } cases[] = {
        {"train.micro_batch_size=2", "--micro-batch-size 2"},
        {"optimizer.distributed=true", "--use-distributed-optimizer"},
        {"device.alloc_conf=expandable_segments:True",
         "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"},
        {"parallel.virtual_pipeline=1",
         "(without --num-virtual-stages-per-pipeline-rank)"},
        {"parallel.pipeline_layout=Et*4|t*4L",
         "--pipeline-model-parallel-layout 'Et*4|t*4L'"},
        {"train.create_attention_mask_in_dataloader=false",
         "--no-create-attention-mask-in-dataloader"},
        {"parallel.world_size=8", "(on 8 ranks)"}, // more than the degrees make
    };

    me_config *config = launched(words, COUNT_OF(words));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        me_str text = {0};
        me_paste_append(config, &cases[i].set, 1, &text);
        assert_string_equal(me_str_text(&text), cases[i].flags);
        me_str_fini(&text);
    }
    me_config_destroy(config);
    me_config *plain = me_config_create();
    me_str text = {0};
    me_paste_append(plain, &cases[0].set, 1, &text);
    assert_string_equal(me_str_text(&text), "--set train.micro_batch_size=2");
    me_str_fini(&text);
    me_config_destroy(plain);
}

/** torchtitan's own flags, and the variable that the job has. */
static void test_fit__pastes_flags_of_torchtitan(void **state)
{
    (void)state;

    static const char *const launch[] = {
        "PYTORCH_ALLOC_CONF=max_split_size_mb:64",
        "torchrun",
        "--nproc_per_node",
        "4",
        "./train.py",
        "--training.local_batch_size",
        "4"};

    static const struct {
        const char *set;
        const char *flags;
    } cases[] = {
        {"training.local_batch_size=1", "--training.local_batch_size 1"},
        {"training.enable_cpu_offload=true", "--training.enable_cpu_offload"},
        {"device.alloc_conf=expandable_segments:True",
         "PYTORCH_ALLOC_CONF=expandable_segments:True "
         "(without PYTORCH_ALLOC_CONF)"},
    };

    me_config *config = launched(launch, COUNT_OF(launch));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        me_str text = {0};
        me_paste_append(config, &cases[i].set, 1, &text);
        assert_string_equal(me_str_text(&text), cases[i].flags);
        me_str_fini(&text);
    }
    me_config_destroy(config);
}

/** What does not go with the recomputation that is to be has to go. */
static void test_fit__pastes_recomputation(void **state)
{
    (void)state;

    static const struct {
        const char *given[6];
        int n_given;
        const char *set;
        const char *flags;
    } cases[] = {
        {{"--recompute-activations"},
         1,
         "recompute.granularity=full",
         "--recompute-granularity full --recompute-method uniform "
         "--recompute-num-layers 1 (without --recompute-activations)"},
        {{"--recompute-granularity", "full", "--recompute-method", "uniform",
          "--recompute-num-layers", "1"},
         6,
         "recompute.granularity=selective",
         "--recompute-granularity selective --recompute-modules core_attn "
         "(without --recompute-method) (without --recompute-num-layers)"},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *all[COUNT_OF(words) + 6];
        memcpy((void *)all, (const void *)words, sizeof words);
        memcpy((void *)(all + COUNT_OF(words)), (const void *)cases[i].given,
               sizeof cases[i].given);
        me_config *config =
            launched(all, (int)COUNT_OF(words) + cases[i].n_given);
        assert_int_equal(me_config_set_assignment(config, cases[i].set, NULL),
                         ME_OK);
        assert_int_equal(
            me_config_set(config, "recompute.num_layers", "1", NULL), ME_OK);
        me_str text = {0};
        me_paste_append(config, &cases[i].set, 1, &text);
        assert_string_equal(me_str_text(&text), cases[i].flags);
        me_str_fini(&text);
        me_config_destroy(config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fit__joins_what_does_not_contradict),
        cmocka_unit_test(test_fit__variants_keep_world_and_batch),
        cmocka_unit_test(test_fit__two_changes_are_both_of_use),
        cmocka_unit_test(test_fit__proposes_what_the_job_lacks),
        cmocka_unit_test(test_fit__takes_from_a_short_host),
        cmocka_unit_test(test_fit__pastes_flags),
        cmocka_unit_test(test_fit__pastes_flags_of_torchtitan),
        cmocka_unit_test(test_fit__pastes_recomputation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

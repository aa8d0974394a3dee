/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys of torchtitan's that are set after its job was read. */
#include "config/torchtitan/torchtitan.h"
#include "job.h"
#include "support/faults.h"

static const char job_text[] =
    "[training]\nlocal_batch_size = 4\nseq_len = 1024\n[parallelism]\n"
    "data_parallel_shard_degree = 8\n[activation_checkpoint]\nmode = \"none\"\n";

static me_status read_text(me_config *config, const char *text, me_diag *diag)
{
    return me_torchtitan_read(config, "job.toml", text, strlen(text), diag);
}

static me_config *job_of(const char *text)
{
    me_diag diag = {0};
    me_config *config = me_config_create();
    assert_non_null(config);
    const me_status status = read_text(config, text, &diag);
    assert_string_equal(diag.text, "");
    assert_int_equal(status, ME_OK);
    return config;
}

static void set(me_config *config, const char *assignment)
{
    me_diag diag = {0};
    assert_int_equal(me_config_set_assignment(config, assignment, &diag),
                     ME_OK);
}

static void test_torchtitan_set__makes_the_job_again(void **state)
{
    (void)state;
    me_config *config = job_of(job_text);
    set(config, "parallel.world_size=16");
    set(config, "torch.attention=flash");
    set(config, "training.local_batch_size=1");
    set(config, "training.global_batch_size=32");
    set(config, "activation_checkpoint.mode=full");
    assert_string_equal(config->torch.input_shape, "(1, 1024)");
    assert_int_equal(config->train.global_batch_size, 32);
    assert_true(me_torchtitan_of(config)->is_full_checkpoint);
    assert_int_equal(me_torchtitan_of(config)->batch_size, 1);
    // What was set of memest's own stays.
    assert_int_equal(config->parallel.world_size, 16);
    assert_int_equal(config->torch.attention, ME_SDPA_FLASH);
    me_config *copy = me_config_clone(config);
    me_config_destroy(config);
    assert_non_null(copy);
    set(copy, "training.seq_len=512");
    assert_string_equal(copy->torch.input_shape, "(1, 512)");
    assert_int_equal(copy->torch.attention, ME_SDPA_FLASH);
    assert_true(me_torchtitan_of(copy)->is_full_checkpoint);
    me_config_destroy(copy);
}

static void test_torchtitan_set__refuses(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"training.local_batch_size=0",
         "training.local_batch_size = 0: must be at least 1"},
        {"training.batch_size=1",
         "training.batch_size = 1: is a key of torchtitan of December 2024"},
        {"training.local_batch_sise=1",
         "unknown option 'training.local_batch_sise'"},
    };
    me_config *config = job_of(job_text);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        me_diag diag = {0};
        assert_int_equal(me_config_set_assignment(config, wrong[i][0], &diag),
                         ME_ERR_CONFIG);
        diag.text[strlen(wrong[i][1])] = '\0';
        assert_string_equal(diag.text, wrong[i][1]);
        assert_string_equal(config->torch.input_shape, "(4, 1024)");
    }
    me_config_destroy(config);
    me_diag diag = {0};
    config = job_from_text(JOB_TEXT);
    assert_int_equal(
        me_config_set_assignment(config, "training.local_batch_size=1", &diag),
        ME_ERR_CONFIG);
    assert_null(me_torchtitan_of(config));
    me_config_destroy(config);
}

/* What keeps gathered parameters is passed over where nothing is sharded. */
static void test_torchtitan_set__copies_gather_nothing(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "[training]\nbatch_size = 4\ndata_parallel_replicate_degree = 4\n"
        "data_parallel_shard_degree = 1\n",
        "[parallelism]\ndata_parallel_replicate_degree = 4\n"
        "data_parallel_shard_degree = 1\n"
        "fsdp_reshard_after_forward = \"never\"\n",
        "[training]\nlocal_batch_size = 4\n[parallelism]\n"
        "pipeline_parallel_degree = 2\ndata_parallel_shard_degree = 1\n"
        "fsdp_reshard_after_forward = \"never\"\n",
        "[training]\nbatch_size = 4\ndata_parallel_shard_degree = 1\n"
        "[experimental]\npipeline_parallel_degree = 2\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        me_config *config = job_of(texts[i]);
        assert_false(me_torchtitan_of(config)->is_sharded);
        me_config_destroy(config);
    }
}

static me_status read_and_set(void *context)
{
    (void)context;
    me_config *config = me_config_create();
    if (config == NULL) {
        return ME_ERR_NOMEM;
    }
    me_status status = read_text(config, job_text, NULL);
    if (status == ME_OK) {
        status = me_config_set(config, "torch.attention", "flash", NULL);
    }
    if (status == ME_OK) {
        status = me_config_set(config, "training.seq_len", "512", NULL);
    }
    me_config_destroy(config);
    return status;
}

static void test_torchtitan_set__survives_failing_memory(void **state)
{
    (void)state;
    me_sweep_faults(read_and_set, NULL, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_torchtitan_set__makes_the_job_again),
        cmocka_unit_test(test_torchtitan_set__refuses),
        cmocka_unit_test(test_torchtitan_set__copies_gather_nothing),
        cmocka_unit_test(test_torchtitan_set__survives_failing_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

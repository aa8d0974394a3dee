/* SPDX-License-Identifier: BSD-3-Clause */
/* Who shares a probe, where memory for it is short: all that have one, or
 * nobody is told. And that a layer waits for its linear layers' collectives. */
#include "base/alloc.h"
#include "config/file.h"
#include "config/options.h"
#include "search/probe.h"
#include "support/test.h"

/* Keys longer than a text is at first; the candidates' layers are equal. */
#define LONG                                                                   \
    "parallel.world_size=8,parallel.tensor=2,parallel.sequence=true,"          \
    "parallel.context=1,train.micro_batch_size=1,recompute.granularity="       \
    "selective,recompute.core_attn=true,recompute.layernorm=false,recompute."  \
    "mlp=false,recompute.moe=false,recompute.moe_act=false,recompute."         \
    "shared_experts=false,recompute.mla_up_proj=false,"

static void sweep_requests(void (*fail_at)(uint64_t))
{
    me_diag diag = {.status = ME_OK};
    const me_schedule_choice choice = {.schedule = NULL};
    char first[] = LONG "parallel.pipeline=1";
    char second[] = LONG "parallel.pipeline=2";
    me_candidate items[] = {{.assignments = first, .choice = &choice},
                            {.assignments = second, .choice = &choice}};
    const me_candidates candidates = {.items = items, .count = 2};
    me_config *job = me_config_create();
    assert_non_null(job);
    assert_int_equal(
        me_config_read_file(job, GOLDEN "/compare/tiny.cfg", &diag), ME_OK);
    uint32_t failures = 0;
    bool is_whole = false;
    for (uint64_t nth = 1; nth < 1000 && !is_whole; nth++) {
        me_probes probes = {.kind = ME_PROBE_LAYER};
        diag = (me_diag){.status = ME_OK};
        fail_at(nth);
        const me_status status =
            me_probes_find(&candidates, job, &diag, &probes);
        is_whole = me_alloc_count() < nth;
        me_alloc_fail_at(0);
        failures += status != ME_OK;
        assert_int_equal(status, is_whole ? ME_OK : ME_ERR_NOMEM);
        if (is_whole) {
            assert_int_equal(probes.count, 1);
            assert_int_equal(probes.of[0], probes.of[1]);
        } else {
            assert_string_not_equal(diag.text, "");
        }
        me_probes_fini(&probes);
    }
    assert_true(is_whole);
    assert_true(failures > 5);
    me_config_destroy(job);
}

static void test_probe__keys_survive_without_memory(void **state)
{
    (void)state;
    sweep_requests(me_alloc_fail_at);
}

static void test_probe__no_probe_is_dropped(void **state)
{
    (void)state;
    sweep_requests(me_alloc_fail_once);
}

/** Over a network, which is slow beside kernels. @param attention  whose layers */
static void probe_slow_links(const char *attention, const char *is_sequence)
{
    me_diag diag = {.status = ME_OK};
    me_job_card card;
    me_probe probe;
    const me_schedule_choice choice = {.schedule = NULL};
    char assignments[] = "parallel.pipeline=2";
    const me_candidate candidate = {.assignments = assignments,
                                    .choice = &choice};
    const char *const sets[][2] = {
        {"device.name", "h100-80gb"},       {"device.gpus_per_node", "1"},
        {"parallel.world_size", "8"},       {"parallel.tensor", "4"},
        {"parallel.sequence", is_sequence}, {"impl.core_attention", attention},
        {"model.num_attention_heads", "4"}, {"model.num_query_groups", "4"},
        {"model.ffn_hidden_size", "16"},    {"model.seq_length", "512"},
        {"model.vocab_size", "16"},         {"model.hidden_size", "4096"},
        {"model.kv_channels", "16"},
    };
    me_config *job = me_config_create();
    assert_non_null(job);
    assert_int_equal(
        me_config_read_file(job, GOLDEN "/compare/tiny.cfg", &diag), ME_OK);
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        assert_int_equal(me_config_set(job, sets[i][0], sets[i][1], &diag),
                         ME_OK);
    }
    me_config *finished = me_config_clone(job);
    assert_non_null(finished);
    assert_int_equal(me_config_finish(finished, 1, &diag), ME_OK);
    assert_int_equal(me_job_card_make(finished, &diag, &card), ME_OK);
    assert_int_equal(
        me_probe_run(&candidate, job, ME_PROBE_LAYER, &card, &diag, &probe),
        ME_OK);
    assert_true(probe.collectives_ns > 0);
    // Whatever runs beside a collective is over before it is.
    assert_true(probe.forward_ns + probe.backward_ns >= probe.collectives_ns);
    me_config_destroy(finished);
    me_config_destroy(job);
}

static void test_probe__waits_for_linear_layers(void **state)
{
    (void)state;
    probe_slow_links("unfused", "true");
    probe_slow_links("unfused", "false");
    probe_slow_links("te_unfused", "true");
    probe_slow_links("te_unfused", "false");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_probe__keys_survive_without_memory),
        cmocka_unit_test(test_probe__no_probe_is_dropped),
        cmocka_unit_test(test_probe__waits_for_linear_layers),
    };
    return cmocka_run_group_tests_name("probe", tests, NULL, NULL);
}

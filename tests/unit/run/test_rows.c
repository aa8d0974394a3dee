/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of functions: each has the members that its header does not let it leave
 * out. */
#include "config/framework.h"
#include "config/options.h"
#include "nn/megatron/backend.h"
#include "nn/megatron/mixer.h"
#include "parallel/schedule.h"
#include "run/program.h"
#include "support/test.h"
#include "train/megatron/model_wrapper.h"
#include "train/torch/torch_ddp.h"
#include "train/torch/torch_fsdp.h"

#include <string.h>

static const me_framework frameworks[] = {
    ME_FRAMEWORK_LIST(ME_CHOICE_CONSTANT)};

static void test_rows__schedules(void **state)
{
    (void)state;
    const me_schedule *s = NULL;
    for (uint32_t i = 0; (s = me_schedule_at(i)) != NULL; i++) {
        assert_non_null(s->name);
        assert_non_null(s->summary);
        assert_non_null(s->check);
        assert_non_null(s->in_flight);
        assert_true((s->list != NULL) != (s->list_all != NULL));
    }
}

static void test_rows__backends(void **state)
{
    (void)state;
    static const me_transformer_impl impls[] = {
        ME_TRANSFORMER_IMPL_LIST(ME_CHOICE_CONSTANT)};
    for (size_t i = 0; i < sizeof impls / sizeof impls[0]; i++) {
        const me_config config = {.impl.transformer = impls[i]};
        const me_backend *b = me_backend_of(&(me_nn){.config = &config});
        assert_non_null(b->column_parallel_linear);
        assert_non_null(b->row_parallel_linear);
        assert_non_null(b->layer_norm);
        assert_int_equal(b->fuse_layernorm_and_linear,
                         b->column_parallel_layer_norm_linear != NULL);
    }
}

/* Local layers with experts keep their own last norm. */
static void test_rows__final_norms(void **state)
{
    (void)state;

    static const struct {
        me_transformer_impl transformer;
        me_importable importable;
        uint64_t experts;
        const me_backend *backend;
    } cases[] = {
        {ME_TRANSFORMER_LOCAL, ME_IMPORTABLE_NONE, 0, &me_local_backend},
        {ME_TRANSFORMER_LOCAL, ME_IMPORTABLE_APEX, 0, &me_local_backend},
        {ME_TRANSFORMER_LOCAL, ME_IMPORTABLE_TE, 0, &me_te_backend},
        {ME_TRANSFORMER_LOCAL, ME_IMPORTABLE_TE, 2, &me_local_backend},
        {ME_TRANSFORMER_ENGINE, ME_IMPORTABLE_TE, 0, &me_te_backend},
        {ME_TRANSFORMER_ENGINE, ME_IMPORTABLE_TE, 2, &me_te_backend},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const me_config config = {.impl.transformer = cases[i].transformer,
                                  .impl.importable = cases[i].importable,
                                  .moe.num_experts = cases[i].experts};
        assert_ptr_equal(me_final_norm_backend_of(&(me_nn){.config = &config}),
                         cases[i].backend);
    }
}

static void check_mixer(const me_mixer *m)
{
    assert_true(m->size > 0);
    assert_non_null(m->create);
    assert_non_null(m->forward);
    assert_non_null(m->bias);
    assert_non_null(m->fini);
}

static void test_rows__mixers(void **state)
{
    (void)state;
    const bool is_moe[] = {false, true};
    me_config config = {.model.num_layers = 2, .moe.num_experts = 2};
    const me_nn nn = {.config = &config, .is_moe_layer = is_moe};
    check_mixer(me_attention_mixer(&nn));
    config.model.multi_latent_attention = true;
    check_mixer(me_attention_mixer(&nn));
    assert_ptr_not_equal(me_mlp_mixer(&nn, 0), me_mlp_mixer(&nn, 1));
    check_mixer(me_mlp_mixer(&nn, 0));
    check_mixer(me_mlp_mixer(&nn, 1));
}

static void test_rows__wrappers(void **state)
{
    (void)state;
    for (int i = 0; i <= 2; i++) {
        const me_config config = {.parallel.torch_fsdp2 = i == 1,
                                  .parallel.megatron_fsdp = i == 2};
        const me_model_wrapper *w = me_model_wrapper_of(&config);
        assert_non_null(w->wrap);
        assert_non_null(w->reduce_partial_gradients);
        assert_non_null(w->fini);
    }
    assert_non_null(me_ddp_wrapper_row.wrap);
    assert_non_null(me_ddp_wrapper_row.unwrap);
    assert_non_null(me_fsdp_wrapper_row.wrap);
    assert_non_null(me_fsdp_wrapper_row.unwrap);
}

/** Each name or group is that of an option, which the framework then knows. */
static void check_options(me_framework framework, const char *const *known)
{
    size_t count = 0;
    const me_option *options = me_options(&count);
    for (; *known != NULL; known++) {
        size_t i = 0;
        while (i < count &&
               strncmp(options[i].name, *known, strlen(*known)) != 0) {
            i++;
        }
        assert_true(i < count);
        assert_false(me_framework_is_foreign(framework, options[i].name));
    }
}

static void test_rows__frameworks(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof frameworks / sizeof frameworks[0]; i++) {
        const me_config config = {.framework = frameworks[i]};
        const me_framework_rules *r = me_framework_rules_of(frameworks[i]);
        check_options(frameworks[i], r->options);
        assert_non_null(r->derive);
        assert_non_null(r->validate);
        assert_non_null(r->note);
        const me_framework_traits *t = me_framework_traits_of(&config);
        assert_non_null(t->shards_parameters);
        assert_non_null(t->has_twins);
        assert_non_null(t->late_frees_matter);
        assert_non_null(t->waits_for_transfers);
        assert_non_null(t->host_lacks);
        assert_non_null(t->runs_without_order);
        assert_non_null(t->check_order);
        assert_non_null(t->lower_order);
    }
}

static void test_rows__programs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof frameworks / sizeof frameworks[0]; i++) {
        const me_config config = {.framework = frameworks[i]};
        const me_program_kind *k =
            me_program_kind_of(&(me_plan){.config = &config});
        assert_non_null(k->init);
        assert_non_null(k->run);
        assert_non_null(k->shard_classes);
        assert_non_null(k->schedule);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows__schedules),
        cmocka_unit_test(test_rows__backends),
        cmocka_unit_test(test_rows__final_norms),
        cmocka_unit_test(test_rows__mixers),
        cmocka_unit_test(test_rows__wrappers),
        cmocka_unit_test(test_rows__frameworks),
        cmocka_unit_test(test_rows__programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/slurm.h"
#include "support/test.h"

static void test_reads_gpus(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        bool needs_gpu;
        bool is_read;
        const char *type;
        uint64_t count;
    } cases[] = {
        {"gpu:h100:8", true, true, "h100", 8},
        {"gpu:8", true, true, "", 8},
        {"gpu", true, true, "", 1},
        {"gpu:h100", true, true, "h100", 1},
        {"nvme:2,gpu:a100_80gb:4(S:0-1)", true, true, "a100_80gb", 4},
        {"h100:8", false, true, "h100", 8},
        {"4", false, true, "", 4},
        {"gpu=2", false, true, "", 2},
        {"h100:4,a100:2", false, true, "h100", 6},
        {"gpu:2,nvme:4,gpu:h100:1", true, true, "h100", 3},
        {"gpu:h100=4", true, true, "h100", 4},
        {"nvme:2", true, false, "", 0},
        {"", true, false, "", 0},
        {"", false, false, "", 0},
        {"gpu:h100:many", true, false, "", 0},
        {"gpus:4", true, false, "", 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_slurm_gpus gpus = {.count = 0};
        const bool is_read =
            me_slurm_gpus_read(cases[i].text, cases[i].needs_gpu, &gpus);
        if (is_read != cases[i].is_read) {
            fail_msg("%s is %s", cases[i].text, is_read ? "read" : "not read");
        }
        assert_string_equal(gpus.type, cases[i].type);
        assert_int_equal(gpus.count, cases[i].count);
    }
}

/* Two types in one option, and the same twice. */
static void test_reads_two_types(void **state)
{
    (void)state;
    me_slurm_gpus gpus = {.count = 0};
    assert_true(me_slurm_gpus_read("h100:4,a100:2", false, &gpus));
    assert_string_equal(gpus.other, "a100");
    assert_true(me_slurm_gpus_read("h100:4,h100:2,3", false, &gpus));
    assert_string_equal(gpus.other, "");
    assert_int_equal(gpus.count, 9);
}

static void test_finds_cards(void **state)
{
    (void)state;

    static const struct {
        const char *type;
        const char *name;
        bool is_found;
    } cases[] = {
        {"h100", "h100-80gb", true},
        {"H100", "h100-80gb", true},
        {"nvidia_h100_80gb_hbm3", "h100-80gb", true},
        {"a100-sxm4-80gb", "a100-80gb", true},
        {"a100_40g", "a100-40gb", true},
        {"rtx_4090", "rtx4090-24gb", true},
        {"a100", "a100", false},
        {"h100_96gb", "h100_96gb", false},
        {"mi300x", "mi300x", false},
        {"1g.10gb", "1g.10gb", false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_str name = {0};
        assert_int_equal(me_slurm_card_find(cases[i].type, &name),
                         cases[i].is_found);
        assert_string_equal(me_str_text(&name), cases[i].name);
        me_str_fini(&name);
    }
}

static void test_reads_constraints(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        const char *type; /**< NULL: it says none */
    } cases[] = {
        {"h100", "h100"},           {"ib&h100_80gb", "h100_80gb"},
        {"[h100*2]", "h100"},       {"h100|h200", "h100|h200"},
        {"ib,nvme", NULL},          {"", NULL},
        {"gpu&a100", "a100"},       {"(l40s)", "l40s"},
        {"h100&H100_80GB", "h100"}, {"[a100*2|ib&h100]", "a100|h100"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char type[ME_SLURM_TYPE] = "x";
        assert_int_equal(me_slurm_constraint_read(cases[i].text, type), ME_OK);
        assert_string_equal(type, cases[i].type == NULL ? "" : cases[i].type);
    }
}

/* As str_to_mbytes() of Slurm: MiB where no letter says more. */
static void test_reads_memory(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        bool is_read;
        uint64_t bytes;
    } cases[] = {
        {"1024", true, UINT64_C(1) << 30},
        {"1500G", true, UINT64_C(1500) << 30},
        {"2t", true, UINT64_C(2) << 40},
        {"2048K", true, UINT64_C(2) << 20},
        {"16M", true, UINT64_C(16) << 20},
        {"0", true, 0},
        {"", false, 0},
        {"G", false, 0},
        {"1.5T", false, 0},
        {"512GB", false, 0},
        {"16777216T", false, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t bytes = 0;
        assert_int_equal(me_slurm_memory_read(cases[i].text, &bytes),
                         cases[i].is_read);
        assert_int_equal(bytes, cases[i].bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_gpus),
        cmocka_unit_test(test_reads_two_types),
        cmocka_unit_test(test_finds_cards),
        cmocka_unit_test(test_reads_constraints),
        cmocka_unit_test(test_reads_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* An error of a value that a variable gave names the variable. */
#include "app/command.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#define JOB                                                                    \
    "pretrain_gpt.py", "--num-layers", "1", "--hidden-size", "64",             \
        "--num-attention-heads", "1", "--seq-length", "64",                    \
        "--max-position-embeddings", "64", "--vocab-size", "64",               \
        "--micro-batch-size", "1", "--bf16"

/** The exit code of a command, whose error is @p diag. */
static int run(const char *const *words, size_t n, me_diag *diag)
{
    char text[40][64];
    char *argv[COUNT_OF(text)];
    me_transport *transport = NULL;
    *diag = (me_diag){.status = ME_OK};
    assert_true(n < COUNT_OF(argv));
    for (size_t i = 0; i < n; i++) {
        argv[i] = text[i];
        (void)snprintf(text[i], sizeof text[i], "%s", words[i]);
    }
    argv[n] = NULL;
    assert_int_equal(me_transport_local_create(&transport), ME_OK);
    const int code = me_command_run(transport, (int)n, argv, diag);
    me_transport_destroy(transport);
    return code;
}

static void test_command_environment__log(void **state)
{
    (void)state;
    me_diag diag;
    const char *const words[] = {"memest", "options", "--output", "/dev/null"};
    const char *const flag[] = {"memest", "options", "--log-level", "loud"};

    setenv("MEMEST_LOG", "xx", 1);
    assert_int_equal(run(words, COUNT_OF(words), &diag), 2);
    assert_string_equal(
        diag.text,
        "MEMEST_LOG=xx: error, warn, info, debug and trace are levels");
    assert_int_equal(run(flag, COUNT_OF(flag), &diag), 2);
    assert_non_null(strstr(diag.text, "--log-level loud: "));
    setenv("MEMEST_LOG", "", 1); // as if it were not set
    assert_int_equal(run(words, COUNT_OF(words), &diag), 0);
    unsetenv("MEMEST_LOG");
}

static void test_command_environment__launch(void **state)
{
    (void)state;

    static const struct {
        const char *assignment;
        const char *text;
    } cases[] = {
        {"PYTORCH_ALLOC_CONF=foo:bar",
         "PYTORCH_ALLOC_CONF=foo:bar: Unrecognized key"},
        {"PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:3",
         "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:3: allocator config: "},
        {"NVTE_TORCH_COMPILE=yes",
         "NVTE_TORCH_COMPILE=yes: must be a whole number"},
        {"NVTE_FWD_LAYERNORM_SM_MARGIN=9999",
         "NVTE_FWD_LAYERNORM_SM_MARGIN=9999: must be a whole number below"},
        {"CUBLAS_WORKSPACE_CONFIG=4096:8",
         "CUBLAS_WORKSPACE_CONFIG=4096:8: must be sizes in KiB"},
        {"NCCL_BUFFSIZE=large", "NCCL_BUFFSIZE=large: must be a whole number"},
        {"NVTE_TORCH_COMPILE=+1", NULL}, // Python's int() takes these
        {"NVTE_TORCH_COMPILE= 0_0", NULL},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        me_diag diag;
        const char *const words[] = {"memest", "--output",          "/dev/null",
                                     "--",     cases[i].assignment, JOB};
        const int code = run(words, COUNT_OF(words), &diag);
        if (code != (cases[i].text == NULL ? 0 : 2) ||
            (cases[i].text != NULL &&
             strstr(diag.text, cases[i].text) == NULL)) {
            fail_msg("%s: exit %d, %s", cases[i].assignment, code, diag.text);
        }
    }
}

/** A setting of one's own is the option's. */
static void test_command_environment__option(void **state)
{
    (void)state;
    me_diag diag;
    const char *const words[] = {"memest",
                                 "--alloc-conf",
                                 "foo:bar",
                                 "--",
                                 "PYTORCH_ALLOC_CONF=expandable_segments:True",
                                 JOB};
    assert_int_equal(run(words, COUNT_OF(words), &diag), 2);
    assert_non_null(strstr(diag.text, "device.alloc_conf = foo:bar: "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_command_environment__log),
        cmocka_unit_test(test_command_environment__launch),
        cmocka_unit_test(test_command_environment__option),
    };
    return cmocka_run_group_tests_name("command_environment", tests, NULL,
                                       NULL);
}

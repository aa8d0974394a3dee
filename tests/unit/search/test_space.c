/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/file.h"
#include "config/options.h"
#include "search/candidates.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static me_config *read_job(void)
{
    me_diag diag = {.status = ME_OK};
    me_config *job = me_config_create();
    assert_non_null(job);
    if (me_config_read_file(job, GOLDEN "/compare/tiny.cfg", &diag) != ME_OK) {
        fail_msg("%s", diag.text);
    }
    return job;
}

/** The candidates of a space, or the text of its failure. */
static uint32_t fill(const char *const *list, size_t n, me_diag *diag,
                     char first[512])
{
    me_schedule_choice own = {.schedule = NULL};
    me_candidates c = {.choices = &own, .n_choices = 1};
    me_space *space = NULL;
    me_config *job = read_job();
    const me_space_request request = {
        .spaces = list, .n_spaces = n, .gpus = "4"};
    *diag = (me_diag){.status = ME_OK};
    me_status status = me_space_create(job, &request, diag, &space);
    if (status == ME_OK) {
        status = me_candidates_fill(space, job, diag, &c);
    }
    const uint32_t count = c.count;
    if (count > 0) {
        (void)snprintf(first, 512, "%s", c.items[0].assignments);
    }
    me_candidates_fini(&c);
    me_space_destroy(space);
    me_config_destroy(job);
    assert_int_equal(status == ME_OK, diag->status == ME_OK);
    return count;
}

static void test_space__fixes_and_widens(void **state)
{
    (void)state;
    static const char *const fixed[] = {
        "parallel.tensor=1",        "parallel.context=1",
        "parallel.pipeline=2",      "recompute=none",
        "data_parallel=ddp",        "train.micro_batch_size=1",
        "optimizer.clip_grad=10,1",
    };
    me_diag diag;
    char first[512];
    // Two chunks of two layers a stage, and the option of no kind.
    assert_int_equal(fill(fixed, 7, &diag, first), 4);
    assert_string_equal(
        first,
        "parallel.world_size=4,parallel.tensor=1,parallel.sequence=false,"
        "parallel.context=1,parallel.pipeline=2,"
        "parallel.virtual_pipeline=1,train.micro_batch_size=1,"
        "recompute.granularity=none,optimizer.distributed=false,"
        "optimizer.clip_grad=10");
    // Named without words, an axis has all that go with the degrees.
    static const char *const asked[] = {
        "parallel.tensor=1", "parallel.context=1", "parallel.pipeline=2",
        "recompute=none",    "data_parallel=ddp",  "train.micro_batch_size=1",
        "train.fp8",
    };
    assert_int_equal(fill(asked, 7, &diag, first), 4);
}

static void test_space__reads_a_file(void **state)
{
    (void)state;
    char path[] = "/tmp/memest-space-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    assert_non_null(file);
    (void)fputs("# a space\nparallel.tensor = 1\nparallel.pipeline = 1, 2 # "
                "two\nrecompute = none\n\ndata_parallel = ddp\n"
                "train.micro_batch_size = 1\nparallel.virtual_pipeline = 1\n",
                file);
    (void)fclose(file);
    const char *const list[] = {path};
    me_diag diag;
    char first[512];
    assert_int_equal(fill(list, 1, &diag, first), 2);
    (void)unlink(path);
}

static void test_space__refuses(void **state)
{
    (void)state;

    static const struct {
        const char *space;
        const char *says;
    } cases[] = {
        {"parallel.tenosr=1",
         "--space parallel.tenosr: no such option, name of several (recompute, "
         "data_parallel, offload), or file; did you mean parallel.tensor"},
        {".", "is a directory, not a regular file"},
        {"parallel.tensor=two", "must be a whole number from"},
        {"parallel.tensor=1,1", "1 is there twice"},
        {"parallel.tensor=", "must be 1 to"},
        {"parallel.tensor=1,,2", "must be words"},
        {"recompute=mlp+", "--space recompute=mlp+: must be none, full"},
        {"recompute=all", "must be none, full"},
        {"data_parallel=zero", "must be ddp, distributed or fsdp2"},
        {"model.num_layers=4,8", "one model and one global batch"},
        {"train.global_batch_size=8", "one model and one global batch"},
        {"optimizer.clip_grad", "give its words"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_diag diag;
        char first[512];
        assert_int_equal(fill(&cases[i].space, 1, &diag, first), 0);
        assert_int_equal(diag.status, ME_ERR_CONFIG);
        if (strstr(diag.text, cases[i].says) == NULL) {
            fail_msg("%s: %s", cases[i].space, diag.text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_space__fixes_and_widens),
        cmocka_unit_test(test_space__reads_a_file),
        cmocka_unit_test(test_space__refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

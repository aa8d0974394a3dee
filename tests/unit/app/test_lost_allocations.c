/* SPDX-License-Identifier: BSD-3-Clause */
/* No answer on a lost allocation: whole commands with one request for host
 * memory failing, alone or with all that follow. Either the answer is the one
 * of an undisturbed run to the byte, or there is none and memest says why.
 * ME_LOST=N: N requests of each name in place of a few, to search by hand. */
#include "app/command.h"
#include "app/estimate_command.h"
#include "base/alloc.h"
#include "support/lost.h"
#include "support/test.h"
#include "support/words.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REPORT "lost_allocations.report"
#define EVENTS "lost_allocations.events"

enum {
#ifdef __SANITIZE_ADDRESS__
    EACH = 1 /* requests of a name; a run takes ten times as long */
#else
    EACH = 2 /* requests of a name */
#endif
};

/* What came of one run. */
typedef struct outcome {
    int code;
    me_diag diag;
    char *bytes; /* of the report, NULL: there is none */
} outcome;

/* Jansson's requests count and fail like memest's own, but nobody marks them as
 * lost: whoever called it has to notice. Names by size, to reach more places. */
static void *json_request(size_t bytes)
{
    static const char *const names[] = {"json 16", "json 32", "json 64",
                                        "json 128", "json"};
    size_t i = 0;
    while (i + 1 < sizeof names / sizeof names[0] && bytes > (size_t)16 << i) {
        i++;
    }
    const uint64_t lost = me_alloc_lost();
    const char *lost_name = me_alloc_lost_name();
    void *block = me_alloc(bytes, 1, names[i]);
    me_alloc_set_lost(lost, lost_name);
    errno = block == NULL ? ENOMEM : errno; /* as malloc() does */
    return block;
}

static char *read_report(void)
{
    FILE *file = fopen(REPORT, "rb");
    if (file == NULL) {
        return NULL;
    }
    char *bytes = NULL;
    size_t length = 0;
    FILE *all = open_memstream(&bytes, &length);
    for (int byte = fgetc(file); byte != EOF; byte = fgetc(file)) {
        (void)fputc(byte, all);
    }
    (void)fclose(all);
    (void)fclose(file);
    return bytes;
}

static outcome run(const char *command, uint64_t nth, bool is_once)
{
    static me_words words;
    me_words_split(&words, SOURCE_DIR, command);
    outcome o = {.code = ME_EXIT_OK};
    me_transport *transport = NULL;
    assert_int_equal(me_transport_local_create(&transport), ME_OK);
    (void)unlink(REPORT);
    if (is_once) {
        me_alloc_fail_once(nth);
    } else {
        me_alloc_fail_at(nth);
    }
    o.code = me_command_run(transport, words.argc, words.argv, &o.diag);
    me_alloc_fail_at(0);
    me_transport_destroy(transport);
    o.bytes = read_report();
    return o;
}

static bool is_same(const outcome *a, const outcome *b)
{
    return a->code == b->code && a->bytes != NULL && b->bytes != NULL &&
           strcmp(a->bytes, b->bytes) == 0;
}

static bool is_refusal(const outcome *o)
{
    return o->code == ME_EXIT_INTERNAL && o->diag.status == ME_ERR_NOMEM &&
           o->diag.text[0] != '\0' && o->bytes == NULL;
}

static void check(const char *command, const outcome *right, uint64_t nth,
                  bool is_once)
{
    outcome o = run(command, nth, is_once);
    if (!is_same(&o, right) && !is_refusal(&o)) {
        fail_msg("%s: request %llu fails%s: exit code %d, \"%s\", %s", command,
                 (unsigned long long)nth, is_once ? " once" : "", o.code,
                 o.diag.text, o.bytes == NULL ? "no report" : "a report");
    }
    free(o.bytes);
}

static size_t each_of_name(void)
{
    const char *given = getenv("ME_LOST");
    return given == NULL ? EACH : strtoull(given, NULL, 10);
}

static void sweep(const char *command)
{
    static me_lost_names names;
    me_lost_begin(&names);
    outcome right = run(command, 0, false);
    me_lost_end();
    if (right.bytes == NULL) {
        fail_msg("%s: \"%s\"", command, right.diag.text);
    }
    size_t n = 0;
    uint64_t *chosen = me_lost_choose(&names, each_of_name(), &n);
    assert_in_range(n, 10, 1000000);
    for (size_t i = 0; i < n; i++) {
        check(command, &right, chosen[i], true);
        check(command, &right, chosen[i], false);
    }
    free(chosen);
    free(right.bytes);
    me_lost_fini(&names);
    (void)unlink(REPORT);
}

#define OUT   " --output " REPORT " "
#define ALONE " --threads 1" OUT

static void test_dense(void **state)
{
    (void)state;
    sweep("memest --model @tests/golden/tiny_pp2/tiny.cfg --world-size 2 "
          "--set train.global_batch_size=4 --format json" ALONE);
    sweep("memest check --model @tests/golden/tiny_dense/tiny.cfg "
          "--memory-limit 40MiB" ALONE);
}

static void test_experts(void **state)
{
    (void)state;
    sweep("memest --model @tests/golden/tiny_moe/tiny.cfg --world-size 2" //
          ALONE);
}

static void test_fsdp2(void **state)
{
    (void)state;
    sweep("memest" ALONE "-- torchrun --nproc-per-node 2 pretrain_gpt.py "
          "--num-layers 1 --hidden-size 16 --num-attention-heads 2 "
          "--seq-length 8 --max-position-embeddings 8 --vocab-size 14 "
          "--micro-batch-size 1 --global-batch-size 2 --bf16 "
          "--untie-embeddings-and-output-weights --transformer-impl local "
          "--use-torch-fsdp2 --no-gradient-accumulation-fusion "
          "--no-masked-softmax-fusion");
}

static void test_torch(void **state)
{
    (void)state;
    sweep("memest --model @tests/jobs/au_pp2_izb.cfg" ALONE);
    sweep("memest --model @tests/jobs/ddp2_tf_view_unused.cfg" ALONE);
}

static void test_compare(void **state)
{
    (void)state;
    sweep("memest compare --model @tests/golden/compare/tiny.cfg "
          "--world-size 4 --schedule 1f1b --schedule zbv" ALONE);
}

static void test_search(void **state)
{
    (void)state;
    sweep("memest search --model @tests/golden/compare/tiny.cfg --gpus 4 "
          "--space parallel.pipeline=1,2 --space recompute=none --space "
          "train.micro_batch_size=1,2 --format csv" ALONE);
}

static void test_fit(void **state)
{
    (void)state;
    sweep("memest fit --model @tests/golden/tiny_dense/tiny.cfg --format json "
          "--memory-limit 40MiB" ALONE);
}

static void test_track(void **state)
{
    (void)state;
    static const char *const tools[] = {"mem",     "mod", "memory",
                                        "runtime", "sac", "comm"};
    for (size_t i = 0; i < sizeof tools / sizeof tools[0]; i++) {
        char command[256];
        (void)snprintf(command, sizeof command,
                       "memest track --tool %s --model "
                       "@tests/trackers/display.cfg" OUT,
                       tools[i]);
        sweep(command);
    }
}

static void test_replay(void **state)
{
    (void)state;
    outcome o = run("memest --model @tests/golden/tiny_dense/tiny.cfg "
                    "--events " EVENTS ALONE,
                    0, false);
    free(o.bytes);
    assert_int_equal(o.code, ME_EXIT_OK);
    sweep("memest replay " EVENTS " --format json" OUT);
    sweep("memest replay " EVENTS " --alloc-conf expandable_segments:True" OUT);
    (void)unlink(EVENTS);
}

/* Files of JSON that are read, and answers that are. */
static void test_json(void **state)
{
    (void)state;
    sweep("memest --model @tests/golden/huggingface/model.json --set "
          "model.seq_length=16 --set train.micro_batch_size=1 --set "
          "parallel.tensor=2 --format json" ALONE);
    sweep("memest track --tool memory --load "
          "@tests/golden/track_memory/expect.txt --format json" OUT);
    sweep("memest schedule zbv --pp 2 --microbatches 4 --format json" OUT);
    sweep("memest compare --model @tests/golden/compare/tiny.cfg "
          "--world-size 4 --schedule 1f1b --format json" ALONE);
}

static void test_others(void **state)
{
    (void)state;
    sweep("memest schedule zbv --pp 4 --microbatches 8 --comms" OUT);
    sweep("memest --model @tests/golden/tiny_pp2/tiny.cfg --world-size 2 "
          "--dump modules" OUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dense),   cmocka_unit_test(test_experts),
        cmocka_unit_test(test_fsdp2),   cmocka_unit_test(test_torch),
        cmocka_unit_test(test_compare), cmocka_unit_test(test_search),
        cmocka_unit_test(test_fit),     cmocka_unit_test(test_track),
        cmocka_unit_test(test_replay),  cmocka_unit_test(test_json),
        cmocka_unit_test(test_others),
    };
    json_set_alloc_funcs(json_request, me_free);
    json_object_seed(1); /* the same requests each time */
    return cmocka_run_group_tests(tests, NULL, NULL);
}

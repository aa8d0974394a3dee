/* SPDX-License-Identifier: BSD-3-Clause */
/* A torchtitan job does what the same model does that is written as a tree of
 * modules by hand, with model.py and parallelize.py open beside it. */
#include "config/file.h"
#include "program.h"

#include <stdio.h>
#include <stdlib.h>

/* The debug model of December 2024: 8 blocks of 256, 16 heads, an MLP of
 * int(2 · 4 · 256 / 3) = 682, up to 768. */
#define FLAGS                                                                  \
    "train.py --model.tokenizer_path tests/assets/test_tiktoken.model "        \
    "--training.batch_size 2 --training.seq_len 128 "

enum {
    RANKS = 4,
    MOST_EVENTS = 1 << 17
};

static const struct {
    const char *flags;
    const char *tree;
} jobs[] = {
    {FLAGS "--activation_checkpoint.mode full "
           "--training.data_parallel_replicate_degree 2",
     "hsdp.cfg"},
    {FLAGS "--activation_checkpoint.selective_ac_option op "
           "--training.tensor_parallel_degree 2",
     "tensor.cfg"},
    {FLAGS "--activation_checkpoint.mode full "
           "--experimental.pipeline_parallel_degree 2",
     "stages.cfg"},
};

/** An allocation or free. */
typedef struct entry {
    me_event_kind kind;
    uint8_t category;
    uint8_t stream;
    uint32_t block;
    uint64_t bytes;
    const char *op; /**< static */
} entry;

typedef struct stream {
    entry *entries;
    uint32_t count;
} stream;

static void on_event(void *self, const me_event *event)
{
    stream *s = self;
    if ((event->kind == ME_EVENT_ALLOC ||
         event->kind == ME_EVENT_FREE_REQUESTED) &&
        s->count < MOST_EVENTS) {
        s->entries[s->count++] =
            (entry){event->kind,  event->category, event->stream,
                    event->block, event->bytes,    event->op};
    }
}

static me_config *read_tree(const char *name)
{
    char path[256];
    me_diag diag = {.status = ME_OK};
    me_config *config = me_config_create();
    assert_non_null(config);
    (void)snprintf(path, sizeof path, "%s/tests/unit/train/torchtitan/%s",
                   SOURCE_DIR, name);
    const me_status status = me_config_read_file(config, path, &diag);
    assert_string_equal(diag.text, "");
    assert_int_equal(status, ME_OK);
    return config;
}

static void compare(const stream *flags, const stream *tree, const char *name,
                    int rank)
{
    assert_true(tree->count > 1000 && tree->count < MOST_EVENTS);
    for (uint32_t i = 0; i < flags->count && i < tree->count; i++) {
        const entry *a = &flags->entries[i];
        const entry *b = &tree->entries[i];
        if (a->kind != b->kind || a->bytes != b->bytes ||
            a->block != b->block || a->stream != b->stream ||
            a->category != b->category) {
            fail_msg("%s, rank %d, event %u: %llu bytes against %llu of the "
                     "tree (%s)",
                     name, rank, (unsigned)i, (unsigned long long)a->bytes,
                     (unsigned long long)b->bytes,
                     b->op == NULL ? "free" : b->op);
        }
    }
    assert_int_equal(flags->count, tree->count);
}

static void test_torchtitan__does_what_a_tree_by_hand_does(void **state)
{
    (void)state;
    stream flags = {.entries = calloc(MOST_EVENTS, sizeof(entry))};
    stream tree = {.entries = calloc(MOST_EVENTS, sizeof(entry))};
    assert_non_null(flags.entries);
    assert_non_null(tree.entries);
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
        for (int32_t rank = 0; rank < RANKS; rank++) {
            launched job = {.command = jobs[i].flags,
                            .world_size = RANKS,
                            .rank = rank,
                            .iterations = 2};
            flags.count = 0;
            tree.count = 0;
            run_launched(&job,
                         (me_observer){.on_event = on_event, .self = &flags});
            run_config(&job, read_tree(jobs[i].tree),
                       (me_observer){.on_event = on_event, .self = &tree});
            compare(&flags, &tree, jobs[i].tree, rank);
        }
    }
    free(flags.entries);
    free(tree.entries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_torchtitan__does_what_a_tree_by_hand_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

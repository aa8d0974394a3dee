/* SPDX-License-Identifier: BSD-3-Clause */
/* A search of a small space finds what a comparison of all its combinations
 * has at its front, ties included. */
#include "base/alloc.h"
#include "config/file.h"
#include "config/options.h"
#include "run/compare_run.h"
#include "search/search_run.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

enum {
    AXES_MAX = 14,
    SETS_MAX = 10,
    TEXT_BYTES = 640,
    VARIANTS_MAX = 400
};

/** An axis: what the search is given, and what each of its words sets. */
typedef struct axis {
    const char *space; /**< "KEY=WORD,…" */
    const char *sets;  /**< assignments of the words, blanks between them; NULL:
                            KEY=WORD */
} axis;

/** A space, its axes in the order in which a search decides them. */
typedef struct space {
    const char *job;
    const char *sets[SETS_MAX]; /**< of the job */
    axis axes[AXES_MAX];
} space;

#define DENSE GOLDEN "/compare/tiny.cfg"
#define MOE   GOLDEN "/tiny_moe/tiny.cfg"
#define WIDE  GOLDEN "/../../configs/models/llama-3-8b.cfg"

#define UNSPLIT                                                                \
    {"parallel.tensor=1", NULL}, {"parallel.sequence=false", NULL},            \
    {                                                                          \
        "parallel.context=1", NULL                                             \
    }
#define SMALL_BATCHES                                                          \
    {"parallel.virtual_pipeline=1", NULL},                                     \
        {"train.micro_batch_size=1,2", NULL}, RECOMPUTE
#define DATA_PARALLEL                                                          \
    {                                                                          \
        "data_parallel=distributed,ddp",                                       \
            "optimizer.distributed=true optimizer.distributed=false"           \
    }
#define FULL                                                                   \
    "recompute.granularity=full,recompute.method=uniform,"                     \
    "recompute.num_layers=1"
#define RECOMPUTE                                                              \
    {                                                                          \
        "recompute=none,full", "recompute.granularity=none " FULL              \
    }
#define RECOMPUTE_MODULE(word, layernorm, mlp)                                 \
    {                                                                          \
        "recompute=none," word ",full",                                        \
            "recompute.granularity=none "                                      \
            "recompute.granularity=selective,recompute.core_attn=false,"       \
            "recompute.layernorm=" layernorm ",recompute.mla_up_proj=false,"   \
            "recompute.mlp=" mlp ",recompute.moe=false,"                       \
            "recompute.moe_act=false,recompute.shared_experts=false " FULL     \
    }

static const space spaces[] = {
    {DENSE,
     {NULL},
     {{"parallel.world_size=4", NULL},
      UNSPLIT,
      {"parallel.pipeline=1,2,4", NULL},
      {"parallel.virtual_pipeline=1,2", NULL},
      {"train.micro_batch_size=1,2,4", NULL},
      RECOMPUTE,
      {"data_parallel=ddp", "optimizer.distributed=false"}}},
    {DENSE,
     {"recompute.granularity=full"},
     {{"parallel.world_size=2,4,8", NULL},
      UNSPLIT,
      {"parallel.pipeline=1,2", NULL},
      SMALL_BATCHES,
      DATA_PARALLEL}},
    {DENSE, // nothing but ties
     {"device.name=h100-80gb"},
     {{"parallel.world_size=4", NULL},
      UNSPLIT,
      {"parallel.pipeline=2", NULL},
      {"parallel.virtual_pipeline=1", NULL},
      {"train.micro_batch_size=1", NULL},
      {"recompute=none", "recompute.granularity=none"},
      {"data_parallel=ddp", "optimizer.distributed=false"},
      {"optimizer.decoupled_lr=false", NULL},
      {"train.deterministic_mode=false,true", NULL}}},
    {DENSE, // a card that some are too large for
     {"device.name=h100-80gb", "device.memory=3000MiB"},
     {{"parallel.world_size=4", NULL},
      {"parallel.tensor=1,3", NULL},
      {"parallel.sequence=false", NULL},
      {"parallel.context=1", NULL},
      {"parallel.pipeline=1,2,4", NULL},
      SMALL_BATCHES,
      DATA_PARALLEL}},
    {DENSE, // a limit that is met before the card
     {"device.memory_limit=80MiB"},
     {{"parallel.world_size=4", NULL},
      UNSPLIT,
      {"parallel.pipeline=1,2", NULL},
      SMALL_BATCHES,
      DATA_PARALLEL}},
    {DENSE,
     {"train.params_dtype=float32", "impl.core_attention=unfused",
      "train.global_batch_size=24"},
     {{"parallel.world_size=6", NULL},
      {"parallel.tensor=1,3", NULL},
      {"parallel.sequence=false,true", NULL},
      {"parallel.context=1", NULL},
      {"parallel.pipeline=1,2", NULL},
      SMALL_BATCHES,
      DATA_PARALLEL}},
    {DENSE,
     {"model.seq_length=16", "impl.core_attention=unfused"},
     {{"parallel.world_size=4", NULL},
      {"parallel.tensor=1", NULL},
      {"parallel.sequence=false", NULL},
      {"parallel.context=1,2,4", NULL},
      {"parallel.pipeline=1,2", NULL},
      {"parallel.virtual_pipeline=1,2", NULL},
      {"train.micro_batch_size=1,2", NULL},
      {"recompute=none", "recompute.granularity=none"},
      DATA_PARALLEL}},
    {WIDE, // enough for bounds that rule out
     {"model.num_layers=4", "device.name=h100-80gb",
      "train.global_batch_size=32"},
     {{"parallel.world_size=4,8", NULL},
      {"parallel.tensor=1,2", NULL},
      {"parallel.sequence=false", NULL},
      {"parallel.context=1", NULL},
      {"parallel.pipeline=1,2,4", NULL},
      {"parallel.virtual_pipeline=1", NULL},
      {"train.micro_batch_size=1,2,4", NULL},
      RECOMPUTE_MODULE("layernorm", "true", "false"),
      DATA_PARALLEL}},
    {DENSE, // of what goes to the host a step's lower bound is known
     {NULL},
     {{"parallel.world_size=4", NULL},
      UNSPLIT,
      {"parallel.pipeline=1,2,4", NULL},
      SMALL_BATCHES,
      {"data_parallel=distributed", "optimizer.distributed=true"},
      {"offload=none,optimizer",
       "optimizer.cpu_offload=false "
       "optimizer.precision_aware=true,optimizer.cpu_offload=true"}}},
    {MOE, // recomputed MLPs are those of layers without experts
     {"moe.tokens=", "device.name=h100-80gb", "model.seq_length=64",
      "model.ffn_hidden_size=4096"},
     {{"parallel.world_size=2", NULL},
      UNSPLIT,
      {"parallel.pipeline=1", NULL},
      {"parallel.virtual_pipeline=1", NULL},
      {"parallel.expert_tensor=1", NULL},
      {"parallel.expert=1,2", NULL},
      {"train.micro_batch_size=1,2", NULL},
      RECOMPUTE_MODULE("mlp", "false", "true"),
      {"data_parallel=ddp", "optimizer.distributed=false"}}},
    {MOE,
     {"moe.tokens=", "train.global_batch_size=8"},
     {{"parallel.world_size=2,4", NULL},
      {"parallel.tensor=1,2", NULL},
      {"parallel.sequence=false,true", NULL},
      {"parallel.context=1", NULL},
      {"parallel.pipeline=1,2", NULL},
      {"parallel.virtual_pipeline=1", NULL},
      {"parallel.expert_tensor=1,2", NULL},
      {"parallel.expert=1,2", NULL},
      {"train.micro_batch_size=1,2", NULL},
      {"recompute=none", "recompute.granularity=none"},
      {"data_parallel=ddp", "optimizer.distributed=false"}}},
};

enum {
    N_SPACES = sizeof spaces / sizeof spaces[0]
};

static me_transport *transport;

static me_config *read_job(const space *s)
{
    me_diag diag = {.status = ME_OK};
    me_config *job = me_config_create();
    assert_non_null(job);
    me_status status = me_config_read_file(job, s->job, &diag);
    for (int i = 0; i < SETS_MAX && s->sets[i] != NULL && status == ME_OK;
         i++) {
        status = me_config_set_assignment(job, s->sets[i], &diag);
    }
    if (status != ME_OK) {
        fail_msg("%s", diag.text);
    }
    return job;
}

static uint32_t spaces_of(const space *s, const char **list)
{
    uint32_t n = 0;
    for (int i = 0; i < AXES_MAX && s->axes[i].space != NULL; i++) {
        list[n++] = s->axes[i].space;
    }
    return n;
}

/** The word at @p index of a list with @p between, and its length. */
static const char *word_at(const char *list, char between, int index,
                           size_t *length_out)
{
    const char ends[2] = {between, '\0'};
    for (; index > 0; index--) {
        list += strcspn(list, ends);
        if (*list == '\0') {
            return NULL;
        }
        list++;
    }
    *length_out = strcspn(list, ends);
    return list;
}

/** What the word at @p index of an axis sets. @return false: it has none */
static bool append_word(const axis *a, int index, char text[TEXT_BYTES])
{
    size_t length = 0;
    const char *equals = strchr(a->space, '=');
    const char *word = a->sets == NULL
                           ? word_at(equals + 1, ',', index, &length)
                           : word_at(a->sets, ' ', index, &length);
    if (word == NULL) {
        return false;
    }
    const size_t used = strlen(text);
    const int key = a->sets == NULL ? (int)(equals + 1 - a->space) : 0;
    (void)snprintf(text + used, TEXT_BYTES - used, "%s%.*s%.*s",
                   text[used - 1] == ':' ? "" : ",", key, a->space, (int)length,
                   word);
    return true;
}

/** Every combination, "x3:KEY=VALUE,…". @return how many */
static size_t combine(const space *s, char (*texts)[TEXT_BYTES])
{
    int at[AXES_MAX] = {0};
    size_t n = 0;
    for (;;) {
        bool is_good = true;
        assert_true(n < VARIANTS_MAX);
        (void)snprintf(texts[n], TEXT_BYTES, "x%zu:", n);
        int i = 0;
        for (; i < AXES_MAX && s->axes[i].space != NULL && is_good; i++) {
            is_good = append_word(&s->axes[i], at[i], texts[n]);
        }
        if (is_good) {
            n++;
            at[i - 1]++;
            continue;
        }
        if (i == 1) { // the first axis is through
            return n;
        }
        at[i - 1] = 0;
        at[i - 2]++;
    }
}

/** A row of the comparison that fits. */
typedef struct found {
    const char *assignments;
    int64_t step_ns;
    int64_t room_bytes;
    int32_t world;
    bool is_bound; /**< a step takes at least so long */
} found;

static bool is_beaten(const found *x, const found *by)
{
    return !by->is_bound && x->step_ns >= by->step_ns &&
           x->room_bytes <= by->room_bytes && x->world >= by->world &&
           (x->step_ns > by->step_ns || x->room_bytes < by->room_bytes ||
            x->world > by->world);
}

/** All that fit, by the lines of a comparison. */
static size_t read_lines(const me_compare_run *run, found *rows)
{
    me_compare_line *lines = NULL;
    const me_comparison *c = me_compare_run_comparison(run);
    size_t n = 0;
    assert_int_equal(me_compare_lines_create(c, NULL, &lines), ME_OK);
    for (size_t i = 0; i < c->n_rows; i++) {
        const me_compare_line *line = &lines[i];
        if (line->row->report == NULL || !line->fits || line->is_open ||
            line->row->variant[0] == '\0') {
            continue;
        }
        const me_verdict *v = &line->row->report->verdict;
        const me_step_time *step = me_compare_step(line);
        rows[n++] = (found){
            .assignments = line->row->assignments,
            .step_ns = step == NULL ? 0 : step->step_ns,
            .room_bytes = (int64_t)v->capacity_bytes - (int64_t)v->worst_bytes,
            .world = line->row->report->world_size,
            .is_bound = me_compare_is_bound(line),
        };
    }
    me_compare_lines_destroy(lines, c->n_rows);
    return n;
}

/** The front of the comparison is that of the search, row by row. */
static void check_front(const space *s, const me_search_found *search,
                        const found *rows, size_t n_rows)
{
    uint32_t n_front = 0;
    for (size_t i = 0; i < n_rows; i++) {
        bool is_in_front = true;
        bool has_equal = false;
        for (size_t j = 0; j < n_rows; j++) {
            is_in_front = is_in_front && !is_beaten(&rows[i], &rows[j]);
            has_equal =
                has_equal || (i != j && rows[i].step_ns == rows[j].step_ns &&
                              rows[i].room_bytes == rows[j].room_bytes &&
                              rows[i].world == rows[j].world &&
                              rows[i].is_bound == rows[j].is_bound);
        }
        const me_search_row *own = NULL;
        for (uint32_t j = 0; j < search->n_rows; j++) {
            const char *text = search->rows[j].front.candidate->assignments;
            if (strcmp(text, rows[i].assignments) == 0) {
                own = &search->rows[j];
            }
        }
        if (is_in_front != (own != NULL)) {
            fail_msg("%s: %s is %sin the front of the comparison", s->job,
                     rows[i].assignments, is_in_front ? "" : "not ");
        }
        n_front += is_in_front ? 1 : 0;
        if (own != NULL) {
            const int64_t step_ns = own->front.candidate->result.step_ns;
            assert_int_equal(step_ns, rows[i].step_ns);
            assert_int_equal(own->front.is_equal, has_equal);
        }
    }
    assert_int_equal(n_front, search->n_rows);
}

static me_search_run *search_space(const space *s, const me_config *job)
{
    const char *list[AXES_MAX];
    me_diag diag = {.status = ME_OK};
    const me_search_request request = {
        .space = {.spaces = list, .n_spaces = spaces_of(s, list)},
        .threads = 2};
    me_search_run *run = NULL;
    if (me_search_run_create(transport, &request, job, &diag, &run) != ME_OK) {
        fail_msg("%s", diag.text);
    }
    return run;
}

static void check_space(const space *s)
{
    static char texts[VARIANTS_MAX][TEXT_BYTES];
    static const char *variants[VARIANTS_MAX];
    static found rows[VARIANTS_MAX];
    me_diag diag = {.status = ME_OK};
    me_config *job = read_job(s);
    const size_t n = combine(s, texts);
    for (size_t i = 0; i < n; i++) {
        variants[i] = texts[i];
    }
    const me_compare_request all = {
        .variants = variants, .n_variants = n, .threads = 2};
    me_compare_run *comparison = NULL;
    if (me_compare_run_create(transport, &all, &diag, &comparison) != ME_OK ||
        me_compare_run_all(comparison, job, &diag) != ME_OK) {
        fail_msg("%s", diag.text);
    }
    me_search_run *run = search_space(s, job);
    const me_search_found *found_by = me_search_run_found(run);
    assert_int_equal(found_by->candidates->count, n);
    check_front(s, found_by, rows, read_lines(comparison, rows));
    me_search_run_destroy(run);
    me_compare_run_destroy(comparison);
    me_config_destroy(job);
}

static void test_search__equals_comparison_of_all(void **state)
{
    (void)state;
    for (int i = 0; i < N_SPACES; i++) {
        check_space(&spaces[i]);
    }
}

/* Bounds rule out; recomputed norms within others make no job of their own. */
static void test_search__rules_out(void **state)
{
    (void)state;
    me_config *job = read_job(&spaces[7]);
    me_search_run *run = search_space(&spaces[7], job);
    const me_search_found *f = me_search_run_found(run);
    assert_true(f->counts[ME_SEARCH_BEHIND] + f->counts[ME_SEARCH_TOO_LARGE] >
                0);
    assert_int_equal(f->counts[ME_SEARCH_UNDECIDED], 0);
    uint32_t n_like = 0;
    for (uint32_t i = 0; i < f->candidates->count; i++) {
        const me_candidate *c = &f->candidates->items[i];
        assert_true(!c->is_like || strstr(c->layout, "layernorm") != NULL);
        n_like += c->is_like;
    }
    assert_true(n_like > 0);
    me_search_run_destroy(run);
    me_config_destroy(job);
}

/** Stops at the second candidate. */
static bool stop_soon(void *self, const me_candidate *candidate, uint32_t done,
                      uint32_t count)
{
    int *n = self;
    assert_true(candidate->end == ME_SEARCH_SIMULATED ||
                candidate->end == ME_SEARCH_REFUSED);
    assert_true(done <= count);
    return ++*n < 2;
}

/* A listener stops it; what is not decided is said. */
static void test_search__stops(void **state)
{
    (void)state;
    const char *const list[] = {"parallel.pipeline=1,2,4"};
    int n = 0;
    me_diag diag = {.status = ME_OK};
    me_config *job = read_job(&spaces[0]);
    const me_search_request request = {
        .space = {.spaces = list, .n_spaces = 1, .gpus = "4,8"},
        .listener = {.decided = stop_soon, .self = &n}};
    me_search_run *run = NULL;
    assert_int_equal(
        me_search_run_create(transport, &request, job, &diag, &run), ME_OK);
    assert_true(me_search_run_found(run)->counts[ME_SEARCH_UNDECIDED] > 0);
    assert_true(me_search_run_found(run)->n_rows > 0);
    me_search_run_destroy(run);
    me_config_destroy(job);
}

/* No time at all: what is not ruled out by arithmetic is undecided, and not
 * refused. */
static void test_search__has_no_time(void **state)
{
    (void)state;
    const char *const list[] = {"parallel.pipeline=1,2"};
    me_diag diag = {.status = ME_OK};
    me_config *job = read_job(&spaces[0]);
    me_search_request request = {
        .space = {.spaces = list, .n_spaces = 1, .gpus = "4"}};
    me_search_run *runs[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) {
        request.budget_seconds = i == 0 ? 1e-9 : 0;
        assert_int_equal(
            me_search_run_create(transport, &request, job, &diag, &runs[i]),
            ME_OK);
    }
    const me_search_found *none = me_search_run_found(runs[0]);
    const me_search_found *all = me_search_run_found(runs[1]);
    assert_int_equal(none->counts[ME_SEARCH_SIMULATED], 0);
    assert_int_equal(none->counts[ME_SEARCH_REFUSED],
                     all->counts[ME_SEARCH_REFUSED]);
    assert_true(none->counts[ME_SEARCH_UNDECIDED] > 0);
    assert_int_equal(none->n_rows, 0);
    me_search_run_destroy(runs[0]);
    me_search_run_destroy(runs[1]);
    me_config_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_search__equals_comparison_of_all),
        cmocka_unit_test(test_search__rules_out),
        cmocka_unit_test(test_search__stops),
        cmocka_unit_test(test_search__has_no_time),
    };
    if (me_transport_local_create(&transport) != ME_OK) {
        return 1;
    }
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    me_transport_destroy(transport);
    return failed;
}

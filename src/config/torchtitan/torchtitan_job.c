/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/parse.h"
#include "base/size.h"
#include "config/config_private.h"
#include "config/file.h"
#include "config/flags.h"
#include "config/torchtitan/torchtitan_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const me_titan_flavor flavors[] = {
    {"debugmodel", 256, 8, 16, 16, 256, 10, ME_TITAN_2024},
    {"debugmodel", 256, 6, 16, 16, 256, 10, ME_TITAN_0_2},
    {"8B", 4096, 32, 32, 8, 1024, 13, ME_TITAN_ALL},
    {"70B", 8192, 80, 64, 8, 4096, 13, ME_TITAN_ALL},
    {"405B", 16384, 126, 128, 8, 4096, 12, ME_TITAN_ALL},
};

/** Vocabularies: Llama 3's tokenizer, that of torchtitan's tests, which has 256
 *  special tokens beside its 2,000, and the debug model's own of releases 0.2. */
enum {
    VOCABULARY_LLAMA3 = 128256,
    VOCABULARY_TEST = 2256,
    VOCABULARY_DEBUG_MODEL = 2048,
    MOST_TOKENS = 1 << 24 /* of a sample */
};

me_status me_titan_wrong(const me_titan_model *m, me_titan_field field,
                         const char *what)
{
    return me_titan_fail(m->job, ME_ERR_CONFIG, me_titan_given(m, field), what);
}

static me_status unsupported(const me_titan_model *m, me_titan_field field,
                             const char *what)
{
    return me_titan_fail(m->job, ME_ERR_UNSUPPORTED, me_titan_given(m, field),
                         what);
}

/** One of a few words, bars between them. */
static me_status check_words(const me_titan_model *m, me_titan_field field,
                             const char *words, const char *what)
{
    const char *text = me_titan_given(m, field)->text;
    return text == NULL || me_words_have(words, strlen(words), text)
               ? ME_OK
               : me_titan_wrong(m, field, what);
}

static me_status find_flavor(me_titan_model *m)
{
    const char *name = me_titan_text(m, ME_TITAN_FLAVOR, "debugmodel");
    const int version = m->is_0_2 ? ME_TITAN_0_2 : ME_TITAN_2024;
    if (strcmp(me_titan_text(m, ME_TITAN_MODEL, "llama3"), "llama3") != 0) {
        return unsupported(m, ME_TITAN_MODEL,
                           "of torchtitan's models llama3 is modelled");
    }
    for (size_t i = 0; i < sizeof flavors / sizeof flavors[0]; i++) {
        if (strcmp(flavors[i].name, name) == 0 &&
            (flavors[i].versions & version) != 0) {
            m->flavor = &flavors[i];
            (void)snprintf(m->job->config->torch.model_name,
                           sizeof m->job->config->torch.model_name,
                           "torchtitan's llama3 %s", name);
            return ME_OK;
        }
    }
    return unsupported(m, ME_TITAN_FLAVOR,
                       "of llama3 debugmodel, 8B, 70B and 405B are modelled");
}

static me_status find_vocabulary(me_titan_model *m)
{
    const char *path = me_titan_text(m, ME_TITAN_TOKENIZER, "");
    const bool is_debug = strcmp(m->flavor->name, "debugmodel") == 0;
    if (m->is_0_2) {
        m->vocabulary = is_debug ? VOCABULARY_DEBUG_MODEL : VOCABULARY_LLAMA3;
        return ME_OK;
    }
    const bool is_test = me_ends_with(path, "test_tiktoken.model");
    m->vocabulary = is_test ? VOCABULARY_TEST : VOCABULARY_LLAMA3;
    return me_config_assume(
        m->job->config, m->job->diag, "the tokenizer has %d tokens, as %s has",
        (int)m->vocabulary,
        is_test ? "torchtitan's tests/assets one" : "Llama 3's");
}

me_status me_titan_count(const me_titan_model *m, me_titan_field field,
                         uint64_t otherwise, uint64_t *count_out)
{
    const int64_t value = me_titan_number(m, field, (int64_t)otherwise);
    if (value < 1) {
        return me_titan_wrong(m, field, "must be at least 1");
    }
    *count_out = (uint64_t)value;
    return ME_OK;
}

static me_status read_batch(me_titan_model *m)
{
    me_status status =
        me_titan_count(m, ME_TITAN_BATCH_SIZE, 8, &m->batch_size);
    if (status == ME_OK) {
        status = me_titan_count(m, ME_TITAN_SEQ_LEN, 2048, &m->seq_len);
    }
    if (status == ME_OK && m->seq_len > MOST_TOKENS) {
        status =
            me_titan_wrong(m, ME_TITAN_SEQ_LEN, "must be at most 16777216");
    }
    const char *max_norm = me_titan_text(m, ME_TITAN_MAX_NORM, "1");
    if (status == ME_OK && !(strtod(max_norm, NULL) >= 0)) {
        status = me_titan_wrong(m, ME_TITAN_MAX_NORM,
                                "must be a number from 0 (no clipping)");
    }
    if (status == ME_OK) {
        status = check_words(m, ME_TITAN_PARAM_DTYPE, "bfloat16|float32",
                             "must be one of bfloat16, float32");
    }
    return status;
}

static me_status read_data_parallel(me_titan_model *m)
{
    uint64_t replicate = 1;
    const me_status status =
        me_titan_count(m, ME_TITAN_REPLICATE, 1, &replicate);
    m->replicate = (int64_t)replicate;
    m->shard = me_titan_number(m, ME_TITAN_SHARD, -1);
    if (status != ME_OK) {
        return status;
    }
    if (m->shard == 0) {
        return me_titan_wrong(m, ME_TITAN_SHARD, "must be at least 1, or -1");
    }
    m->is_sharded = m->shard != 1;
    return check_words(m, ME_TITAN_RESHARD, "default|always|never",
                       "must be one of default, always, never");
}

/** The plan cuts heads, words and positions. */
static me_status read_tensor(me_titan_model *m)
{
    uint64_t ranks = 1;
    const me_status status = me_titan_count(m, ME_TITAN_TENSOR, 1, &ranks);
    m->tensor = ranks;
    if (status != ME_OK) {
        return status;
    }
    const char *off = me_titan_text(m, ME_TITAN_NO_LOSS_PARALLEL, "false");
    m->is_loss_parallel = ranks > 1 && strcmp(off, "true") != 0;
    if (m->flavor->n_kv_heads % ranks != 0) {
        return me_titan_wrong(m, ME_TITAN_TENSOR,
                              "must divide the heads of keys and values");
    }
    if (m->vocabulary % ranks != 0 || m->seq_len % ranks != 0) {
        return me_titan_wrong(
            m, ME_TITAN_TENSOR,
            "must divide the vocabulary and training.seq_len");
    }
    return ME_OK;
}

static me_status read_checkpoint(me_titan_model *m)
{
    m->checkpoint = me_titan_text(m, ME_TITAN_CHECKPOINT, "selective");
    m->option = me_titan_text(m, ME_TITAN_CHECKPOINT_OPTION, "2");
    m->stops_early =
        !m->is_0_2 ||
        strcmp(me_titan_text(m, ME_TITAN_EARLY_STOP, "false"), "true") == 0;
    if (strcmp(m->checkpoint, "memory_budget") == 0) {
        return unsupported(m, ME_TITAN_CHECKPOINT,
                           "a budget is the compiler's, which is not modelled");
    }
    uint64_t every = 0;
    if (strcmp(m->option, "op") != 0 &&
        me_parse_u64(m->option, &every) != ME_OK) {
        return me_titan_wrong(m, ME_TITAN_CHECKPOINT_OPTION,
                              "must be op, or every how many blocks");
    }
    return check_words(m, ME_TITAN_CHECKPOINT, "none|selective|full",
                       "must be one of none, selective, full");
}

static me_status check_optimizer(const me_titan_model *m)
{
    const char *name = me_titan_text(m, ME_TITAN_OPTIMIZER, "AdamW");
    const me_status status =
        check_words(m, ME_TITAN_IMPLEMENTATION, "for-loop|foreach|fused",
                    "must be one of for-loop, foreach, fused");
    return status != ME_OK || strcmp(name, "Adam") == 0 ||
                   strcmp(name, "AdamW") == 0
               ? status
               : unsupported(m, ME_TITAN_OPTIMIZER,
                             "Adam and AdamW are modelled");
}

/** How many ranks the degrees make, where they say it. */
static me_status set_world(const me_titan_model *m)
{
    if (m->shard < 0) {
        return ME_OK;
    }
    me_config *c = m->job->config;
    const uint64_t ranks = me_size_mul((uint64_t)(m->shard * m->replicate),
                                       m->pipeline * m->tensor);
    // Whoever says how many ranks there are may come later: the degrees are
    // held against that when all has been read.
    if (me_option_is_set(me_option_find("parallel.world_size"), c)) {
        return ME_OK;
    }
    char text[32];
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)ranks);
    return me_config_set(c, "parallel.world_size", text, m->job->diag);
}

static me_status note(const me_titan_model *m)
{
    me_config *c = m->job->config;
    const me_status status =
        me_titan_given(m, ME_TITAN_FLAVOR)->text != NULL
            ? ME_OK
            : me_config_assume(c, m->job->diag,
                               "no model.flavor is given: torchtitan's "
                               "default, %s",
                               m->flavor->name);
    if (status != ME_OK) {
        return status;
    }
    return me_config_assume(c, m->job->diag,
                            "keys, model and order of operations are those of "
                            "torchtitan %s, on PyTorch 2.11's runtime%s",
                            m->is_0_2 ? "0.2" : "of December 2024 (9dec370)",
                            m->is_0_2 ? "; attention is cuDNN's"
                                      : "; attention is flash");
}

/** apply_ddp() stands alone. */
static me_status check_ddp(const me_titan_model *m)
{
    return m->replicate > 1 && !m->is_sharded &&
                   (m->tensor > 1 || m->pipeline > 1)
               ? unsupported(m, ME_TITAN_REPLICATE,
                             "torchtitan refuses DDP with tensor parallelism "
                             "or a pipeline; copies of a sharded model (HSDP) "
                             "go with both")
               : ME_OK;
}

static me_status read_all(me_titan_model *m)
{
    static me_status (*const steps[])(me_titan_model * m) = {
        find_vocabulary, read_batch,      read_data_parallel,
        read_tensor,     read_checkpoint, me_titan_read_stages,
    };
    me_status status = find_flavor(m);
    if (status != ME_OK || m->flavor == NULL) {
        return status;
    }
    for (size_t i = 0; i < sizeof steps / sizeof steps[0] && status == ME_OK;
         i++) {
        status = steps[i](m);
    }
    if (status == ME_OK) {
        status = check_ddp(m);
    }
    if (status == ME_OK) {
        status = check_optimizer(m);
    }
    if (status == ME_OK) {
        status = set_world(m);
    }
    return status == ME_OK ? note(m) : status;
}

const me_titan_value *me_titan_given(const me_titan_model *m,
                                     me_titan_field field)
{
    return &m->job->values[field];
}

const char *me_titan_text(const me_titan_model *m, me_titan_field field,
                          const char *otherwise)
{
    const char *text = me_titan_given(m, field)->text;
    return text == NULL ? otherwise : text;
}

int64_t me_titan_number(const me_titan_model *m, me_titan_field field,
                        int64_t otherwise)
{
    const char *text = me_titan_given(m, field)->text;
    return text == NULL ? otherwise : strtoll(text, NULL, 10);
}

static bool is_word(const char *text, const char *word)
{
    return text != NULL && strcmp(text, word) == 0;
}

/** What others ask of it. */
static me_torchtitan_job summarize(const me_titan_model *m)
{
    const char *implementation = me_titan_text(m, ME_TITAN_IMPLEMENTATION,
                                               m->is_0_2 ? "fused" : "foreach");
    const char *param = me_titan_text(m, ME_TITAN_PARAM_DTYPE, "bfloat16");
    const bool is_selective = is_word(m->checkpoint, "selective");
    return (me_torchtitan_job){
        .is_0_2 = m->is_0_2,
        .batch_size = m->batch_size,
        .shard = m->shard,
        .replicate = m->replicate,
        .tensor = (int64_t)m->tensor,
        .pipeline = (int64_t)m->pipeline,
        .is_sharded = m->is_sharded,
        .always_reshards = strcmp(me_titan_text(m, ME_TITAN_RESHARD, "default"),
                                  "always") == 0,
        .is_offloaded = strcmp(me_titan_text(m, ME_TITAN_CPU_OFFLOAD, "false"),
                               "true") == 0,
        .is_bfloat16 = strcmp(param, "bfloat16") == 0,
        .is_fused =
            strcmp(implementation, "fused") == 0 ||
            strcmp(me_titan_text(m, ME_TITAN_FUSED, "false"), "true") == 0,
        .is_checkpointed = !is_word(m->checkpoint, "none"),
        .is_op_checkpoint = is_selective && is_word(m->option, "op"),
        .is_full_checkpoint = is_word(m->checkpoint, "full"),
    };
}

me_status me_titan_apply(me_titan_job *job, me_torchtitan_job *job_out)
{
    me_titan_model m = {.job = job, .is_0_2 = me_titan_is_0_2(job)};
    me_status status = read_all(&m);
    if (status == ME_OK) {
        *job_out = summarize(&m);
        me_titan_model_write(&m);
        status = me_str_status(&m.text);
        status = status == ME_OK
                     ? me_config_read_text(job->config, "torchtitan's model",
                                           me_str_text(&m.text), m.text.length,
                                           job->diag)
                     : me_fail(job->diag, status, "no memory for the model");
    }
    me_str_fini(&m.text);
    return status;
}

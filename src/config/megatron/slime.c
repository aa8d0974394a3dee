/* SPDX-License-Identifier: BSD-3-Clause */
/* slime's and miles' train.py: Megatron-LM's flags beside their own
 * (slime/utils/arguments.py), and what they set where nothing does
 * (slime/backends/megatron_utils/arguments.py, set_default_megatron_args()). */
#include "base/parse.h"
#include "config/config_private.h"
#include "config/megatron/megatron_arguments.h"
#include "config/megatron/trainers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    WORDS_ADDED = 16,
    NUMBER_BYTES = 24,
    TOKENS_DEFAULT = 4096, /**< of seq_length */
    PAD_DEFAULT = 128      /**< of data_pad_size_multiplier */
};

/** The value of the last `--flag value` or `--flag=value`, or NULL. */
static const char *value_of(int argc, const char *const *argv, const char *flag)
{
    const size_t length = strlen(flag);
    const char *value = NULL;
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], flag, length) == 0 && argv[i][length] == '=') {
            value = argv[i] + length + 1;
        } else if (strcmp(argv[i], flag) == 0 && i + 1 < argc) {
            value = argv[i + 1];
        }
    }
    return value;
}

static bool has_flag(int argc, const char *const *argv, const char *flag)
{
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], flag) == 0) {
            return true;
        }
    }
    return false;
}

static uint64_t number_of(int argc, const char *const *argv, const char *flag,
                          uint64_t other)
{
    const char *value = value_of(argc, argv, flag);
    uint64_t number = 0;
    return value != NULL && me_parse_u64(value, &number) == ME_OK && number > 0
               ? number
               : other;
}

/** The row of one micro-batch: its samples side by side (data.py, get_batch()). */
typedef struct row {
    uint64_t
        tokens; /**< with what pads them, of all cards of a context group */
    uint64_t sample; /**< 0: as many samples as the limit lets be in one */
    uint64_t samples;
} row;

/** Samples have the longest prompt and response, where it is said, else what
 *  Megatron-LM's flag says. --max-tokens-per-gpu counts with
 *  --use-dynamic-batch-size alone (dp_schedule.py). */
static row row_of(int argc, const char *const *argv)
{
    const uint64_t context =
        number_of(argc, argv, "--context-parallel-size", 1);
    const uint64_t unit =
        number_of(argc, argv, "--tensor-model-parallel-size", 1) *
        number_of(argc, argv, "--data-pad-size-multiplier", PAD_DEFAULT) *
        context;
    const uint64_t response =
        number_of(argc, argv, "--rollout-max-response-len", 0);
    const uint64_t prompt =
        response == 0 ? 0
                      : number_of(argc, argv, "--rollout-max-prompt-len", 0);
    row r = {.samples = 1};
    if (has_flag(argc, argv, "--use-dynamic-batch-size")) {
        r.tokens =
            number_of(argc, argv, "--max-tokens-per-gpu", TOKENS_DEFAULT) *
            context;
    } else {
        r.sample = response != 0
                       ? prompt + response
                       : number_of(argc, argv, "--seq-length", TOKENS_DEFAULT);
        r.samples = number_of(argc, argv, "--micro-batch-size", 1);
        r.tokens = r.sample * r.samples;
    }
    r.tokens = (r.tokens + unit - 1) / unit * unit;
    return r;
}

static me_status assume_tokens(me_config *config, const row *r, me_diag *diag)
{
    if (r->sample == 0) {
        return me_config_assume(config, diag,
                                "a micro-batch has %" PRIu64
                                " tokens, all that --max-tokens-per-gpu lets "
                                "be in one, of every card of a context group",
                                r->tokens);
    }
    return me_config_assume(
        config, diag,
        "a sample has %" PRIu64 " tokens, and a micro-batch, a row of %" PRIu64
        " of them, %" PRIu64 "; a longer prompt with its response takes more",
        r->sample, r->samples, r->tokens);
}

/** What shares the cards with the step that is answered. */
static me_status note(me_config *config, int argc, const char *const *argv,
                      me_diag *diag)
{
    const me_effect some = ME_HIGHER(SOME);
    const me_effect more = ME_HIGHER(ANY);
    const me_status status = me_config_add_not_modelled(
        config, "slime's losses",
        "of log-probabilities and entropies of the logits; the step is "
        "estimated as pretrain_gpt.py's",
        some, diag);
    return status != ME_OK || !has_flag(argc, argv, "--colocate")
               ? status
               : me_config_add_not_modelled(
                     config, "the rollout engine",
                     "its weights and cache, as far as it keeps them while the "
                     "actor trains",
                     more, diag);
}

/** The command's words, and what slime sets beside them. */
typedef struct slime_words {
    const char **words;
    int n;
    int n_given;
} slime_words;

static bool is_said(const slime_words *w, const char *flag)
{
    return value_of(w->n_given, w->words, flag) != NULL ||
           has_flag(w->n_given, w->words, flag);
}

/** @p value NULL: the flag takes none, or there was no memory for it. */
static void say(slime_words *w, const char *flag, const char *value)
{
    w->words[w->n++] = flag;
    if (value != NULL) {
        w->words[w->n++] = value;
    }
}

static const char *copy_number(me_config *config, uint64_t number)
{
    char text[NUMBER_BYTES];
    (void)snprintf(text, sizeof text, "%" PRIu64, number);
    return me_arena_strdup(config->own->text, text);
}

/** Rows of a step: its samples, those of all rollouts divided among the steps,
 *  as many side by side as a micro-batch has. */
static uint64_t rows_of(const slime_words *w, const row *r)
{
    const int n = w->n_given;
    const uint64_t rollouts =
        number_of(n, w->words, "--rollout-batch-size", 1) *
        number_of(n, w->words, "--n-samples-per-prompt", 1);
    const uint64_t samples = number_of(
        n, w->words, "--global-batch-size",
        rollouts / number_of(n, w->words, "--num-steps-per-rollout", 1));
    return (samples + r->samples - 1) / r->samples;
}

/** What slime says after all flags, where it says so or no flag does. */
static void say_defaults(slime_words *w, const me_config *config,
                         const char *tokens, const char *rows)
{
    const char *dispatcher =
        value_of(w->n_given, w->words, "--moe-token-dispatcher-type");
    say(w, "--seq-length", tokens);
    say(w, "--max-position-embeddings", tokens);
    say(w, "--micro-batch-size", "1");
    say(w, "--global-batch-size", rows);
    if (!is_said(w, "--fp16")) {
        say(w, "--bf16", NULL);
    }
    say(w, "--use-distributed-optimizer", NULL);
    if (!is_said(w, "--no-create-attention-mask-in-dataloader")) {
        say(w, "--no-create-attention-mask-in-dataloader", NULL);
    }
    if ((is_said(w, "--num-experts") || config->moe.num_experts > 0) &&
        (dispatcher == NULL || strcmp(dispatcher, "allgather") == 0)) {
        say(w, "--moe-token-dispatcher-type", "alltoall");
    }
}

me_status me_slime_read(me_config *config, int argc, const char *const *argv,
                        me_diag *diag)
{
    slime_words w = {
        .words = me_arena_alloc(config->own->text, (size_t)argc + WORDS_ADDED,
                                sizeof *w.words),
        .n = argc,
        .n_given = argc,
    };
    for (int i = 0; w.words != NULL && i < argc; i++) {
        w.words[i] = argv[i];
    }
    const row r = row_of(argc, argv);
    const char *checkpoint = value_of(argc, argv, "--hf-checkpoint");
    const char *length = copy_number(config, r.tokens);
    const char *rows =
        w.words == NULL ? NULL : copy_number(config, rows_of(&w, &r));
    if (length == NULL || rows == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory for the launch command");
    }
    me_status status = ME_OK;
    if (value_of(argc, argv, "--num-layers") == NULL && checkpoint != NULL) {
        status = me_trainer_read_model(config, "--hf-checkpoint", checkpoint,
                                       diag, NULL);
    }
    say_defaults(&w, config, length, rows);
    if (status == ME_OK) {
        status = me_megatron_read(config, w.n, w.words, diag);
    }
    if (status == ME_OK) {
        // the actor's, whatever started the script: Ray starts them
        status = me_trainer_set_ranks(
            config, number_of(argc, argv, "--actor-num-nodes", 1),
            number_of(argc, argv, "--actor-num-gpus-per-node", 8), diag);
    }
    if (status == ME_OK) {
        status = note(config, argc, argv, diag);
    }
    return status == ME_OK ? assume_tokens(config, &r, diag) : status;
}

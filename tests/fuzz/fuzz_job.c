/* links: api config base */
/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole jobs of Megatron-LM: a small one with some of its options set to values
 * of their types. The first byte has switches; of each pair that follows the
 * first names an option, the second a value. */
#include "support/fuzz_job.h"

#include "config/options.h"

enum {
    INPUT_MAX = 80 /* bytes: more options make no other jobs */
};

/* Small, for time is events: layers, micro-batches and classes of ranks
 * multiply, and sanitizers make each event ten times as slow. */
static const char base[] =
    "model = { num_layers = 1; hidden_size = 64; num_attention_heads = 4; "
    "seq_length = 32; vocab_size = 100; }; train = { micro_batch_size = 1; }; "
    "parallel = { world_size = 2; };";

static const char *pick(const char *const *words, size_t n, uint8_t which)
{
    return words[which % n];
}

#define PICK(words, which) pick(words, sizeof(words) / sizeof *(words), which)

/** A value of an option's type; now and then its largest. */
static void write_value(const me_option *option, uint8_t which, char value[64])
{
    static const char *const whole[] = {"0", "1", "1", "2", "2", "3", "4"};
    static const char *const numbers[] = {"0", "0.1",       "0.5", "1",
                                          "2", "0.9999999", "1e6", "1e-9"};
    static const char *const sizes[] = {"1MiB", "2MiB", "40MiB", "1GiB",
                                        "80GiB"};
    static const char *const texts[] = {
        "",         "Et*2|t*2L", "Et*4|L",
        "[1,0]*2",  "2",         "expandable_segments:True",
        "dgx-h100", "a100-40gb", "max_split_size_mb:20"};
    const char *text = "";
    size_t n_words = 0;
    switch (option->type) {
    case ME_OPTION_INT:
    case ME_OPTION_COUNT: text = PICK(whole, which); break;
    case ME_OPTION_DOUBLE: text = PICK(numbers, which); break;
    case ME_OPTION_SIZE: text = PICK(sizes, which); break;
    case ME_OPTION_BOOL: text = which % 2 == 0 ? "true" : "false"; break;
    case ME_OPTION_STRING: text = PICK(texts, which); break;
    case ME_OPTION_ENUM:
        while (option->words[n_words].word != NULL) {
            n_words++;
        }
        text = option->words[which % n_words].word;
        break;
    }
    (void)snprintf(value, 64, "%s", text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3 || size > INPUT_MAX) {
        return 0;
    }
    size_t n_options = 0;
    const me_option *options = me_options(&n_options);
    memest_error *error = memest_error_create();
    memest_job *job = memest_job_create();
    if (memest_job_read_text(job, "base", base, sizeof base - 1, error) !=
        MEMEST_OK) {
        abort();
    }
    for (size_t i = 1; i + 1 < size; i += 2) {
        const me_option *option = &options[data[i] % n_options];
        char value[64];
        write_value(option, data[i + 1], value);
        if (memest_job_set(job, option->name, value, error) != MEMEST_OK) {
            fuzz_check_line(memest_error_text(error));
        }
    }
    memest_estimate_options o = MEMEST_INIT(memest_estimate_options);
    o.no_fold = (data[0] & 1) != 0;
    o.keep_course = (data[0] & 2) != 0;
    fuzz_run_job(job, error, &o);
    memest_job_destroy(job);
    memest_error_destroy(error);
    return 0;
}

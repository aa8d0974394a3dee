/**
 * @file
 * What a job keeps for itself, and how the readers of this folder write into
 * it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_CONFIG_PRIVATE_H
#define MEMEST_CONFIG_CONFIG_PRIVATE_H

#include "base/arena.h"
#include "config/options.h"
#include "config/tokenizer/tokenizer.h"

#include <stdbool.h>

enum {
    ME_OPTION_MAX = 320,
    ME_CONFIG_SAID_LISTS = 3 /**< see config/said.h */
};

/** What a launch command's tokenizer says of the vocabulary; texts are of the
 *  job's arena. */
typedef struct me_vocabulary_said {
    uint64_t tokens; /**< 0: no tokenizer was named */
    me_vocabulary_source source;
    const char *type; /**< of the tokenizer */
    const char *from; /**< file or name */
} me_vocabulary_said;

struct me_config_private {
    me_arena *text;             /**< of the lists of flags */
    bool is_set[ME_OPTION_MAX]; /**< by its index in the option table */
    me_vocabulary_said vocabulary;
    bool takes_unknown; /**< see me_config_take_unknown() */
    bool has_launch;    /**< a launch command of Megatron-LM was read */
    int32_t n_said[ME_CONFIG_SAID_LISTS]; /**< entries before derived ones */
};

/** Where a value was written: of the user's input. */
typedef struct me_origin {
    const char *file; /**< NULL: no file */
    int line;         /**< 0: no line */
    const char *name; /**< what the user calls it, such as a flag */
} me_origin;

/**
 * Set @p option from text that came from @p origin; errors name the origin.
 *
 * @return ME_OK, or ME_ERR_CONFIG
 */
me_status me_option_set(const me_option *option, me_config *config,
                        const char *value, const me_origin *origin,
                        me_diag *diag) ME_MUST_CHECK;

/** The shortest digits that me_parse_double() reads back as @p value. */
void me_option_format_double(double value, me_str *text);

/** A libconfig string: quotes and backslashes escaped. The text is clean. */
void me_option_append_quoted(const char *value, me_str *text);

/** Does the option name a file of the user's? Local. */
bool me_option_names_file(const me_option *option);

/** Was this option given? */
bool me_option_is_set(const me_option *option, const me_config *config);

/**
 * Add to a list of the job; the texts are copied, @p note may be NULL.
 *
 * @return ME_OK, or ME_ERR_NOMEM
 */
me_status me_flag_list_add(me_config *config, me_flag_list *list,
                           const char *flag, const char *note,
                           me_diag *diag) ME_MUST_CHECK;

/** Is @p flag in the list? */
bool me_flag_list_has(const me_flag_list *list, const char *flag);

/** tensor x pipeline x context, saturating as sizes do. */
uint64_t me_config_model_parallel(const me_config *config);

/** The world size, where nothing gives it, and the data-parallel size. */
me_status me_config_derive_world(me_config *config, int32_t num_processes,
                                 me_diag *diag) ME_MUST_CHECK;

/** Check the degrees of a plain PyTorch job, its plan and its wrapper. */
me_status me_torch_check_parallel(const me_config *config,
                                  me_diag *diag) ME_MUST_CHECK;

/** Say which values are taken, of those that move the numbers most, where nothing
 *  gives them. */
me_status me_config_assume_defaults(me_config *config,
                                    me_diag *diag) ME_MUST_CHECK;

/** Fill in derived values: all but the checks of me_config_finish(). */
me_status me_config_derive(me_config *config, int32_t num_processes,
                           me_diag *diag) ME_MUST_CHECK;

/** Whose modules, which core attention and which optimizer, unless given. */
void me_config_derive_implementation(me_config *config);

/** Say what times of Transformer Engine's modules are, where they are taken. */
me_status me_config_assume_te_times(me_config *config,
                                    me_diag *diag) ME_MUST_CHECK;

/** One check of values that depend on each other. */
typedef struct me_rule {
    const char *name;
    me_status (*check)(const me_config *config, me_diag *diag);
} me_rule;

/** The rules of the optimizer; static. */
const me_rule *me_optimizer_rules(size_t *count_out);
/** The rules of Transformer Engine; static. */
const me_rule *me_te_rules(size_t *count_out);

/** The rules of context parallelism; static. */
const me_rule *me_context_rules(size_t *count_out);

/** The rules of multi-latent attention and multi-token prediction; static. */
const me_rule *me_model_rules(size_t *count_out);

/** The rules of splitting layers over stages, checked last; static. */
const me_rule *me_pipeline_rules(size_t *count_out);

/** The rules of experts; of a job without them, that it asks for none, and
 *  that their grid of ranks can be made all the same. */
const me_rule *me_moe_rules(const me_config *config, size_t *count_out);

/** @p a, which is called @p a_name, must be a multiple of @p b. */
me_status me_divides(const char *b_name, uint64_t b, const char *a_name,
                     uint64_t a, me_diag *diag) ME_MUST_CHECK;

/** Check every rule on a job with its values derived; the first that fails
 * speaks. */
me_status me_config_validate(const me_config *config,
                             me_diag *diag) ME_MUST_CHECK;

/** Say where the vocabulary comes from, if a tokenizer decides it
 *  (megatron/tokenizer_flags.c). */
me_status me_vocabulary_note(me_config *config, me_diag *diag) ME_MUST_CHECK;

/** List the option values that are not modelled; see notes.c. */
me_status me_config_note(me_config *config, me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_CONFIG_CONFIG_PRIVATE_H */

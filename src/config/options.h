/**
 * @file
 * The one table of options: what a `.cfg` file, `--set` and the documentation
 * know, and how each is written as text.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_OPTIONS_H
#define MEMEST_CONFIG_OPTIONS_H

#include "base/str.h"
#include "config/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum me_option_type {
    ME_OPTION_INT,    /**< int32_t, not negative */
    ME_OPTION_COUNT,  /**< uint64_t */
    ME_OPTION_SIZE,   /**< uint64_t, bytes, may be written with a unit */
    ME_OPTION_BOOL,   /**< true or false */
    ME_OPTION_DOUBLE, /**< decimal number */
    ME_OPTION_ENUM,   /**< one of the option's words */
    ME_OPTION_STRING  /**< text in an array of the job */
} me_option_type;

/** As a decimal number's bound: there is none but the type's. */
#define ME_OPTION_REAL_MAX 1e308

/** One option. Everything that memest says of it comes from here. */
typedef struct me_option {
    const char *name; /**< dotted, `parallel.tensor` */
    me_option_type type;
    const char *default_text; /**< Megatron-LM's default, as text */
    double min;               /**< numbers: smallest that may be given */
    double max;               /**< numbers: largest that may be given */
    const me_choice *words;   /**< of an enumeration, else NULL */
    const char *unit;         /**< "tokens", "" if it has none */
    const char *zero; /**< what a default of 0 stands for, NULL: nothing */
    const char *help; /**< one sentence */
    size_t offset;    /**< of the field in me_config */
    size_t size;      /**< of the field, bytes */
} me_option;

/** All options, in the order of the documentation; static. */
const me_option *me_options(size_t *count_out);

/** The option called @p name, or NULL. Local. */
const me_option *me_option_find(const char *name);

/** Is there an option whose name begins with @p group and a dot? Local. */
bool me_option_group_is_known(const char *group);

/** The known option nearest to @p name, or NULL if none is near. Local. */
const me_option *me_option_nearest(const char *name);

/** Has @p option the value that it has where nobody gives one? Local. */
bool me_option_is_default(const me_option *option, const me_config *config);

/** Was @p name given by a file, a launch command or `--set`? Local. */
bool me_config_is_set(const me_config *config, const char *name);

/**
 * Set one option from text. Local.
 *
 * @return ME_OK; ME_ERR_CONFIG for an unknown option or a value that is not
 *         of its type or range, with what would be right in @p diag
 */
me_status me_config_set(me_config *config, const char *name, const char *value,
                        me_diag *diag) ME_MUST_CHECK;

/** As me_config_set(), for `key=value` as `--set` takes it. Local. */
me_status me_config_set_assignment(me_config *config, const char *assignment,
                                   me_diag *diag) ME_MUST_CHECK;

/** The value of @p option in @p config as text that sets it again. Local. */
void me_option_format(const me_option *option, const me_config *config,
                      me_str *text);

/** What may be given: "a number from 1 to 8", "one of a, b". Local. */
void me_option_format_range(const me_option *option, me_str *text);

/**
 * Append one line for each option: name, type, help, default. Local.
 *
 * @param word  of those that have it in name or help; NULL: of all
 * @return is there one?
 */
bool me_options_list(const char *word, me_str *text);

/** The page docs/options.md, whole. Local. */
void me_options_markdown(me_str *text);

/** `--dump config`: the job as a `.cfg` file that reads back equal. Local. */
void me_config_dump(const me_config *config, me_str *text);

/**
 * Add a job to a statement (base/statement.h): every option that its framework
 * looks at, its modules, and what of its launch command is not modelled. Of
 * options that name a file it is the file's contents that count: whoever reads
 * it states them. Local.
 */
void me_config_state(const me_config *config, me_str *statement);

#endif /* MEMEST_CONFIG_OPTIONS_H */

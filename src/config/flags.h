/**
 * @file
 * Every flag of Megatron-LM core_v0.19.0, and what it is to memest.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_FLAGS_H
#define MEMEST_CONFIG_FLAGS_H

#include "base/str.h"
#include "model/effect.h"

#include <stdbool.h>
#include <stddef.h>

typedef enum me_flag_kind {
    ME_FLAG_MODELLED,
    ME_FLAG_NOT_MODELLED,
    ME_FLAG_NO_EFFECT,
    ME_FLAG_REFUSED, /**< by Megatron-LM itself */
    ME_FLAG_REMOVED /**< of earlier versions: unknown to Megatron-LM's parser */
} me_flag_kind;

/**
 * What holds for some flags. Lists of these end with a NULL `flags`.
 *
 * `flags` is one text, blanks between the flags; after a colon come the values
 * of a flag: `i` a whole number, `f` a number, `n` a whole number that is a
 * number to forks, `s` text, `t` whole numbers with commas between them, `p` a
 * period or a list of Python's, or words with bars between them. `+` before it
 * means one or more values, `*` any number, `3` three. A `*` that ends a flag
 * stands for any rest of its name.
 */
typedef struct me_flag_rule {
    const char *flags;
    const char *option;   /**< that the flag sets, or NULL */
    const char *constant; /**< what it sets; NULL: the value given */
    const char *neutral;  /**< value, or values with bars between them, at
                               which nothing is left that is not modelled; of
                               a flag that sets an option: as if not given */
    const char *needs;    /**< has no effect without one of these: a flag, or
                               `--flag=value|value`; `!` before it: with it.
                               Of one that is refused: it is not, beside these */
    const char *note;     /**< one phrase for the report, or NULL */
    me_effect effect;     /**< of what is not modelled */
} me_flag_rule;

extern const me_flag_rule me_flags_modelled[];
extern const me_flag_rule me_flags_not_modelled[];
extern const me_flag_rule me_flags_not_modelled_more[];
extern const me_flag_rule me_flags_no_effect[];
extern const me_flag_rule me_flags_refused[];
extern const me_flag_rule me_flags_removed[];
/** Flags of forks and earlier versions. */
extern const me_flag_rule me_flags_forks[];
extern const me_flag_rule me_flags_forks_not_modelled[];
extern const me_flag_rule me_flags_forks_no_effect[];

/** What forks call a value of a flag of Megatron-LM's. */
typedef struct me_flag_spelling {
    const char *flag;
    const char *spelled; /**< words with bars between them */
    const char *meant;   /**< the value that is read in its place */
    const char *note;    /**< what is not modelled then; NULL: nothing */
    me_effect effect;    /**< of that */
} me_flag_spelling;

/** The table; ends with a NULL flag. */
extern const me_flag_spelling me_flag_spellings[];

/** One of the tables above. */
typedef struct me_flag_table {
    me_flag_kind kind;
    const me_flag_rule *rules;
    bool is_of_forks;
} me_flag_table;

/** A known flag. All texts are static. */
typedef struct me_flag {
    me_flag_kind kind;
    const me_flag_rule *rule;
    const char *values; /**< the part after the colon; ends at a blank */
    bool is_of_fork;    /**< of which others may have the name for their own */
} me_flag;

/** All tables, each flag in one of them. Local. */
const me_flag_table *me_flag_tables(size_t *count_out);

/**
 * The next flag of a rule's text. Local.
 *
 * @param cursor      first at me_flag_rule.flags; moved behind the flag
 * @param length_out  of its name
 * @return its start; NULL: there is none
 */
const char *me_flag_next(const char **cursor, size_t *length_out);

/** Append "only with --num-experts", or "not with" it: of a rule that needs
 *  something. Local. */
void me_flag_append_needs(const me_flag_rule *rule, me_str *text);

/** Look up `--flag`. Local. */
bool me_flag_find(const char *name, me_flag *flag_out);

/**
 * The known flag nearest to one that is not known. Local.
 *
 * @return its length and start in a table; NULL if none is near
 */
const char *me_flag_nearest(const char *name, size_t *length_out);

/** Does @p value occur in @p words, which bars separate? Local. */
bool me_words_have(const char *words, size_t length, const char *value);

#endif /* MEMEST_CONFIG_FLAGS_H */

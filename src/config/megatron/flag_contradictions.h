/**
 * @file
 * What Megatron-LM core_v0.19.0 asserts of flags among each other, a row each.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_MEGATRON_FLAG_CONTRADICTIONS_H
#define MEMEST_CONFIG_MEGATRON_FLAG_CONTRADICTIONS_H

#include <stdbool.h>

/**
 * Conditions have blanks between them, of which one is enough: flags as in
 * me_flag_rule.needs; `--flag>0`, `--flag<0`, a number above or below it;
 * `--flag~0`, a value in which that text is; several with `&` between them, which
 * hold together.
 */
typedef struct me_flag_contradiction {
    const char *when;
    const char *also; /**< and this holds; NULL: always */
    const char
        *without;      /**< it does not hold with this; NULL: it always does */
    const char *with;  /**< then this must not be given … */
    const char *needs; /**< … or this must */
    bool
        is_light; /**< of data, learning rates or checkpoints: the job takes the
                        same memory where a fork lets it go on */
} me_flag_contradiction;

/** @name The tables; each ends with a NULL condition
 *  @{ */
/** Of the command line alone. */
extern const me_flag_contradiction me_contradictions_of_arguments[];
/** Of the configurations that are made of it. */
extern const me_flag_contradiction me_contradictions_of_configs[];
/** @} */

#endif /* MEMEST_CONFIG_MEGATRON_FLAG_CONTRADICTIONS_H */

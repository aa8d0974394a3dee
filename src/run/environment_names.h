/**
 * @file
 * The variables that PyTorch, Transformer Engine, NCCL, CUDA and Megatron-LM
 * read of a job's environment, and what each is to memory.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_RUN_ENVIRONMENT_NAMES_H
#define MEMEST_RUN_ENVIRONMENT_NAMES_H

#include "model/effect.h"
#include "model/job.h"

#include <stdbool.h>
#include <stddef.h>

typedef enum me_variable_kind {
    ME_VARIABLE_NO_EFFECT,
    ME_VARIABLE_ASKED, /**< takes no memory, and rules of a job ask for it */
    ME_VARIABLE_NOT_MODELLED,
    ME_VARIABLE_MODELLED, /**< environment.c or the launch command's reader */
    ME_VARIABLE_NCCL      /**< what me_nccl_setup_set() knows is modelled */
} me_variable_kind;

/** What holds for some variables. All texts are static. */
typedef struct me_variable_rule {
    const char *names;   /**< blanks between them; `*` ends a beginning */
    const char *neutral; /**< values without effect, bars between them */
    me_variable_kind kind;
    const char *note; /**< the reason, one phrase */
    me_effect effect; /**< of what is not modelled */
    /** Is a value what the job says by itself, of one of the names; NULL: no. */
    bool (*is_said)(const me_config *config, const char *name,
                    const char *value);
    const char *deterministic; /**< what --deterministic-mode sets it to where
                                    nobody does, and memest reckons with there;
                                    NULL: nothing */
} me_variable_rule;

/**
 * The first rule that @p name matches, or NULL: of another program's. Local.
 */
const me_variable_rule *me_variable_rule_find(const char *name);

/** All rules, for tests. Local. */
const me_variable_rule *me_variable_rules(size_t *count_out);

#endif /* MEMEST_RUN_ENVIRONMENT_NAMES_H */

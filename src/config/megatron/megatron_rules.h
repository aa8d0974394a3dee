/**
 * @file
 * How Megatron-LM's jobs are derived and checked, for the files of this folder:
 * what megatron_rules.c puts together.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_MEGATRON_MEGATRON_RULES_H
#define MEMEST_CONFIG_MEGATRON_MEGATRON_RULES_H

#include "config/config_private.h"
#include "config/framework.h"

/** Say which values are taken, of those that move the numbers most, where nothing
 *  gives them. */
me_status me_config_assume_defaults(me_config *config,
                                    me_diag *diag) ME_MUST_CHECK;

/** Fill in derived values: all but the checks of me_config_finish(). */
me_status me_config_derive(me_config *config, int32_t num_processes,
                           me_diag *diag) ME_MUST_CHECK;

/** Whose modules, which core attention and which optimizer, unless given. */
void me_config_derive_implementation(me_config *config);

/** Which core attention a job has on the card that takes most, unless given; the
 *  attention's rules refuse it where there is none. */
void me_config_derive_attention(me_config *config);

/**
 * Take the attention that Transformer Engine's rules give the job on its card.
 *
 * @param capability  ten times the card's compute capability
 * @return ME_OK; ME_ERR_CONFIG where none is left
 */
me_status me_config_settle_attention(me_config *config, uint64_t capability,
                                     me_diag *diag) ME_MUST_CHECK;

/** Were sizes of this version of Transformer Engine measured? */
bool me_config_has_measured_te(const me_config *config);

/** Say that Megatron-LM itself stops at Transformer Engine's cross entropy. */
me_status me_config_assume_te_cross_entropy(me_config *config,
                                            me_diag *diag) ME_MUST_CHECK;

/** Say what times of Transformer Engine's modules are, where they are taken. */
me_status me_config_assume_te_times(me_config *config,
                                    me_diag *diag) ME_MUST_CHECK;

/** Find which code path offloads layers, and say what is taken for granted of the
 *  environment. */
me_status me_config_assume_offload(me_config *config,
                                   me_diag *diag) ME_MUST_CHECK;

/** Does `--cuda-graph-modules` name this one? Names are set apart by spaces or
 *  commas, and one may begin another. */
bool me_config_captures(const me_config *config, const char *module);

/** Say what is taken for granted of user buffers. */
me_status me_config_assume_tp_overlap(me_config *config,
                                      me_diag *diag) ME_MUST_CHECK;

/** A check of values that depend on each other, of a job with its values
 *  derived. */
typedef me_status me_rule(const me_config *config, me_diag *diag);

/** A contradiction, and what is wrong with an option. */
typedef struct me_contradiction {
    bool is_there;
    const char *what; /**< follows on the option */
} me_contradiction;

/** The first that is there fails with @p status. */
me_status me_refuse_first(const me_contradiction *list, size_t count,
                          me_status status, const char *option,
                          me_diag *diag) ME_MUST_CHECK;

#define ME_REFUSE_FIRST(list, status, option, diag)                            \
    me_refuse_first(list, sizeof(list) / sizeof *(list), status, option, diag)

/** @name Rules, in the order in which they are asked; each list ends with NULL
 *  @{ */
extern me_rule *const me_size_rules[];
extern me_rule *const me_model_rules[]; /**< of multi-latent attention and
                                             multi-token prediction */
extern me_rule *const me_optimizer_rules[];
extern me_rule *const me_sharding_rules[]; /**< of FSDP */
extern me_rule *const me_te_rules[];
extern me_rule *const me_attention_rules[]; /**< of Transformer Engine's core
                                                 attention */
extern me_rule *const me_fp8_rules[];
extern me_rule *const me_offload_rules[]; /**< of activations on the host */
extern me_rule *const me_tp_overlap_rules[];
extern me_rule *const me_graph_rules[];
extern me_rule *const me_context_rules[];
extern me_rule *const me_group_rules[]; /**< of process groups that are not
                                             modelled */
/** Of dense jobs too: that they ask for no experts, and that the grid of ranks
 *  that parallel_state.py makes for experts can be made. */
extern me_rule *const me_expert_grid_rules[];
extern me_rule *const me_moe_rules[];     /**< of jobs with experts alone */
extern me_rule *const me_router_rules[];  /**< of those as well */
extern me_rule *const me_routing_rules[]; /**< of all: which routing it is */
extern me_rule
    *const me_pipeline_rules[]; /**< of splitting layers over stages */
/** @} */

/** Which losses a router makes and which are logged. Local. */
void me_config_derive_router(me_moe_options *moe);

/** What moe.routing says. Local. */
void me_config_derive_routing(me_moe_options *moe);

/** Routing is data; what is taken for it has to be said. */
me_status me_config_assume_routing(me_config *config,
                                   me_diag *diag) ME_MUST_CHECK;

/** Does the job name a way of balancing loads that is not modelled? Local. */
bool me_config_has_quantile_balancing(const me_config *config);

/** Is the job one of flags, on which Megatron-LM runs validate_args()? Trainers
 *  that have files of their own do not. Local. */
bool me_megatron_validates(const me_config *config);

/** @p a, which is called @p a_name, must be a multiple of @p b. */
me_status me_divides(const char *b_name, uint64_t b, const char *a_name,
                     uint64_t a, me_diag *diag) ME_MUST_CHECK;

/** Say where the vocabulary comes from, if a tokenizer decides it
 *  (megatron/tokenizer_flags.c). */
me_status me_vocabulary_note(me_config *config, me_diag *diag) ME_MUST_CHECK;

/** What options are about; see needs.c. */
extern const me_option_need me_megatron_needs[];

/** List the option values that are not modelled; see notes.c. */
me_status me_config_note(me_config *config, me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_CONFIG_MEGATRON_MEGATRON_RULES_H */

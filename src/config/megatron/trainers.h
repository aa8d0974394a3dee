/**
 * @file
 * Arguments of those who train with Megatron-LM's core and have a command of their
 * own: ms-swift's `megatron sft`, verl's Hydra overrides, slime's flags around
 * Megatron-LM's. What of them names Megatron-LM's is read; the model comes from
 * the name or folder that they give. Of reinforcement learning the step that
 * trains is answered, and what stands beside it is named.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_MEGATRON_TRAINERS_H
#define MEMEST_CONFIG_MEGATRON_TRAINERS_H

#include "base/str.h"
#include "config/config.h"
#include "config/megatron/megatron_leaves.h"

/** @name Readers, as me_launch_script.read
 *  @return ME_OK; ME_ERR_CONFIG, ME_ERR_SYNTAX or ME_ERR_UNSUPPORTED with the word
 *          and what would be right; ME_ERR_NOMEM
 *  @{ */
/** `megatron sft|pt|rlhf --model … --key value …`; @p argv begins at the
 *  subcommand. Local. */
me_status me_swift_read(me_config *config, int argc, const char *const *argv,
                        me_diag *diag) ME_MUST_CHECK;

/** `python -m verl.trainer.main_ppo key.key=value …`. Local. */
me_status me_verl_read(me_config *config, int argc, const char *const *argv,
                       me_diag *diag) ME_MUST_CHECK;

/** `python train.py --actor-num-nodes … --num-layers …` of slime and miles.
 *  Local. */
me_status me_slime_read(me_config *config, int argc, const char *const *argv,
                        me_diag *diag) ME_MUST_CHECK;

/** `nemo llm pretrain --factory NAME key=value …`; @p argv begins at `llm`.
 *  Local. */
me_status me_nemo_read(me_config *config, int argc, const char *const *argv,
                       me_diag *diag) ME_MUST_CHECK;

/** `run_recipe.py --recipe NAME key=value …` of Megatron-Bridge. Local. */
me_status me_bridge_read(me_config *config, int argc, const char *const *argv,
                         me_diag *diag) ME_MUST_CHECK;

/** `primus/cli/main.py train pretrain --config FILE --key value` of Primus, and
 *  `--config-path DIR --config-name NAME key.key=value` of NeMo 1's scripts; what
 *  starts them says the ranks, else the file. Local. */
me_status me_yaml_command_read(me_config *config, int argc,
                               const char *const *argv,
                               me_diag *diag) ME_MUST_CHECK;

/** The same of FlagScale's run.py, which starts the ranks that the file says.
 *  Local. */
me_status me_flagscale_read(me_config *config, int argc,
                            const char *const *argv,
                            me_diag *diag) ME_MUST_CHECK;
/** @} */

/** @name For those who read
 *  @{ */
/**
 * Read the model that a trainer names, unless the job has one already: a folder
 * with config.json, a model in the Hub's cache, or one that is known by name,
 * which the job says. Local.
 *
 * @param flag         that names it, for messages
 * @param is_file_out  set where a model was read: was it its own config.json?
 *                     NULL: not asked for
 * @return as me_config_read_file(); ME_ERR_CONFIG where there is none
 */
me_status me_trainer_read_model(me_config *config, const char *flag,
                                const char *name, me_diag *diag,
                                bool *is_file_out) ME_MUST_CHECK;

/**
 * As me_trainer_read_model() where the model has no files here: by its name,
 * which the job then says. Local.
 *
 * @return as me_config_read_file(); ME_ERR_CONFIG for a name that nobody knows;
 *         ME_ERR_UNSUPPORTED for one of a family that is not modelled
 */
me_status me_trainer_read_named(me_config *config, const char *flag,
                                const char *name, me_diag *diag) ME_MUST_CHECK;

/**
 * Read the model of configs/models that has the shapes of @p name. Local.
 *
 * @param model_out  its name is appended; empty: none is known, nothing was read
 * @return as me_config_read_file()
 */
me_status me_trainer_read_known(me_config *config, const char *name,
                                me_diag *diag, me_str *model_out) ME_MUST_CHECK;

/** Nodes times processes of a node, each of at most 1 << 20, as
 *  parallel.world_size. @return as me_config_set() */
me_status me_trainer_set_ranks(me_config *config, uint64_t nodes,
                               uint64_t per_node, me_diag *diag) ME_MUST_CHECK;

/** Leaves that a trainer's arguments are made into. */
typedef struct me_leaf_list {
    me_arena *arena;
    me_yaml yaml;
} me_leaf_list;

/** @return ME_OK, ME_ERR_NOMEM; the arena is to be destroyed in either case */
me_status me_leaf_list_init(me_leaf_list *list, me_diag *diag) ME_MUST_CHECK;

/**
 * Add a leaf; texts are copied. Local.
 *
 * @param n_values  more than one: a list
 * @param where     borrowed
 */
me_status me_leaf_list_add(me_leaf_list *list, const char *path,
                           const char *const *values, int n_values,
                           const char *where, me_diag *diag) ME_MUST_CHECK;

/** As me_leaf_list_add(), of a number. */
me_status me_leaf_list_add_number(me_leaf_list *list, const char *path,
                                  uint64_t number, const char *where,
                                  me_diag *diag) ME_MUST_CHECK;

/** A key that a trainer sets where a condition holds. */
typedef struct me_leaf_setting {
    bool holds;
    const char *key;
    const char *value;
    bool gives_way; /**< to what the arguments say; else it goes over them */
} me_leaf_setting;

/**
 * Add what a trainer sets, row by row. Local.
 *
 * @return as me_leaf_list_add()
 */
me_status me_leaf_list_settle(me_leaf_list *list, const me_leaf_setting *rows,
                              size_t count, const char *where,
                              me_diag *diag) ME_MUST_CHECK;

/** The last leaf of that path, or NULL. */
const me_yaml_leaf *me_leaf_list_find(const me_leaf_list *list,
                                      const char *path);

/** Its value as a whole number, or @p other. */
uint64_t me_leaf_list_number(const me_leaf_list *list, const char *path,
                             uint64_t other);

/**
 * Refuse values of these paths that are neither whole numbers nor null. Local.
 *
 * @param paths  end with NULL
 * @return ME_OK; ME_ERR_CONFIG naming path and value
 */
me_status me_leaf_list_check_numbers(const me_leaf_list *list,
                                     const char *const *paths,
                                     me_diag *diag) ME_MUST_CHECK;

/** Add what the model has and flags of Megatron-LM's ask for, unless the
 *  arguments say it: experts, latent attention. */
me_status me_leaf_list_add_model(me_leaf_list *list, const me_config *config,
                                 const char *where,
                                 me_diag *diag) ME_MUST_CHECK;
/** @} */

#endif /* MEMEST_CONFIG_MEGATRON_TRAINERS_H */

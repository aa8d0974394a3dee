/**
 * @file
 * The flags of a Megatron-LM training script, read into a job.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_MEGATRON_MEGATRON_ARGUMENTS_H
#define MEMEST_CONFIG_MEGATRON_MEGATRON_ARGUMENTS_H

#include "config/config.h"
#include "config/flags.h"

/** A flag as it was given. */
typedef struct me_flag_use {
    me_flag flag; /**< its rule is NULL if nobody knows it */
    const char *name;
    const char *const *values; /**< borrowed */
    int n_values;
    const char *word;   /**< the first one as written, where values has
                            it in another form; NULL: as it is */
    const char *joined; /**< the value of `--flag=value` */
    bool is_repeated;   /**< a later use of the same flag wins */
    const me_flag_spelling *spelling; /**< a fork's word was read; or NULL */
} me_flag_use;

/** All flags of one command. */
typedef struct me_flag_uses {
    me_flag_use *uses;
    int count;
} me_flag_uses;

/**
 * Split a command line into flags and check their values. Local.
 *
 * @param config    keeps copied text
 * @param uses_out  to be given back with me_free() of its `uses`, also on
 *                  failure
 * @return ME_OK; ME_ERR_SYNTAX or ME_ERR_CONFIG naming flag, value and what
 *         would be right; ME_ERR_NOMEM
 */
me_status me_flag_uses_read(me_config *config, int argc,
                            const char *const *argv, me_diag *diag,
                            me_flag_uses *uses_out) ME_MUST_CHECK;

/**
 * Find the vocabulary of the tokenizer that the flags name: in its files, by its
 * name, or the usual one of its type. What it is counted to counts, whatever
 * `--vocab-size` says: as in Megatron-LM only NullTokenizer looks at that. Local.
 *
 * @return ME_OK; failures of the tokenizer's files; ME_ERR_NOMEM
 */
me_status me_vocabulary_settle(me_config *config, const me_flag_uses *uses,
                               me_diag *diag) ME_MUST_CHECK;

/** The use of @p name that counts, or NULL. Local. */
const me_flag_use *me_flag_use_find(const me_flag_uses *uses, const char *name);

/**
 * Does one of the conditions hold, as in me_flag_rule.needs? Local.
 *
 * @param needs  NULL: always
 */
bool me_flag_needs_hold(const me_flag_uses *uses, const char *needs);

/** Are all values of a use among its rule's neutral ones? Local. */
bool me_flag_use_is_neutral(const me_flag_use *use);

/**
 * Flags that Megatron-LM itself stops at (flag_contradictions.c). Where a fork's or
 * an earlier version's job may go on and takes no other memory, that is assumed of
 * one. Local.
 *
 * @return ME_OK; ME_ERR_CONFIG naming the flags; ME_ERR_NOMEM
 */
me_status me_megatron_check_flags(me_config *config, const me_flag_uses *uses,
                                  me_diag *diag) ME_MUST_CHECK;

/** @name Is a job's code a fork's or an earlier version's of Megatron-LM?
 *  (fork_signs.c); Local
 *  @{ */
/** The first sign of it stays.
 *  @param sign  copied
 *  @return ME_OK or ME_ERR_NOMEM */
me_status me_megatron_keep_sign(me_config *config, const char *sign,
                                me_diag *diag) ME_MUST_CHECK;
/** Keep a folder on the way to the script whose name says so, such as
 *  `Megatron-LM-core_v0.8.0`. @return as me_megatron_keep_sign() */
me_status me_megatron_look_at_folder(me_config *config, const char *path,
                                     me_diag *diag) ME_MUST_CHECK;
/** Keep the first flag or value that core_v0.19.0 does not have and a fork has.
 *  @return as me_megatron_keep_sign() */
me_status me_megatron_look_at_flags(me_config *config, const me_flag_uses *uses,
                                    me_diag *diag) ME_MUST_CHECK;
/** core_v0.19.0 would stop, and the job takes the same memory where it goes on: of
 *  a job with a sign that is assumed.
 *  @param stops  what it stops at
 *  @return ME_OK; ME_ERR_CONFIG with @p stops; ME_ERR_NOMEM */
me_status me_megatron_pass(me_config *config, const char *stops,
                           me_diag *diag) ME_MUST_CHECK;
/** @} */

/**
 * Of a number of weight shards, as how many ranks have them by themselves. Local.
 *
 * @param ranks_out  set where it is one
 * @return the flag that says so, whether it is given or not; NULL: @p use is none
 */
const char *me_megatron_shard_ranks(const me_flag_use *use,
                                    const me_flag_uses *uses,
                                    uint64_t *ranks_out);

/**
 * Is this a number of weight shards that is that of tensor ranks, which is what
 * resolve_tensor_parallel_weight_shards() (model_parallel_config.py) takes where
 * none is given? Local.
 */
bool me_megatron_shards_no_more(const me_flag_use *use,
                                const me_flag_uses *uses);

/** Does an option have all values of the flag? Local. */
bool me_megatron_takes_list(const me_flag_use *use);

/**
 * Refuse flags that Megatron-LM's parser does not know, unless the job takes
 * unknown ones, and those that it stops at. Local.
 *
 * @return ME_OK; ME_ERR_CONFIG naming the flag and what would be right
 */
me_status me_megatron_refuse_flags(const me_config *config,
                                   const me_flag_uses *uses,
                                   me_diag *diag) ME_MUST_CHECK;

/**
 * Set the options that several flags together decide: batches that change, what
 * turns the distributed optimizer on, what a checkpoint gathers. Local.
 *
 * @return ME_OK, ME_ERR_CONFIG
 */
me_status me_megatron_settle(me_config *config, const me_flag_uses *uses,
                             me_diag *diag) ME_MUST_CHECK;

/** The part of it that is about context parallelism. */
me_status me_megatron_settle_context(me_config *config,
                                     const me_flag_uses *uses,
                                     me_diag *diag) ME_MUST_CHECK;

/** The file of `--tp-comm-overlap-cfg`. Local.
 *
 * @return ME_OK; failures of the file, ME_ERR_CONFIG naming file and line
 */
me_status me_megatron_settle_overlap(me_config *config,
                                     const me_flag_uses *uses,
                                     me_diag *diag) ME_MUST_CHECK;

/** The part of it that is about forks and earlier versions. */
me_status me_megatron_settle_forks(me_config *config, const me_flag_uses *uses,
                                   me_diag *diag) ME_MUST_CHECK;

/**
 * Say which modelled flags change nothing, since the flag that they are about
 * was not given: one assumption for all that lack the same. Local.
 *
 * @return ME_OK, ME_ERR_NOMEM
 */
me_status me_megatron_note_needless(me_config *config, const me_flag_uses *uses,
                                    me_diag *diag) ME_MUST_CHECK;

/**
 * Read Megatron-LM's flags: set options, and put each flag into one of the
 * three lists of the job. Local.
 *
 * @return as me_flag_uses_read()
 */
me_status me_megatron_read(me_config *config, int argc, const char *const *argv,
                           me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_CONFIG_MEGATRON_MEGATRON_ARGUMENTS_H */

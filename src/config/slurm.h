/**
 * @file
 * What Slurm's options and variables say of GPUs: `--gres=gpu:h100:8`,
 * `--gpus-per-node=h100:8`, SLURM_GPUS_ON_NODE. sbatch(1), srun(1).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_SLURM_H
#define MEMEST_CONFIG_SLURM_H

#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    ME_SLURM_TYPE = 64,
    ME_SLURM_EITHER =
        '|' /**< between types of which nobody knows which it is */
};

/** SLURM_JOB_PARTITION of a batch script that names none: memest asks no
 *  slurmctld which is the default. */
#define ME_SLURM_NO_PARTITION "batch"

/** GPUs as they are asked for; all zero: not said. */
typedef struct me_slurm_gpus {
    char type[ME_SLURM_TYPE];  /**< as Slurm's administrators call it, or "" */
    char other[ME_SLURM_TYPE]; /**< another beside it, `h100:4,a100:4`; or "" */
    uint64_t count;            /**< of all */
} me_slurm_gpus;

/**
 * Read `[gpu:][TYPE:]COUNT`, or a list of such with commas between them, of
 * which those of GPUs count. Local.
 *
 * @param needs_gpu  only what begins with `gpu` is of GPUs, as in --gres
 * @return false: nothing of GPUs, or not of this form
 */
bool me_slurm_gpus_read(const char *text, bool needs_gpu,
                        me_slurm_gpus *gpus_out);

/** What `--tres-per-task` says of GPUs, `gres/gpu:1` among others: from its `gpu`
 *  on; NULL: nothing. Local. */
const char *me_slurm_tres_gpus(const char *text);

/**
 * Read the size of `--mem` and its like, `512G`: K, M, G or T, without one of
 * them MiB, as in SLURM_MEM_PER_NODE. Local.
 *
 * @param bytes_out  0: all that a node has, of which nobody says how much it is
 * @return false: it is no such size
 */
bool me_slurm_memory_read(const char *text, uint64_t *bytes_out);

/** A node's memory for the job, as one of three ways says it; borrowed texts, NULL:
 *  not said. */
typedef struct me_slurm_memory {
    const char *of_node; /**< all of a node's */
    const char *of_gpu;  /**< of each GPU's of it */
    const char *of_cpu;  /**< of each CPU's of it */
} me_slurm_memory;

/**
 * Bytes of a node's memory for the job. Local.
 *
 * @param gpus  the job's of a node; 0: not known
 * @param cpus  likewise
 * @return 0: nobody says, or says a size that Slurm does not know, or all of it
 */
uint64_t me_slurm_memory_of_node(const me_slurm_memory *said, uint64_t gpus,
                                 uint64_t cpus);

/**
 * The file of configs/cards that a type means: `h100`, `a100_80gb`,
 * `nvidia_h100_80gb_hbm3`. Local.
 *
 * @param name_out  appended to: the card's name, or the type itself where none
 *                  or several have it
 * @return true: exactly one has it
 */
bool me_slurm_card_find(const char *type, me_str *name_out);

/**
 * The type that a constraint such as `h100&ib` means: the one of its features
 * that is the name of a card, or of several, such as `a100`. Local.
 *
 * @param type_out  "": none is; of features of several cards all, with
 *                  ME_SLURM_EITHER between them
 * @return ME_OK, ME_ERR_NOMEM
 */
me_status me_slurm_constraint_read(const char *text,
                                   char type_out[ME_SLURM_TYPE]) ME_MUST_CHECK;

#endif /* MEMEST_CONFIG_SLURM_H */

/**
 * @file
 * Shards whose owners run one program but for the names of modules: what tells
 * which of a stage's classes of shards these are, and the modules.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_MODEL_SHARD_KIN_H
#define MEMEST_MODEL_SHARD_KIN_H

#include <stdint.h>

/**
 * The kin of a stage's classes of shards. Those of one kin are parts of the same
 * sizes, of parameters that programs treat alike, in modules that are as many and
 * come in the same order. All zero: each class is a kin of its own.
 */
typedef struct me_shard_kin {
    int32_t *kin;      /**< of each class, a number; owned */
    uint32_t *begin;   /**< of each class, where its modules begin, and at
                            n_classes where the last one's end; owned */
    uint32_t *modules; /**< of each part, as the program's module tree numbers
                            them, class by class; owned */
    int32_t n_classes;
} me_shard_kin;

/** Of each part of a simulated shard the module, and what it is in another shard
 *  of that kin. Both borrowed. */
typedef struct me_shard_modules {
    const uint32_t *from;
    const uint32_t *to;
    uint32_t count; /**< 0: the shard is the simulated one */
} me_shard_modules;

#endif /* MEMEST_MODEL_SHARD_KIN_H */

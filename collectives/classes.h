/**
 * @file
 * Classes of ranks that a replay cannot tell apart: equal programs, groups
 * with members of the same classes, and partners of the same classes. It is
 * the coarsest such partition that is finer than the programs, found by
 * refining them until nothing splits any more.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_COLLECTIVES_CLASSES_H
#define MEMEST_COLLECTIVES_CLASSES_H

#include "collectives/roster.h"

typedef struct me_classes {
    int count;
    int *class_of; /**< of each rank; numbered in the order of first ranks */
    int *first;    /**< lowest rank of each class */
    /** Of each first member: what distinguishes its group's set of classes. */
    uint64_t *set_of[ME_GROUP_COUNT];
} me_classes;

/** Find the classes. @return ME_OK, ME_ERR_NOMEM. Local. */
me_status me_classes_init(const me_roster *roster, me_classes *classes_out);

/** Give back what the classes hold; all zero is allowed. Local. */
void me_classes_fini(me_classes *classes);

#endif /* MEMEST_COLLECTIVES_CLASSES_H */

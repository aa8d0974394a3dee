/**
 * @file
 * The folders below which memest's own files are looked for (`configs/…`): the
 * working directory, the data of the installation that this code is part of,
 * and what it was built from.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_BASE_DATA_ROOTS_H
#define MEMEST_BASE_DATA_ROOTS_H

#include "base/str.h"

#include <stddef.h>

enum {
    ME_DATA_ROOTS_MAX = 4
};

/** Paths in the order of the search; the first is "", the working directory. */
typedef struct me_data_roots {
    me_str path[ME_DATA_ROOTS_MAX];
    size_t count;
} me_data_roots;

/**
 * Find them. An installation is found from where the running code lies, the
 * shared library's file or the program's, so that it can be moved. Local.
 *
 * @return to be given back with me_data_roots_fini(); a path without memory
 *         has kept its failure, the first one also that of a folder that could
 *         not be looked at
 */
me_data_roots me_data_roots_find(void);

/** Give back. Local. */
void me_data_roots_fini(me_data_roots *roots);

#endif /* MEMEST_BASE_DATA_ROOTS_H */

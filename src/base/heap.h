/**
 * @file
 * What the C library does with memory that is given back.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_BASE_HEAP_H
#define MEMEST_BASE_HEAP_H

/**
 * From now on keep up to 64 MiB that were given back for the next request, where
 * the C library can be told so: each simulated rank asks for what the one before
 * it had. Handing it to the system and back clears every page anew, which took 7 %
 * of 1,024 ranks with counted tokens. For the program; a library's user decides
 * himself. Before other threads begin.
 */
void me_heap_keep(void);

#endif /* MEMEST_BASE_HEAP_H */

/**
 * @file
 * Where a command stands in its script: the processes above it, each by its number.
 * A shell starts its commands one after the other, those in the background too, so
 * that numbers rise in the order of the script whoever of them tells first.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SCRIPT_ORDER_H
#define MEMEST_SCRIPT_ORDER_H

#include "base/str.h"

#include <stdint.h>

enum {
    ME_ORDER_DEPTH_MAX = 32
};

/** Numbers from the script's shell down to the command; all zero: not known. */
typedef struct me_order {
    uint32_t numbers[ME_ORDER_DEPTH_MAX];
    uint32_t depth;
} me_order;

/** Append the place of this process, `3.12.13`; of a process whose parents ended
 *  before it as far as there are some. */
void me_order_append(me_str *text);

/** The parent of a process; 0: there is none that can be seen. */
uint32_t me_order_parent(uint32_t process);

/** Read such a place; what is none is at the beginning. */
me_order me_order_read(const char *text);

/** Less than 0: @p a stands before @p b; 0: nobody knows. */
int me_order_compare(const me_order *a, const me_order *b);

#endif /* MEMEST_SCRIPT_ORDER_H */

/**
 * @file
 * Where the driver had put the segments of a recording, read off the
 * recording. In PyTorch's recordings an id stands for an address, so when an
 * id comes back it says which of several equal blocks was taken, and with
 * that which segment lies lower. That matters only between blocks of equal
 * size, where the pool takes the lowest; what NCCL and others had asked of the
 * driver decides, and no recording holds it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_ALLOC_REPLAY_ORDER_H
#define MEMEST_ALLOC_REPLAY_ORDER_H

#include "alloc/pool.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct me_replay_order me_replay_order;

/** Nothing is known yet; NULL without memory. */
me_replay_order *me_replay_order_create(void);

/** Give it back; NULL is allowed. */
void me_replay_order_destroy(me_replay_order *order);

/** Begin a pass over the recording: what was learned so far decides in the
 * pool that @p options will make. */
void me_replay_order_begin(me_replay_order *order, me_pool_options *options);

/** The next allocation is of this id. */
void me_replay_order_expect(me_replay_order *order, const char *id,
                            size_t length);

/**
 * It has been served. Local.
 *
 * @return whether that can have been so; if not, a pass with what was learned
 *         is due
 */
bool me_replay_order_agrees(me_replay_order *order, const char *id,
                            size_t length);

/** Whether another pass can do better; if not, go without. */
bool me_replay_order_has_learned(const me_replay_order *order);

/** Whether the recording said anything that the driver's model does not. */
bool me_replay_order_is_used(const me_replay_order *order);

/** The ids are no addresses, or segments went back: go without. */
void me_replay_order_give_up(me_replay_order *order);

#endif /* MEMEST_ALLOC_REPLAY_ORDER_H */

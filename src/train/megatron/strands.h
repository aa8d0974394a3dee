/**
 * @file
 * Data-parallel ranks that one program stands for (tensor/strand.h): under the
 * distributed optimizer they step other shards, and all else is the same. Of what
 * optimizers hold a strand has shards of its own alone. The program runs as the
 * first strand does, and the parts that work on shards as each in turn.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_MEGATRON_STRANDS_H
#define MEMEST_TRAIN_MEGATRON_STRANDS_H

#include "train/megatron/megatron.h"

struct me_trainer;

/** Can ranks of a job be strands? With the distributed optimizer of plain DDP and
 *  Transformer Engine's kernels, whose temporaries are of one size whatever is
 *  stepped. Local. */
bool me_megatron_can_have_strands(const me_config *config);

/** How many times the parts run that work on shards. Local. */
int32_t me_strands_count(const struct me_trainer *t);

/** The shards of the other strands; the first one's are collected. Where strands
 *  differ in more than sizes and numbers of shards the program fails, and has to be
 *  run for each rank (me_megatron_spec.must_run_apart). */
void me_strands_collect(struct me_trainer *t);

/** Let go of what the other strands have. */
void me_strands_destroy(struct me_trainer *t);

/** The part of strand @p strand begins, if there are several: optimizers have its
 *  shards. */
void me_strand_begin(struct me_trainer *t, int32_t strand);

/** Its part ends. */
void me_strand_end(struct me_trainer *t);

#endif /* MEMEST_TRAIN_MEGATRON_STRANDS_H */

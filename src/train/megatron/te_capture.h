/**
 * @file
 * When, between two iterations, layers are captured as CUDA graphs of Transformer
 * Engine, of which micro-batches and in which order (training.py, train();
 * TECudaGraphHelper).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_MEGATRON_TE_CAPTURE_H
#define MEMEST_TRAIN_MEGATRON_TE_CAPTURE_H

struct me_trainer;

/** The layers are captured; from now on they are replayed. */
void me_te_capture(struct me_trainer *t);

#endif /* MEMEST_TRAIN_MEGATRON_TE_CAPTURE_H */

/**
 * @file
 * Which kernel cuDNN 9.19 took on an H200 for the backward of a norm, by its rows
 * and columns: 4,500 shapes. A letter is a kernel of te_cudnn_norm.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_OPS_TE_CUDNN_NORM_TABLES_H
#define MEMEST_OPS_TE_CUDNN_NORM_TABLES_H

#include "ops/te_norm.h"

/** By rows 64, 80, 96, 112, 128, 160 …: four to twice as many; '.': not
 *  measured. */
typedef struct me_te_measured_norm {
    uint32_t columns;
    const char *kernels; /**< bfloat16's where it is of both half types */
} me_te_measured_norm;

/** All that were measured of a call's type, by rising columns; 0 columns end them.
 *  Static. */
const me_te_measured_norm *me_te_measured_norms(const me_te_norm_call *call);

/** The kernels of the call's type in a row of these. Static. */
const char *me_te_measured_norm_kernels(const me_te_norm_call *call,
                                        const me_te_measured_norm *norm);

#endif /* MEMEST_OPS_TE_CUDNN_NORM_TABLES_H */

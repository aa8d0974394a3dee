/**
 * @file
 * Decompositions of square float32 matrices off the tape, and the workspaces
 * that cuSOLVER asks PyTorch's allocator for (aten/native/BatchLinearAlgebra.cpp,
 * cuda/linalg/BatchLinearAlgebraLib.cpp).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_OPS_DECOMPOSE_H
#define MEMEST_OPS_DECOMPOSE_H

#include "tensor/tensor.h"

/** Device workspaces of cuSOLVER for a matrix of (n, n) float32. */
typedef enum me_solver {
    ME_SOLVER_SYEVD, /**< eigenvalues and eigenvectors */
    ME_SOLVER_SYEVJ, /**< the same of 32 to 512 rows */
    ME_SOLVER_GEQRF, /**< QR decomposition */
    ME_SOLVER_ORGQR, /**< its Q, made explicit */
    ME_SOLVERS
} me_solver;

/** Bytes of a workspace of a matrix of @p n rows; docs/accounting.md says of
 *  which sizes they were measured. */
uint64_t me_solver_bytes(me_solver solver, uint64_t n);

/**
 * `torch.linalg.eigh(x)`: eigenvectors (n, n), and eigenvalues.
 *
 * @param values_out  (n); dropped by the caller
 */
me_tensor *me_eigh(me_engine *e, uint64_t n, me_tensor **values_out);

/**
 * `torch.linalg.qr(x)`: Q (n, n), and R.
 *
 * @param r_out  (n, n); dropped by the caller
 */
me_tensor *me_qr(me_engine *e, uint64_t n, me_tensor **r_out);

#endif /* MEMEST_OPS_DECOMPOSE_H */

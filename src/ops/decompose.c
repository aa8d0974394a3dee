/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/decompose.h"

#include "base/size.h"
#include "tensor/launch.h"

/** A workspace of so many numbers of four bytes: square·n² + line·n + fixed. */
typedef struct workspace {
    uint64_t square;
    uint64_t line;
    uint64_t fixed;
} workspace;

enum {
    JACOBI_ROWS = 32, /**< of a block of syevj's */
    PANEL = 128,      /**< columns of a panel of orgqr's */
    GEQRF_LEAST = 256 /**< fewer rows take as much */
};

/** syevj: the matrix, a row, a square for each block of rows and one more, and
 *  what says how pairs of blocks meet. */
static workspace of_jacobi(uint64_t n)
{
    const uint64_t blocks = n / JACOBI_ROWS + (n % JACOBI_ROWS != 0);
    return (workspace){
        .square = 1,
        .line = 1,
        .fixed = (blocks + 1) * JACOBI_ROWS * JACOBI_ROWS +
                 4 * blocks * blocks + blocks,
    };
}

/** geqrf works on panels of 1,024 columns, orgqr on three of 128, or the whole of
 *  a smaller matrix and two. */
static workspace workspace_of(me_solver solver, uint64_t n)
{
    static const workspace large[ME_SOLVERS] = {
        [ME_SOLVER_SYEVD] = {4, 127, 32995},
        [ME_SOLVER_GEQRF] = {0, 1024, UINT64_C(1024) * 512 + 32},
        [ME_SOLVER_ORGQR] = {0, UINT64_C(3) * PANEL, PANEL * PANEL + 2 * PANEL},
    };
    return solver == ME_SOLVER_SYEVJ ? of_jacobi(n)
           : solver == ME_SOLVER_ORGQR && n < PANEL
               ? (workspace){1, 0, 2 * PANEL * PANEL + 2 * PANEL}
               : large[solver];
}

uint64_t me_solver_bytes(me_solver solver, uint64_t n)
{
    const workspace w = workspace_of(solver, n);
    const uint64_t rows =
        solver == ME_SOLVER_GEQRF ? me_max_u64(n, GEQRF_LEAST) : n;
    const uint64_t square = me_size_mul(w.square, me_size_mul(n, n));
    return me_size_mul(4, me_size_add(me_size_add(square, w.fixed),
                                      me_size_mul(w.line, rows)));
}

/** FLOPs of a decomposition of n rows over n³, rounded. */
enum {
    EIGH_FLOPS = 9,
    QR_FLOPS = 2
};

/** A routine: where it notes a failure, its workspace, the kernels. */
static void solve(me_engine *e, me_solver solver, uint64_t n, uint64_t flops)
{
    me_tensor *workspace_of_it =
        me_scratch(e, "cusolver.workspace", me_solver_bytes(solver, n));
    const uint64_t numel = me_size_mul(n, n);
    me_launch_kernel(e, ME_KERNEL_REDUCE,
                     me_size_mul(flops, me_size_mul(numel, n)),
                     me_size_mul(8, numel));
    me_drop(e, workspace_of_it);
}

/** _linalg_check_errors(): has any failed? */
static void check_errors(me_engine *e)
{
    me_tensor *any = me_scratch(e, "any", 1);
    me_temporary(e, "to", 1);
    me_launch_host_waits(e);
    me_drop(e, any);
}

/** linalg_eigh_cusolver(): Jacobi's method where that is faster. */
static me_solver eigh_solver(uint64_t n)
{
    return n >= 32 && n <= 512 ? ME_SOLVER_SYEVJ : ME_SOLVER_SYEVD;
}

me_tensor *me_eigh(me_engine *e, uint64_t n, me_tensor **values_out)
{
    me_tensor *vectors =
        me_empty(e, "linalg_eigh", ME_DTYPE_FLOAT32, ME_SHAPE(n, n));
    *values_out = me_empty(e, "linalg_eigh", ME_DTYPE_FLOAT32, ME_SHAPE(n));
    me_tensor *info = me_scratch(e, "zeros", 4);
    solve(e, eigh_solver(n), n, EIGH_FLOPS);
    check_errors(e);
    me_drop(e, info);
    return vectors;
}

me_tensor *me_qr(me_engine *e, uint64_t n, me_tensor **r_out)
{
    me_tensor *q = me_empty(e, "linalg_qr", ME_DTYPE_FLOAT32, ME_SHAPE(n, n));
    *r_out = me_empty(e, "linalg_qr", ME_DTYPE_FLOAT32, ME_SHAPE(n, n));
    me_tensor *tau = me_empty(e, "new_empty", ME_DTYPE_FLOAT32, ME_SHAPE(n));
    const me_solver solvers[] = {ME_SOLVER_GEQRF, ME_SOLVER_ORGQR};
    for (int i = 0; i < 2; i++) {
        me_tensor *info = me_scratch(e, "zeros", 4);
        solve(e, solvers[i], n, QR_FLOPS);
        me_drop(e, info);
    }
    me_drop(e, tau);
    return q;
}

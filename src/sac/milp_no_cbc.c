/* SPDX-License-Identifier: BSD-3-Clause */
#include "sac/milp.h"

me_status me_milp_solve(const me_milp *p, const me_milp_accuracy *accuracy,
                        me_diag *diag, double *values_out,
                        me_milp_result *result_out)
{
    (void)p;
    (void)accuracy;
    (void)values_out;
    (void)result_out;
    return me_fail(diag, ME_ERR_UNSUPPORTED,
                   "choosing checkpoints needs CBC, which is not built in: "
                   "install coinor-libcbc-dev and build memest again");
}

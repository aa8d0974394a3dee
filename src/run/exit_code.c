/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/exit_code.h"

int me_exit_code(me_status status)
{
    switch (status) {
    case ME_OK: return ME_EXIT_OK;
    case ME_ERR_CONFIG:
    case ME_ERR_SYNTAX:
    case ME_ERR_OVERFLOW:
    case ME_ERR_UNSUPPORTED:
    case ME_ERR_MISMATCH: return ME_EXIT_USAGE;
    case ME_ERR_NOMEM:
    case ME_ERR_IO:
    case ME_ERR_CAPACITY:
    case ME_ERR_MPI:
    case ME_ERR_INTERNAL:
    case ME_ERR_STOPPED: return ME_EXIT_INTERNAL;
    }
    return ME_EXIT_INTERNAL;
}

int me_exit_code_of(const me_verdict *verdict)
{
    if (me_verdict_lets_go(verdict)) {
        return ME_EXIT_OK;
    }
    return verdict->risk == ME_RISK_CANNOT_SAY ? ME_EXIT_CANNOT_SAY
                                               : ME_EXIT_DOES_NOT_FIT;
}

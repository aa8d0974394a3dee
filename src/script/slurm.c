/* SPDX-License-Identifier: BSD-3-Clause */
#include "script/act_private.h"

int me_guise_sbatch(int argc, char **argv)
{
    return me_guise_nothing(argc, argv);
}

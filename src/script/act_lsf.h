/**
 * @file
 * What `bsub` (LSF) sets for the command that it starts, by its options.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SCRIPT_ACT_LSF_H
#define MEMEST_SCRIPT_ACT_LSF_H

#include <stdint.h>

/** What its options have said; all zero: nothing. */
typedef struct me_lsf {
    uint64_t slots;     /**< `-n N`; 0: not said, or a range */
    uint64_t most_each; /**< of a host, `-R "span[ptile=N]"`; 0: not said */
} me_lsf;

/** Take an option of @p program, if that is bsub, and set LSB_DJOB_NUMPROC and
 *  LSB_MCPU_HOSTS to what is known.
 *  @param argv  the option, and words behind it */
void me_lsf_option(me_lsf *lsf, const char *program, int argc, char **argv);

#endif /* MEMEST_SCRIPT_ACT_LSF_H */

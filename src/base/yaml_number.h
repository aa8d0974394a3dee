/**
 * @file
 * Whole numbers of YAML 1.1 as PyYAML reads them, which are more than decimal
 * ones: 010 is 8, 0x10 is 16, 0b11 is 3, 1:10 is 70, 1_000 is 1000.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_BASE_YAML_NUMBER_H
#define MEMEST_BASE_YAML_NUMBER_H

#include <stdbool.h>

enum {
    ME_YAML_NUMBER = 32 /**< bytes of one in decimal */
};

/**
 * A plain scalar that PyYAML's resolver takes for a whole number, in decimal
 * (resolver.py and construct_yaml_int() of constructor.py). Local.
 *
 * @param number_out  with a `-` where it is below 0
 * @return false: it is none, or above 64 bits
 */
bool me_yaml_number(const char *text, char number_out[ME_YAML_NUMBER]);

/** What PyYAML's resolver takes for infinite or not-a-number, as Python prints it:
 *  "inf" of `.INF`; static. @return NULL: it is neither. Local. */
const char *me_yaml_not_finite(const char *text);

#endif /* MEMEST_BASE_YAML_NUMBER_H */

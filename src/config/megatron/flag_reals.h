/**
 * @file
 * Real numbers that Megatron-LM takes and options do not: not-a-number, infinity,
 * what is below 0 or too large. Memory depends on whether such a number turns
 * something on, which another one that an option takes does as well.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_MEGATRON_FLAG_REALS_H
#define MEMEST_CONFIG_MEGATRON_FLAG_REALS_H

/**
 * The value of a flag as its option takes it. Local.
 *
 * @param value  as flag_uses.c leaves a number: digits, "inf", "-inf" or "nan"
 * @param max    the largest that the option takes
 * @return @p value, or what stands for it; static
 */
const char *me_flag_real(const char *flag, const char *value, double max);

#endif /* MEMEST_CONFIG_MEGATRON_FLAG_REALS_H */

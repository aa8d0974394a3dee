/**
 * @file
 * Numbers as Python's int() and float() take them, for command lines that
 * Python's argparse reads: blanks around, a sign, single underscores between
 * digits, zeros in front, the decimal digits of any script.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_BASE_PYTHON_NUMBER_H
#define MEMEST_BASE_PYTHON_NUMBER_H

#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>

/**
 * Append @p text with ASCII's digits and blanks in place of other scripts', and a
 * question mark for all else beyond ASCII, as int() and float() see a text
 * (CPython's
 * _PyUnicode_TransformDecimalAndSpaceToASCII(), Unicode 15.0). Local.
 *
 * @param plain_out  its status is the caller's to look at
 */
void me_python_plain(const char *text, me_str *plain_out);

/**
 * Write what int() takes as me_parse_u64() does, with a `-` before it if it is
 * below 0: "1_000" is "1000". Local.
 *
 * @param number_out  appended to; its status is the caller's to look at
 * @return is it one?
 */
bool me_python_int(const char *text, me_str *number_out);

/**
 * As me_python_int(), what float() takes, as me_parse_double() does. Infinity
 * and not-a-number, which float() takes as well, are no numbers here. Local.
 */
bool me_python_float(const char *text, me_str *number_out);

/**
 * What float() takes beside: append "inf", "-inf" or "nan"; "+Infinity" and "1e400"
 * are "inf". Local.
 *
 * @return is it one of them?
 */
bool me_python_not_finite(const char *text, me_str *number_out);

#endif /* MEMEST_BASE_PYTHON_NUMBER_H */

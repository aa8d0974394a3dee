/**
 * @file
 * Numbers as people write them. Each parser takes the whole text or nothing:
 * no leading blanks, no trailing junk, no silent overflow, no locale.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_BASE_PARSE_H
#define MEMEST_BASE_PARSE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Decimal digits and nothing else. Local.
 *
 * @param text       the whole text
 * @param value_out  set on success only
 * @return ME_OK; ME_ERR_SYNTAX for anything but digits; ME_ERR_OVERFLOW when
 *         the number needs more than 64 bits
 */
me_status me_parse_u64(const char *text, uint64_t *value_out) ME_MUST_CHECK;

/**
 * A whole number as C's strtoull() with base 0 reads it, which libraries read
 * their variables by: blanks before it, a plus sign, 0x for base 16, a 0 for base
 * 8. Local.
 *
 * @param text       the whole text
 * @param value_out  set on success only
 * @return as me_parse_u64(); ME_ERR_SYNTAX for one below 0, too
 */
me_status me_parse_c_integer(const char *text,
                             uint64_t *value_out) ME_MUST_CHECK;

/**
 * Bytes: digits, then nothing or one of KiB, MiB, GiB, TiB. Units of 1000 are
 * refused, because half of the tools read them as 1024. Local.
 *
 * @param text       the whole text
 * @param bytes_out  set on success only
 * @return as me_parse_u64()
 */
me_status me_parse_bytes(const char *text, uint64_t *bytes_out) ME_MUST_CHECK;

enum {
    ME_LEAST_MEMORY_BYTES = 1 << 20 /**< of a card: less is a unit forgotten */
};

/**
 * The unit that a number of a card's memory lacks: "70" is GiB, and from 1024 on,
 * as nvidia-smi writes it, MiB. Local.
 *
 * @param text  the whole text
 * @return static; NULL: it is no number, 0, or at least ME_LEAST_MEMORY_BYTES
 */
const char *me_lacking_unit(const char *text);

/**
 * A decimal number such as `0.1`, `-2`, `1e-05`; neither hexadecimal nor
 * infinite. Correctly rounded for at most 15 digits and a power of ten within
 * 22, which every option keeps to. Local.
 *
 * @param text       the whole text
 * @param value_out  set on success only
 * @return ME_OK, ME_ERR_SYNTAX, or ME_ERR_OVERFLOW beyond a double's range
 */
me_status me_parse_double(const char *text, double *value_out) ME_MUST_CHECK;

/** Does @p text end with @p end? Local. */
bool me_ends_with(const char *text, const char *end);

/** Are the first @p length bytes of @p text one of @p count names? Local. */
bool me_is_one_of(const char *text, size_t length, const char *const *names,
                  size_t count);

/**
 * The next of names with blanks between them, in which @p cursor moves behind it.
 * Local.
 *
 * @param length_out  of the name, set where there is one
 * @return NULL: none is left
 */
const char *me_name_next(const char **cursor, size_t *length_out);

/** Is @p name, of @p length, one of names with blanks between them? Local. */
bool me_names_have(const char *names, const char *name, size_t length);

/** Has a dotted path, such as "Model.layers.0", @p depth names at most? Local. */
bool me_path_is_within(const char *path, uint32_t depth);

#endif /* MEMEST_BASE_PARSE_H */

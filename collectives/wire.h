/**
 * @file
 * Bytes as they travel between processes: fixed width, little endian. The
 * reader treats what it gets as hostile.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_COLLECTIVES_WIRE_H
#define MEMEST_COLLECTIVES_WIRE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Bytes being written; all zero is an empty one. The first failure sticks. */
typedef struct me_writer {
    unsigned char *bytes; /**< owned */
    size_t size;
    size_t capacity;
    me_status status;
} me_writer;

/** Append the low @p width bytes of @p value, at most 8. Local. */
void me_writer_put(me_writer *writer, uint64_t value, int width);

/** Append the 4 bytes of a number that may be negative. Local. */
void me_writer_put_int(me_writer *writer, int value);

/** Append @p size bytes. Local. */
void me_writer_put_bytes(me_writer *writer, const void *bytes, size_t size);

/** Give back the bytes; the writer is empty again. Local. */
void me_writer_fini(me_writer *writer);

/** Bytes being read; borrowed. */
typedef struct me_reader {
    const unsigned char *bytes;
    size_t size;
    size_t at;
    bool is_short; /**< asked for more than there is; sticks */
} me_reader;

/** The next @p width bytes, at most 8; 0 once the bytes are used up. Local. */
uint64_t me_reader_get(me_reader *reader, int width);

/** The next 4 bytes as a number that may be negative. Local. */
int me_reader_get_int(me_reader *reader);

/** Bytes that are left. Local. */
size_t me_reader_rest(const me_reader *reader);

#endif /* MEMEST_COLLECTIVES_WIRE_H */

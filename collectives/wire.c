/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/wire.h"

#include "base/alloc.h"

#include <string.h>

static bool reserve(me_writer *writer, size_t more)
{
    if (writer->status != ME_OK) {
        return false;
    }
    if (more <= writer->capacity - writer->size) {
        return true;
    }
    const size_t capacity = (writer->size + more) * 2 + 256;
    unsigned char *bytes = me_realloc(writer->bytes, capacity, 1, "wire");
    if (bytes == NULL) {
        writer->status = ME_ERR_NOMEM;
        return false;
    }
    writer->bytes = bytes;
    writer->capacity = capacity;
    return true;
}

void me_writer_put(me_writer *writer, uint64_t value, int width)
{
    if (!reserve(writer, (size_t)width)) {
        return;
    }
    for (int i = 0; i < width; i++) {
        writer->bytes[writer->size++] = (unsigned char)(value >> (8 * i));
    }
}

void me_writer_put_int(me_writer *writer, int value)
{
    me_writer_put(writer, (uint32_t)value, 4);
}

void me_writer_put_bytes(me_writer *writer, const void *bytes, size_t size)
{
    if (size > 0 && reserve(writer, size)) {
        memcpy(writer->bytes + writer->size, bytes, size);
        writer->size += size;
    }
}

void me_writer_fini(me_writer *writer)
{
    me_free(writer->bytes);
    *writer = (me_writer){0};
}

uint64_t me_reader_get(me_reader *reader, int width)
{
    if (reader->is_short || me_reader_rest(reader) < (size_t)width) {
        reader->is_short = true;
        return 0;
    }
    uint64_t value = 0;
    for (int i = 0; i < width; i++) {
        value |= (uint64_t)reader->bytes[reader->at++] << (8 * i);
    }
    return value;
}

int me_reader_get_int(me_reader *reader)
{
    return (int32_t)(uint32_t)me_reader_get(reader, 4);
}

size_t me_reader_rest(const me_reader *reader)
{
    return reader->size - reader->at;
}

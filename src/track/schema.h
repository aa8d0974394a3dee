/**
 * @file
 * What a record (a struct of a result) is made of: a table of its fields, each
 * described once. The codec, JSON, CSV, tables and pages walk it, so that a new
 * number is a member of its struct, what fills it, and a row here.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRACK_SCHEMA_H
#define MEMEST_TRACK_SCHEMA_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum me_field_kind {
    ME_FIELD_NONE,        /**< of no row: a row that says no kind is refused */
    ME_FIELD_BYTES,       /**< uint64_t; ME_BYTES_UNKNOWN: nobody knows */
    ME_FIELD_COUNT,       /**< uint64_t */
    ME_FIELD_U32,         /**< uint32_t */
    ME_FIELD_PARENT,      /**< uint32_t: an earlier item of the same array, or
                            UINT32_MAX */
    ME_FIELD_I32,         /**< int32_t */
    ME_FIELD_INDEX,       /**< int32_t; below 0: there is none */
    ME_FIELD_BOOL,        /**< bool */
    ME_FIELD_NAME,        /**< const char *, never NULL; "" for none */
    ME_FIELD_TEXT,        /**< const char *; NULL: there is none */
    ME_FIELD_CATEGORY,    /**< uint8_t: a me_category */
    ME_FIELD_BY_CATEGORY, /**< uint64_t[ME_CATEGORY_COUNT] */
    ME_FIELD_NS,          /**< int64_t: nanoseconds; never sent */
    ME_FIELD_RECORD,      /**< a struct within, or the one that find() gives */
    ME_FIELD_ITEMS,       /**< a pointer to an array of structs, whose number
                               is a uint32_t at another offset */
    ME_FIELD_ROWS,        /**< an array of structs within; in no report */
    ME_FIELD_KINDS
} me_field_kind;

/** Where a field is left out; 0: nowhere. */
enum {
    ME_FIELD_NOT_SENT = 1, /**< derived, or a part of another field */
    ME_FIELD_NOT_JSON = 2,
    ME_FIELD_IF_THERE = 4 /**< in JSON where it is not there: no null, no key */
};

typedef struct me_field {
    const char *key;   /**< in JSON, and with csv in CSV */
    const char *title; /**< of its column in tables; NULL: it has none */
    const char *unit;  /**< printed with the title; NULL: the table says it */
    uint8_t kind;      /**< me_field_kind */
    uint8_t left_out;  /**< ME_FIELD_NOT_…, or-ed */
    uint8_t csv;       /**< column of the CSV report from 1, since people count
                            columns: a new one takes the next; 0: none */
    bool is_last;      /**< its column in tables comes after the others */
    size_t offset;     /**< in the record */
    size_t count;      /**< ITEMS: offset of their number; ROWS: their number */
    const struct me_schema *of; /**< RECORD, ITEMS, ROWS: their fields */
    /** Whether the field means something; NULL: always. What does not is null
     *  in JSON, or is left out. */
    bool (*is_there)(const void *record);
    /** Whether JSON has one of the ITEMS; NULL: all. */
    bool (*is_shown)(const void *item);
    /** The number of a BYTES that no member holds. */
    uint64_t (*derive)(const void *record);
    /** A RECORD that lies elsewhere; it gives NULL if there is none. */
    const void *(*find)(const void *record);
} me_field;

/** A struct's fields, in the order of JSON and of tables. */
typedef struct me_schema {
    const me_field *fields;
    size_t n_fields;
    size_t size; /**< of the struct, bytes */
} me_schema;

/** The schema of a struct: of rows, each in braces. */
#define ME_SCHEMA(type, ...)                                                   \
    {                                                                          \
        .fields = (const me_field[]){__VA_ARGS__},                             \
        .n_fields =                                                            \
            sizeof((const me_field[]){__VA_ARGS__}) / sizeof(me_field),        \
        .size = sizeof(type)                                                   \
    }

/** The offset of a member; a member of another type does not compile. */
// NOLINTBEGIN(bugprone-macro-parentheses): a type is no expression
#define ME_MEMBER(type, member, member_type)                                   \
    _Generic(((const type *)0)->member, member_type : offsetof(type, member))
// NOLINTEND(bugprone-macro-parentheses)

/** A field by its key; a row goes on after it. */
#define ME_FIELD_AS(key_of, kind_of, type, member, member_type)                \
    .key = (key_of), .kind = (kind_of),                                        \
    .offset = ME_MEMBER(type, member, member_type)

/** A field that has its member's name. */
#define ME_FIELD(kind_of, type, member, member_type)                           \
    ME_FIELD_AS(#member, kind_of, type, member, member_type)

#define ME_BYTES(type, member) ME_FIELD(ME_FIELD_BYTES, type, member, uint64_t)
#define ME_COUNT(type, member) ME_FIELD(ME_FIELD_COUNT, type, member, uint64_t)
#define ME_U32(type, member)   ME_FIELD(ME_FIELD_U32, type, member, uint32_t)
#define ME_I32(type, member)   ME_FIELD(ME_FIELD_I32, type, member, int32_t)
#define ME_INDEX(type, member) ME_FIELD(ME_FIELD_INDEX, type, member, int32_t)
#define ME_BOOL(type, member)  ME_FIELD(ME_FIELD_BOOL, type, member, bool)
#define ME_NAME(type, member)                                                  \
    ME_FIELD(ME_FIELD_NAME, type, member, const char *)
#define ME_TEXT(type, member)                                                  \
    ME_FIELD(ME_FIELD_TEXT, type, member, const char *)

/** A number that is worked out, and left out of where @p also says. */
#define ME_DERIVED(key_of, kind_of, derive_of, also)                           \
    .key = (key_of), .kind = (kind_of), .derive = (derive_of),                 \
    .left_out = ME_FIELD_NOT_SENT | (also)

/** A struct within, of the fields of @p schema. */
#define ME_WITHIN(key_of, type, member, schema)                                \
    .key = (key_of), .kind = ME_FIELD_RECORD,                                  \
    .offset = offsetof(type, member), .of = &(schema)

/** An array that @p member points to, and its number n_member. */
#define ME_ITEMS(type, member, schema)                                         \
    .key = #member, .kind = ME_FIELD_ITEMS, .offset = offsetof(type, member),  \
    .count = ME_MEMBER(type, n_##member, uint32_t), .of = &(schema)

/** Whether @p field of @p record means something. Local. */
bool me_field_is_there(const me_field *field, const void *record);

/** A BYTES or COUNT; ME_BYTES_UNKNOWN where it is not there. Local. */
uint64_t me_field_bytes(const me_field *field, const void *record);

/** Where @p field of @p record lies; of ITEMS the first one, of a RECORD that
 *  lies elsewhere NULL if there is none. Borrowed. Local. */
const void *me_field_at(const me_field *field, const void *record);

/** How many ITEMS or ROWS there are. Local. */
uint32_t me_field_count(const me_field *field, const void *record);

#endif /* MEMEST_TRACK_SCHEMA_H */

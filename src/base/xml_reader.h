/**
 * @file
 * XML read one tag at a time, as hwloc writes it: elements, attributes, text,
 * comments and the five entities. Documents that declare something of their own
 * are refused. That names are XML's is not checked.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_BASE_XML_READER_H
#define MEMEST_BASE_XML_READER_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    ME_XML_DEPTH = 128,
    ME_XML_ATTRIBUTES = 64
};

/** Some of the text that is read; borrowed from it. */
typedef struct me_xml_span {
    const char *text;
    size_t length;
} me_xml_span;

typedef enum me_xml_kind {
    ME_XML_OPEN,  /**< a tag that opens an element */
    ME_XML_CLOSE, /**< the end of one, also of `<empty/>` */
    ME_XML_TEXT,  /**< what stands between tags, blanks alone left out */
    ME_XML_END    /**< of the document */
} me_xml_kind;

/** One attribute; in its value entities are as written. */
typedef struct me_xml_attribute {
    me_xml_span name;
    me_xml_span value;
} me_xml_attribute;

/** A reader, which also holds the last token. All zero but what
 *  me_xml_begin() fills in. */
typedef struct me_xml_reader {
    const char *where;
    const char *at;
    const char *end;
    int line;
    me_xml_kind kind;
    me_xml_span name; /**< of the element that opens or ends */
    me_xml_span text; /**< of ME_XML_TEXT, entities as written */
    me_xml_attribute attributes[ME_XML_ATTRIBUTES]; /**< of ME_XML_OPEN */
    size_t n_attributes;
    size_t depth; /**< elements that are open, with the one that opens */
    me_xml_span open[ME_XML_DEPTH];
    bool is_empty_tag; /**< its end is the next token */
    bool has_root;
} me_xml_reader;

/**
 * A reader of a text. Local.
 *
 * @param where   file name for messages; borrowed
 * @param text    bytes, need not end with a NUL; borrowed
 * @param length  their number
 */
me_xml_reader me_xml_begin(const char *where, const char *text, size_t length);

/**
 * Read the next token. Local.
 *
 * @return ME_OK; ME_ERR_SYNTAX with the line
 */
me_status me_xml_next(me_xml_reader *reader, me_diag *diag) ME_MUST_CHECK;

/** Read over what is left of the element that has just opened. Local.
 *
 * @return as me_xml_next() */
me_status me_xml_skip(me_xml_reader *reader, me_diag *diag) ME_MUST_CHECK;

/** The value of an attribute of the tag that opens; text is NULL: it has none.
 *  Local. */
me_xml_span me_xml_attribute_of(const me_xml_reader *reader, const char *name);

/** Is a span exactly @p text? Local. */
bool me_xml_is(me_xml_span span, const char *text);

/** Copy a span with its entities replaced, cut where @p size ends. Local. */
void me_xml_copy(me_xml_span span, char *text_out, size_t size);

/** Fail at the line of the last token. Local. */
me_status me_xml_fail(const me_xml_reader *reader, me_diag *diag,
                      me_status status, const char *format, ...)
    ME_PRINTF(4, 5);

#endif /* MEMEST_BASE_XML_READER_H */

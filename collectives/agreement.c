/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/agreement.h"

#include "collectives/digest.h"
#include "collectives/wire.h"

#include <stdbool.h>
#include <string.h>

enum {
    SHOWN_BYTES = 180 /* of a value, in a message */
};

/** Part of a text; none if it is NULL. */
typedef struct span {
    const char *text;
    size_t length;
} span;

/** A fact. */
typedef struct fact {
    span name;
    span value;
} fact;

static me_digest digest_of(const me_str *statement)
{
    me_digest digest = {0, 0};
    for (size_t i = 0; i < statement->length; i++) {
        me_digest_add(&digest, (unsigned char)statement->text[i]);
    }
    return digest;
}

/** The next fact of a statement. @return false: there is none */
static bool read_fact(span *rest, fact *fact_out)
{
    const char *tab =
        rest->length == 0 ? NULL : memchr(rest->text, '\t', rest->length);
    const char *end =
        rest->length == 0 ? NULL : memchr(rest->text, '\n', rest->length);
    if (tab == NULL || end == NULL || tab > end) {
        return false;
    }
    *fact_out = (fact){{rest->text, (size_t)(tab - rest->text)},
                       {tab + 1, (size_t)(end - tab) - 1}};
    rest->length -= (size_t)(end + 1 - rest->text);
    rest->text = end + 1;
    return true;
}

static bool is_equal(span a, span b)
{
    return a.text != NULL && b.text != NULL && a.length == b.length &&
           memcmp(a.text, b.text, a.length) == 0;
}

/** The value of a fact in a statement; none if it has none. */
static span value_of(span statement, span name)
{
    fact f;
    while (read_fact(&statement, &f)) {
        if (is_equal(f.name, name)) {
            return f.value;
        }
    }
    return (span){NULL, 0};
}

/** The first fact of @p of that @p other has not, or with another value.
 *  @return whether there is one */
static bool find_difference(span of, span other, fact *fact_out,
                            span *other_value_out)
{
    while (read_fact(&of, fact_out)) {
        *other_value_out = value_of(other, fact_out->name);
        if (!is_equal(fact_out->value, *other_value_out)) {
            return true;
        }
    }
    return false;
}

static int shown(span value)
{
    return value.length < SHOWN_BYTES ? (int)value.length : (int)SHOWN_BYTES;
}

static const char *text_of(span value)
{
    return value.text == NULL ? "" : value.text;
}

static const char *or_none(span value)
{
    return value.text == NULL ? "not there" : value.length == 0 ? "empty" : "";
}

static me_status fail_on(span name, span first, span other, int process,
                         me_diag *diag)
{
    return me_fail(diag, ME_ERR_MISMATCH,
                   "the processes were not given the same: %.*s is %s%.*s on "
                   "process 0 and %s%.*s on process %d",
                   shown(name), text_of(name), or_none(first), shown(first),
                   text_of(first), or_none(other), shown(other), text_of(other),
                   process);
}

/** On process 0, which has all statements: what differs, and on which. */
static me_status name_difference(const me_blob *statements, int count,
                                 me_diag *diag)
{
    const span first = {(const char *)statements[0].bytes, statements[0].size};
    for (int i = 1; i < count; i++) {
        const span own = {(const char *)statements[i].bytes,
                          statements[i].size};
        fact f;
        span value;
        if (find_difference(first, own, &f, &value)) {
            return fail_on(f.name, f.value, value, i, diag);
        }
        if (find_difference(own, first, &f, &value)) {
            return fail_on(f.name, value, f.value, i, diag);
        }
    }
    return me_fail(diag, ME_ERR_INTERNAL,
                   "digests of equal statements are different");
}

/** On process 0: does every process have the digest of the first? */
static bool are_equal(const me_blob *digests, int count)
{
    for (int i = 1; i < count; i++) {
        if (digests[i].size != digests[0].size ||
            memcmp(digests[i].bytes, digests[0].bytes, digests[0].size) != 0) {
            return false;
        }
    }
    return true;
}

static me_status compare_digests(me_transport *transport,
                                 const me_str *statement, me_diag *diag)
{
    const me_digest own = digest_of(statement);
    const int size = me_transport_size(transport);
    me_writer writer = {0};
    me_blob *digests = NULL;
    me_writer_put(&writer, own.a, 8);
    me_writer_put(&writer, own.b, 8);
    me_status status = me_str_status(statement) == ME_OK
                           ? writer.status
                           : me_str_status(statement);
    if (status != ME_OK) {
        (void)me_fail(diag, status, "no host memory for a statement");
    }
    status = me_transport_agree(transport, status, diag);
    if (status == ME_OK) {
        status = me_transport_gather(transport, writer.bytes, writer.size, diag,
                                     &digests);
    }
    if (status == ME_OK && digests != NULL && !are_equal(digests, size)) {
        status = me_fail(diag, ME_ERR_MISMATCH, "statements differ");
    }
    me_blobs_free(digests, size);
    me_writer_fini(&writer);
    return me_transport_agree(transport, status, diag);
}

me_status me_statement_agree(me_transport *transport, const me_str *statement,
                             me_diag *diag)
{
    const int size = me_transport_size(transport);
    if (size == 1) {
        return ME_OK;
    }
    me_diag own = {.status = ME_OK};
    me_status status = compare_digests(transport, statement, &own);
    if (status == ME_ERR_MISMATCH) {
        me_blob *all = NULL;
        own = (me_diag){.status = ME_OK};
        status = me_transport_gather(transport, me_str_text(statement),
                                     statement->length, &own, &all);
        if (status == ME_OK && all != NULL) {
            status = name_difference(all, size, &own);
        }
        me_blobs_free(all, size);
        status = me_transport_agree(transport, status, &own);
    }
    if (status != ME_OK && diag != NULL) {
        *diag = own;
    }
    return status;
}

/**
 * @file
 * Parts of the JSON report. A value that jansson cannot make is NULL, and
 * whatever it is put into becomes NULL.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_REPORT_JSON_H
#define MEMEST_REPORT_JSON_H

#include "report/job_report.h"
#include "track/schema.h"

#include <jansson.h>

/** Exact; null when unknown; NULL when JSON's integers cannot hold it. */
json_t *me_json_bytes(uint64_t bytes);

/** An object with the fields of @p item in the order of @p schema. */
json_t *me_json_record(const me_schema *schema, const void *item);

/** Add them to @p object, which may be NULL. @return the object; NULL, and it
 *  is gone, if not */
json_t *me_json_add(json_t *object, const me_schema *schema, const void *item);

/** Add one value, likewise. */
json_t *me_json_put(json_t *object, const char *key, json_t *value);

/** Add an item to a list, likewise. */
json_t *me_json_push(json_t *list, json_t *item);

/** An array of what @p make makes of items 0 to count - 1. */
json_t *me_json_array(const void *items, uint32_t count,
                      json_t *(*make)(const void *items, uint32_t i));

/**
 * Append the text of @p value. Jansson's own json_dumps() loses the keys of an
 * object that it finds no room for, and says nothing: the text keeps a failure.
 *
 * @param value  or NULL, where jansson could not make it
 * @param flags  of json_dumps()
 * @return false if @p value is NULL or jansson found no memory; a failure of the
 *         text is the text's
 */
bool me_json_dump(const json_t *value, size_t flags, me_str *text);

/** The same as a text of its own, which me_free() gives back, of @p value, which
 *  goes; NULL: there is none. */
char *me_json_text(json_t *value, size_t flags);

/**
 * Append @p value, which goes, and a line's end.
 *
 * @param value  or NULL, where jansson could not make it
 * @param flags  of json_dumps()
 * @return ME_OK; ME_ERR_NOMEM
 */
me_status me_json_append(json_t *value, size_t flags, me_str *text);

/** The step, with the actions of each stage; null: it is not predicted. */
json_t *me_json_time(const me_report *report);

/** What is assumed: an array of sentences. */
json_t *me_json_assumptions(const me_report *report);

/** The flags that are not modelled: an array. */
json_t *me_json_not_modelled(const me_report *report);

/** Why there is no time; null: there is. */
json_t *me_json_time_reason(const me_report *report);

/** The text of a stage's time, which me_free() gives back; NULL if there is no
 *  memory for it. */
char *me_json_stage_time(const me_report *report, int32_t stage);

/** Does it fit, and by which rank; the verdict's band. */
json_t *me_json_verdict(const me_report *report);

/** The machine and what groups cross of its links; of a report that has one. */
json_t *me_json_machine(const me_report *report);

/** What would make a job fit. */
json_t *me_json_fit(const struct me_fit *fit);

#endif /* MEMEST_REPORT_JSON_H */

/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "report/json.h"
#include "search/search_report.h"

/*
 * A value that jansson cannot make is NULL, and whatever it is put into becomes
 * NULL.
 */

static json_t *make_counts(const me_search_found *found)
{
    json_t *counts = json_object();
    for (int end = 0; end < ME_SEARCH_ENDS; end++) {
        counts = me_json_put(counts, me_search_end_name((me_search_end)end),
                             json_integer((json_int_t)found->counts[end]));
    }
    return counts;
}

static json_t *make_head(const me_search_found *found)
{
    return json_pack(
        "{s:s, s:s, s:f, s:I, s:o, s:I, s:I, s:o}", "memest", found->version,
        "name", found->name, "tie_below", ME_TIME_TIE, "candidates",
        (json_int_t)found->candidates->count, "ends", make_counts(found), "fit",
        (json_int_t)found->n_fit, "cannot_say", (json_int_t)found->n_open,
        "capacity_bytes",
        found->capacity_bytes == 0 ? json_null()
                                   : me_json_bytes(found->capacity_bytes));
}

static json_t *nanoseconds(const me_search_result *r, int64_t ns)
{
    return r->step_ns == 0 ? json_null() : json_integer(ns);
}

static json_t *make_times(const me_search_result *r, json_t *row)
{
    const double tokens = me_search_tokens(r);
    row = me_json_put(row, "step_ns", nanoseconds(r, r->step_ns));
    row = me_json_put(row, "is_lower_bound", json_boolean(r->is_lower_step));
    row = me_json_put(row, "tokens_per_second",
                      tokens > 0 ? json_real(tokens) : json_null());
    row = me_json_put(row, "forward_backward_ns",
                      nanoseconds(r, r->forward_backward_ns));
    row = me_json_put(row, "bubble_ns", nanoseconds(r, r->bubble_ns));
    return me_json_put(row, "exposed_communication_ns",
                       nanoseconds(r, r->exposed_ns));
}

static json_t *make_bytes(const me_search_result *r, json_t *row)
{
    const bool is_known = r->capacity_bytes != 0;
    const int64_t margin = (int64_t)r->capacity_bytes - (int64_t)r->worst_bytes;
    row = me_json_put(row, "worst_rank", json_integer(r->worst_rank));
    row = me_json_put(row, "worst_bytes", me_json_bytes(r->worst_bytes));
    row = me_json_put(row, "margin_bytes",
                      is_known ? json_integer(margin) : json_null());
    return me_json_put(
        row, "peak",
        json_pack("{s:o, s:o, s:o, s:o}", "requested_bytes",
                  me_json_bytes(r->requested_bytes), "allocated_bytes",
                  me_json_bytes(r->allocated_bytes), "reserved_bytes",
                  me_json_bytes(r->reserved_bytes), "device_bytes",
                  me_json_bytes(r->device_bytes)));
}

static json_t *make_row(const me_search_row *row)
{
    const me_candidate *c = row->front.candidate;
    const me_search_result *r = &c->result;
    char **texts = me_alloc(me_search_n_notes(row), sizeof(char *), "json");
    if (texts == NULL) {
        return NULL;
    }
    const me_report notes = me_search_notes(row, texts);
    const char *schedule = me_search_schedule(row);
    json_t *object = json_pack(
        "{s:o, s:b, s:b, s:i, s:s, s:s?, s:s, s:s, s:s, s:s}", "place",
        row->front.place > 0 ? json_integer(row->front.place) : json_null(),
        "is_tie", (int)row->front.is_tie, "is_equal", (int)row->front.is_equal,
        "gpus", (int)c->world, "layout", c->layout, "schedule",
        schedule[0] == '\0' ? NULL : schedule, "assignments", c->assignments,
        "flags", row->flags, "risk", me_risk_name((me_risk)r->risk), "basis",
        me_basis_name((me_basis)r->basis));
    object = make_bytes(r, make_times(r, object));
    object = me_json_put(object, "not_modelled", me_json_not_modelled(&notes));
    object = me_json_put(object, "assumptions", me_json_assumptions(&notes));
    me_free((void *)texts);
    return object;
}

me_status me_search_json(const me_search_found *found, me_str *text)
{
    me_str_append(text, "{\"head\": ");
    json_t *head = make_head(found);
    bool is_good = me_json_dump(head, JSON_REAL_PRECISION(6), text);
    json_decref(head);
    me_str_append(text, ",\n \"front\": [\n");
    for (uint32_t i = 0; i < found->n_rows && is_good; i++) {
        json_t *row = make_row(&found->rows[i]);
        me_str_append(text, i == 0 ? "  " : ",\n  ");
        is_good = me_json_dump(row, 0, text);
        json_decref(row);
    }
    me_str_append(text, "\n ]}\n");
    return is_good ? me_str_status(text) : ME_ERR_NOMEM;
}

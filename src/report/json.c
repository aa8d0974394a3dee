/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/json.h"

#include "base/alloc.h"
#include "report/format.h"
#include "report/oom_text.h"
#include "report/verdict.h"

#include <string.h>

/*
 * Ranks with the same result share its text, and one rank is in memory at a
 * time: a report of 16,384 ranks is as cheap as its file is long. A value that
 * jansson cannot make is NULL, and whatever it was put into becomes NULL.
 */

/** Exact; null when unknown; NULL when JSON's integers cannot hold it. */
static json_t *number(uint64_t value)
{
    if (value == ME_BYTES_UNKNOWN) {
        return json_null();
    }
    return value > INT64_MAX ? NULL : json_integer((json_int_t)value);
}

me_status me_json_append(json_t *value, size_t flags, me_str *text)
{
    char *body = value == NULL ? NULL : json_dumps(value, flags);
    json_decref(value);
    if (body == NULL) {
        return ME_ERR_NOMEM;
    }
    me_str_append(text, body);
    me_str_append(text, "\n");
    me_free(body); /* made by jansson */
    return me_str_status(text);
}

json_t *me_json_bytes(uint64_t bytes)
{
    return number(bytes);
}

/** The numbers of @p limit make sense only if it is known. */
static json_t *known(bool is_known, uint64_t value)
{
    return is_known ? number(value) : json_null();
}

json_t *me_json_array(const void *items, uint32_t count,
                      json_t *(*make)(const void *items, uint32_t i))
{
    json_t *array = json_array();
    for (uint32_t i = 0; i < count && array != NULL; i++) {
        if (json_array_append_new(array, make(items, i)) != 0) {
            json_decref(array);
            array = NULL;
        }
    }
    return array;
}

static json_t *make_categories(const me_peak_result *peak)
{
    json_t *object = json_object();
    for (unsigned i = 0; i < ME_CATEGORY_COUNT && object != NULL; i++) {
        if (json_object_set_new(object, me_category_name((me_category)i),
                                number(peak->by_category[i])) != 0) {
            json_decref(object);
            object = NULL;
        }
    }
    return object;
}

static json_t *make_contributor(const void *items, uint32_t i)
{
    const me_contributor *c = (const me_contributor *)items + i;
    return json_pack("{s:s, s:I, s:s?, s:s, s:o, s:o}", "module", c->module,
                     "modules", (json_int_t)c->modules, "op", c->op, "category",
                     me_category_name((me_category)c->category), "blocks",
                     number(c->blocks), "bytes", number(c->bytes));
}

static json_t *make_peak(const me_peak_result *peak)
{
    if (peak == NULL) {
        return json_null();
    }
    json_t *microbatch = peak->microbatch == ME_NO_MICROBATCH
                             ? json_null()
                             : json_integer(peak->microbatch);
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:i, s:s, s:s, s:s?, s:o, s:o, s:o}",
        "requested_bytes", number(peak->requested_bytes), "allocated_bytes",
        number(peak->allocated_bytes), "reserved_bytes",
        number(peak->reserved_bytes), "fragmentation_bytes",
        number(me_peak_fragmentation(peak)), "device_bytes",
        number(peak->device_bytes), "iteration", (int)peak->iteration, "phase",
        peak->phase, "module", peak->module, "op", peak->op, "microbatch",
        microbatch, "by_category", make_categories(peak), "contributors",
        me_json_array(peak->contributors, peak->n_contributors,
                      make_contributor));
}

static json_t *make_point(const void *items, uint32_t i)
{
    const me_point_result *p = (const me_point_result *)items + i;
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name",
                     p->name, "requested_bytes", number(p->requested_bytes),
                     "requested_peak_bytes", number(p->requested_peak_bytes),
                     "allocated_bytes", number(p->allocated_bytes),
                     "allocated_peak_bytes", number(p->allocated_peak_bytes),
                     "reserved_bytes", number(p->reserved_bytes),
                     "reserved_peak_bytes", number(p->reserved_peak_bytes),
                     "device_bytes", number(p->device_bytes));
}

static json_t *make_phase(const void *items, uint32_t i)
{
    const me_phase_result *p = (const me_phase_result *)items + i;
    return json_pack("{s:s, s:o, s:o, s:o}", "name", p->name, "requested_bytes",
                     number(p->requested_bytes), "allocated_bytes",
                     number(p->allocated_bytes), "reserved_bytes",
                     number(p->reserved_bytes));
}

static json_t *make_iteration(const void *items, uint32_t i)
{
    const me_iteration_result *it = (const me_iteration_result *)items + i;
    return json_pack("{s:i, s:o, s:o, s:o, s:s, s:s, s:s?, s:o, s:o}",
                     "iteration", (int)it->iteration, "requested_bytes",
                     number(it->requested_bytes), "allocated_bytes",
                     number(it->allocated_bytes), "reserved_bytes",
                     number(it->reserved_bytes), "phase", it->peak.phase,
                     "module", it->peak.module, "op", it->peak.op,
                     "by_category", make_categories(&it->peak), "phases",
                     me_json_array(it->phases, it->n_phases, make_phase));
}

/** Set-up is not an iteration: its numbers are in the points. */
static json_t *make_iterations(const me_rank_result *result)
{
    uint32_t first = 0;
    while (first < result->n_iterations &&
           result->iterations[first].iteration < 0) {
        first++;
    }
    return me_json_array(result->iterations + first,
                         result->n_iterations - first, make_iteration);
}

static json_t *make_module(const void *items, uint32_t i)
{
    const me_module_result *m = (const me_module_result *)items + i;
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "name", m->name,
                     "forward_peak_bytes", number(m->forward_peak_bytes),
                     "backward_peak_bytes", number(m->backward_peak_bytes),
                     "parameters", number(m->parameters), "parameter_bytes",
                     number(m->parameter_bytes), "activation_bytes",
                     number(m->activation_bytes));
}

static json_t *make_limit(const me_limit_result *limit)
{
    const bool died = limit->is_known && limit->oom;
    return json_pack(
        "{s:o, s:o, s:s?, s:s?, s:s?, s:s?, s:o, s:o, s:o, s:o, s:o}", "oom",
        limit->is_known ? json_boolean(limit->oom) : json_null(), "iteration",
        died ? json_integer(limit->iteration) : json_null(), "phase",
        died ? limit->phase : NULL, "module", died ? limit->module : NULL, "op",
        died ? limit->op : NULL, "message", died ? limit->message : NULL,
        "tried_bytes", known(died, limit->tried_bytes), "num_alloc_retries",
        known(limit->is_known, limit->num_alloc_retries), "reserved_bytes",
        known(limit->is_known, limit->reserved_bytes), "oom_with_band_less",
        limit->is_known ? json_boolean(limit->oom_with_less) : json_null(),
        "oom_with_band_more",
        limit->is_known ? json_boolean(limit->oom_with_more) : json_null());
}

/** The collectives that are called at all. */
static json_t *make_volume(const me_rank_result *r)
{
    json_t *list = json_array();
    for (int i = 0; i < ME_GROUP_COUNT * ME_COLLECTIVE_COUNT; i++) {
        const int group = i / ME_COLLECTIVE_COUNT;
        const int kind = i % ME_COLLECTIVE_COUNT;
        const me_volume_result *v = &r->volume[group][kind];
        if (list == NULL || v->calls == 0) {
            continue;
        }
        json_t *one =
            json_pack("{s:s, s:s, s:o, s:o}", "group",
                      me_group_kind_name((me_group_kind)group), "collective",
                      me_collective_name((me_collective)kind), "calls",
                      number(v->calls), "bytes", number(v->bytes));
        if (json_array_append_new(list, one) != 0) {
            json_decref(list);
            list = NULL;
        }
    }
    return list;
}

static json_t *make_course_part(const void *items, uint32_t i)
{
    return me_json_course_part((const me_course_part *)items + i);
}

/** The course, if it was kept. */
static json_t *add_course(const me_rank_result *r, json_t *object)
{
    if (object == NULL || r->n_course == 0) {
        return object;
    }
    if (json_object_set_new(
            object, "course",
            me_json_array(r->course, r->n_course, make_course_part)) != 0 ||
        json_object_set_new(object, "course_left_out",
                            json_integer(r->course_left_out)) != 0) {
        json_decref(object);
        return NULL;
    }
    return object;
}

/** What the host holds, if it holds anything. */
static json_t *add_host(const me_rank_result *r, json_t *object)
{
    const uint64_t *bytes = r->host.bytes;
    if (object == NULL || !me_host_memory_is_used(&r->host)) {
        return object;
    }
    json_t *host =
        json_pack("{s:o, s:o, s:o, s:o}", "parameter_bytes",
                  number(bytes[ME_HOST_PARAMETERS]), "gradient_bytes",
                  number(bytes[ME_HOST_GRADIENTS]), "optimizer_state_bytes",
                  number(bytes[ME_HOST_OPTIMIZER_STATE]), "pinned_bytes",
                  number(r->host.pinned_bytes));
    if (json_object_set_new(object, "host", host) != 0) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static json_t *make_result(const me_rank_result *r)
{
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "parameters",
        number(r->parameters), "parameter_bytes", number(r->parameter_bytes),
        "peak", make_peak(me_rank_result_peak(r)), "late_peak",
        me_json_late(&r->late), "points",
        me_json_array(r->points, r->n_points, make_point), "iterations",
        make_iterations(r), "modules",
        me_json_array(r->modules, r->n_modules, make_module), "limit",
        make_limit(&r->limit), "device", me_json_device(&r->device),
        "communication", make_volume(r));
}

/** Prints @p value and gives it back; false for NULL. */
static bool print_value(json_t *value, size_t flags, FILE *stream)
{
    if (value == NULL) {
        return false;
    }
    /* A stream that takes no more is noticed by whoever owns it. */
    (void)json_dumpf(value, stream, flags | JSON_ENCODE_ANY);
    json_decref(value);
    return true;
}

/** Another member of the report's object. */
static bool print_member(const char *name, json_t *value, FILE *stream)
{
    (void)fprintf(stream, ",\n \"%s\": ", name);
    return print_value(value, 0, stream);
}

static json_t *make_assumption(const void *items, uint32_t i)
{
    return json_string(((char *const *)items)[i]);
}

static json_t *make_flag(const void *items, uint32_t i)
{
    return json_string(((const me_flag_note *)items)[i].flag);
}

json_t *me_json_assumptions(const me_report *report)
{
    return me_json_array(report->assumptions, report->n_assumptions,
                         make_assumption);
}

json_t *me_json_not_modelled(const me_report *report)
{
    const me_flag_list *missing = &report->config->not_modelled;
    return me_json_array(missing->flags, (uint32_t)missing->count, make_flag);
}

static bool print_head(const me_report *report, FILE *stream)
{
    (void)fputs("{\"memest\": ", stream);
    bool is_good = print_value(json_string(report->version), 0, stream);
    (void)fprintf(stream, ",\n \"world_size\": %d,\n \"assumptions\": ",
                  (int)report->world_size);
    is_good = is_good && print_value(me_json_assumptions(report), 0, stream);
    (void)fputs(",\n \"not_modelled\": ", stream);
    is_good = is_good && print_value(me_json_not_modelled(report), 0, stream);
    (void)fputs(",\n \"ranks\": [\n", stream);
    return is_good;
}

/** The rank's place; the record goes on. */
static void print_place(const me_report *report, int32_t rank,
                        char *const *times, FILE *stream)
{
    const me_rank_place *p = &report->ranks[rank].place;
    (void)fprintf(stream,
                  "%s  {\"rank\": %d, \"tp\": %d, \"pp\": %d, \"dp\": %d, "
                  "\"cp\": %d, \"ep\": %d, \"class\": %d, "
                  "\"time\": %s, ",
                  rank == 0 ? "" : ",\n", (int)p->rank, (int)p->tp, (int)p->pp,
                  (int)p->dp, (int)p->cp, (int)p->ep, (int)p->class_id,
                  times[p->pp]);
}

/** The text of one result; NULL if jansson cannot make it. */
static char *make_body(const me_report *report, const me_rank_result *result)
{
    json_t *value = add_course(
        result, add_host(result, me_json_add_range(report, result,
                                                   make_result(result))));
    char *body = value == NULL ? NULL : json_dumps(value, 0);
    json_decref(value);
    return body;
}

/** Texts of results are kept, since a result comes back with every rank that
 *  has it. */
static bool print_ranks(const me_report *report, char *const *times,
                        char **bodies, FILE *stream)
{
    for (int32_t rank = 0; rank < report->world_size; rank++) {
        const uint32_t result = report->ranks[rank].result;
        if (bodies[result] == NULL) {
            bodies[result] = make_body(report, report->results[result]);
        }
        if (bodies[result] == NULL) {
            return false;
        }
        print_place(report, rank, times, stream);
        me_oom_text_print(bodies[result] + 1, /* without its first brace */
                          me_report_device_index(report, rank), stream);
    }
    return true;
}

/** Stages have different times even where their ranks' memory is equal. */
static bool is_equal(const me_report *report, int32_t a, int32_t b)
{
    return report->ranks[a].result == report->ranks[b].result &&
           report->ranks[a].place.class_id == report->ranks[b].place.class_id &&
           (report->time.step == NULL ||
            report->ranks[a].place.pp == report->ranks[b].place.pp);
}

/** All ranks that are as @p first, the lowest one, as ranges with both ends;
 *  they are marked as printed. */
static void print_equal(const me_report *report, int32_t first, bool *printed,
                        FILE *stream)
{
    (void)fputs("\"ranks\": [", stream);
    for (int32_t i = first; i < report->world_size; i++) {
        if (!is_equal(report, first, i)) {
            continue;
        }
        const int32_t begin = i;
        for (; i < report->world_size && is_equal(report, first, i); i++) {
            printed[i] = true;
        }
        (void)fprintf(stream, "%s[%d, %d]", begin == first ? "" : ", ",
                      (int)begin, (int)i - 1);
    }
    (void)fputs("], ", stream);
}

static bool print_classes(const me_report *report, char *const *times,
                          bool *printed, FILE *stream)
{
    for (int32_t rank = 0; rank < report->world_size; rank++) {
        if (printed[rank]) {
            continue;
        }
        char *body =
            make_body(report, report->results[report->ranks[rank].result]);
        if (body == NULL) {
            return false;
        }
        print_place(report, rank, times, stream);
        print_equal(report, rank, printed, stream);
        me_oom_text_print(body + 1, me_report_device_index(report, rank),
                          stream);
        me_free(body); /* made by jansson */
    }
    return true;
}

/** @return ME_ERR_OVERFLOW if jansson cannot make a text */
static me_status print_all_ranks(const me_report *report, char *const *times,
                                 FILE *stream)
{
    char **bodies = me_alloc(report->n_results, sizeof *bodies, "json.bodies");
    if (bodies == NULL) {
        return ME_ERR_NOMEM;
    }
    const bool is_good = print_ranks(report, times, bodies, stream);
    for (uint32_t i = 0; i < report->n_results; i++) {
        me_free(bodies[i]); /* made by jansson */
    }
    me_free(bodies);
    return is_good ? ME_OK : ME_ERR_OVERFLOW;
}

static me_status print_all_classes(const me_report *report, char *const *times,
                                   FILE *stream)
{
    bool *printed =
        me_alloc((size_t)report->world_size, sizeof *printed, "json.printed");
    if (printed == NULL) {
        return ME_ERR_NOMEM;
    }
    const bool is_good = print_classes(report, times, printed, stream);
    me_free(printed);
    return is_good ? ME_OK : ME_ERR_OVERFLOW;
}

/** @return ME_ERR_OVERFLOW if jansson cannot make a text */
static me_status print_records(const me_report *report, bool by_class,
                               FILE *stream)
{
    const int32_t n_stages = report->config->parallel.pipeline;
    char **times = me_alloc((size_t)n_stages, sizeof *times, "json.times");
    me_status status = times == NULL ? ME_ERR_NOMEM : ME_OK;
    for (int32_t i = 0; status == ME_OK && i < n_stages; i++) {
        times[i] = me_json_stage_time(report, i);
        status = times[i] == NULL ? ME_ERR_OVERFLOW : ME_OK;
    }
    if (status == ME_OK) {
        status = by_class ? print_all_classes(report, times, stream)
                          : print_all_ranks(report, times, stream);
    }
    for (int32_t i = 0; times != NULL && i < n_stages; i++) {
        me_free(times[i]); /* made by jansson */
    }
    me_free(times);
    return status;
}

me_status me_json_print(const me_report *report, bool by_class, FILE *stream,
                        me_diag *diag)
{
    bool is_good = print_head(report, stream);
    const me_status status = print_records(report, by_class, stream);
    if (status == ME_ERR_NOMEM) {
        return me_fail(diag, status, "no memory for the JSON report");
    }
    is_good = is_good && status == ME_OK;
    (void)fputs("\n ]", stream);
    is_good &= print_member("verdict", me_json_verdict(report), stream);
    is_good &= print_member("time", me_json_time(report), stream);
    is_good &=
        print_member("time_unknown", me_json_time_reason(report), stream);
    if (report->links != NULL && report->links->cluster != NULL) {
        is_good &= print_member("machine", me_json_machine(report), stream);
    }
    (void)fputs("}\n", stream);
    return is_good ? ME_OK
                   : me_fail(diag, ME_ERR_OVERFLOW,
                             "a number or text of the report does not go into "
                             "JSON, or there is no memory for it");
}

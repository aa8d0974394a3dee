/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/json.h"

#include "base/alloc.h"
#include "config/framework.h"
#include "config/options.h"
#include "report/format.h"
#include "report/oom_text.h"
#include "report/verdict.h"

#include <errno.h>
#include <string.h>

/*
 * Ranks with the same result share its text, and one rank is in memory at a
 * time: a report of 16,384 ranks is as cheap as its file is long. A value that
 * jansson cannot make is NULL, and whatever it was put into becomes NULL.
 */

json_t *me_json_bytes(uint64_t bytes)
{
    if (bytes == ME_BYTES_UNKNOWN) {
        return json_null();
    }
    return bytes > INT64_MAX ? NULL : json_integer((json_int_t)bytes);
}

static int append_piece(const char *piece, size_t size, void *text)
{
    me_str_append_n(text, piece, size);
    return 0;
}

bool me_json_dump(const json_t *value, size_t flags, me_str *text)
{
    return value != NULL &&
           json_dump_callback(value, append_piece, text, flags) == 0;
}

char *me_json_text(json_t *value, size_t flags)
{
    me_str text = {0};
    const bool is_good = me_json_dump(value, flags, &text);
    json_decref(value);
    if (!is_good || me_str_status(&text) != ME_OK) {
        me_str_fini(&text);
        return NULL;
    }
    return text.text;
}

me_status me_json_append(json_t *value, size_t flags, me_str *text)
{
    const bool is_good = me_json_dump(value, flags, text);
    json_decref(value);
    me_str_append(text, "\n");
    return is_good ? me_str_status(text) : ME_ERR_NOMEM;
}

json_t *me_json_array(const void *items, uint32_t count,
                      json_t *(*make)(const void *items, uint32_t i))
{
    json_t *array = json_array();
    for (uint32_t i = 0; i < count && array != NULL; i++) {
        array = me_json_push(array, make(items, i));
    }
    return array;
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
        json_t *one = json_pack(
            "{s:s, s:s}", "group", me_group_kind_name((me_group_kind)group),
            "collective", me_collective_name((me_collective)kind));
        one = me_json_add(one, &me_volume_schema, v);
        list = me_json_push(list, one);
    }
    return list;
}

/** Between which bytes the rank's reserved memory ends up, if its job has such
 *  a range. */
static json_t *add_range(const me_report *report, const me_rank_result *result,
                         json_t *object)
{
    const me_reserved_range range =
        me_verdict_reserved_range(report->config, result);
    return !range.is_known
               ? object
               : me_json_put(object, "reserved_range",
                             json_pack("{s:o, s:o}", "least_bytes",
                                       me_json_bytes(range.least_bytes),
                                       "most_bytes",
                                       me_json_bytes(range.most_bytes)));
}

/** Prints @p value and gives it back; false for NULL, and where jansson found no
 *  memory to print it. */
static bool print_value(json_t *value, size_t flags, FILE *stream)
{
    if (value == NULL) {
        return false;
    }
    // A stream that takes no more is noticed by whoever owns it.
    const bool is_printed =
        json_dumpf(value, stream, flags | JSON_ENCODE_ANY) == 0 ||
        ferror(stream) != 0;
    json_decref(value);
    return is_printed;
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

/** Options of the job that have another value than where nobody gives one. */
static json_t *make_options(const me_config *config)
{
    size_t count = 0;
    const me_option *options = me_options(&count);
    json_t *object = json_object();
    me_str value = {0};
    for (size_t i = 0; i < count && object != NULL; i++) {
        if (me_framework_is_foreign(config->framework, options[i].name) ||
            me_option_is_default(&options[i], config)) {
            continue;
        }
        value.length = 0;
        me_option_format(&options[i], config, &value);
        object = me_json_put(object, options[i].name,
                             me_str_status(&value) == ME_OK
                                 ? json_string(me_str_text(&value))
                                 : NULL);
    }
    me_str_fini(&value);
    return object;
}

static bool print_head(const me_report *report, bool by_class, FILE *stream)
{
    (void)fputs("{\"memest\": ", stream);
    bool is_good = print_value(json_string(report->version), 0, stream);
    (void)fprintf(stream, ",\n \"world_size\": %d,\n \"assumptions\": ",
                  (int)report->world_size);
    is_good = is_good && print_value(me_json_assumptions(report), 0, stream);
    (void)fputs(",\n \"not_modelled\": ", stream);
    is_good = is_good && print_value(me_json_not_modelled(report), 0, stream);
    is_good = is_good &&
              print_member("options", make_options(report->config), stream);
    (void)fputs(by_class ? ",\n \"json_ranks\": \"classes\"" : "", stream);
    (void)fputs(",\n \"ranks\": [\n", stream);
    return is_good;
}

/** The rank's place; the record goes on. */
static void print_place(const me_report *report, int32_t rank,
                        char *const *times, FILE *stream)
{
    const me_rank_place *place = &report->ranks[rank].place;
    (void)fputs(rank == 0 ? "  {" : ",\n  {", stream);
    for (size_t i = 0; i < me_place_schema.n_fields; i++) {
        const me_field *field = &me_place_schema.fields[i];
        (void)fprintf(stream, "\"%s\": %d, ", field->key,
                      *(const int *)me_field_at(field, place));
    }
    (void)fprintf(stream, "\"time\": %s, ", times[place->pp]);
}

/** The text of one result; NULL if jansson cannot make it. */
static char *make_body(const me_report *report, const me_rank_result *result)
{
    json_t *value = me_json_record(&me_result_schema, result);
    value = me_json_put(value, "communication", make_volume(result));
    value = add_range(report, result, value);
    value = me_json_add(value, &me_result_optional_schema, result);
    return me_json_text(value, 0);
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

/** What ranks' records are printed from. */
typedef struct rank_texts {
    char **times;  /**< by stage */
    char **bodies; /**< by result: kept, since a result comes back with every
                        rank that has it */
    bool *printed; /**< by rank: it is in the record of one before it */
} rank_texts;

/** @return false if jansson cannot make a text */
static bool print_ranks(const me_report *report, const rank_texts *texts,
                        bool by_class, FILE *stream)
{
    for (int32_t rank = 0; rank < report->world_size; rank++) {
        const uint32_t result = report->ranks[rank].result;
        char **body = &texts->bodies[result];
        if (texts->printed[rank]) {
            continue;
        }
        if (*body == NULL) {
            *body = make_body(report, report->results[result]);
        }
        if (*body == NULL) {
            return false;
        }
        print_place(report, rank, texts->times, stream);
        if (by_class) {
            print_equal(report, rank, texts->printed, stream);
        }
        me_oom_text_print(*body + 1, // without its first brace
                          me_report_device_index(report, rank), stream);
    }
    return true;
}

static void free_texts(char **texts, size_t count)
{
    for (size_t i = 0; texts != NULL && i < count; i++) {
        me_free(texts[i]); // made by jansson
    }
    me_free(texts);
}

/** @return ME_ERR_OVERFLOW if jansson cannot make a text */
static me_status print_records(const me_report *report, bool by_class,
                               FILE *stream)
{
    const size_t n_stages = (size_t)report->config->parallel.pipeline;
    const rank_texts texts = {
        .times = me_alloc(n_stages, sizeof(char *), "json.times"),
        .bodies = me_alloc(report->n_results, sizeof(char *), "json.bodies"),
        .printed =
            me_alloc((size_t)report->world_size, sizeof(bool), "json.printed")};
    me_status status =
        texts.times == NULL || texts.bodies == NULL || texts.printed == NULL
            ? ME_ERR_NOMEM
            : ME_OK;
    for (size_t i = 0; status == ME_OK && i < n_stages; i++) {
        texts.times[i] = me_json_stage_time(report, (int32_t)i);
        status = texts.times[i] == NULL ? ME_ERR_OVERFLOW : ME_OK;
    }
    if (status == ME_OK && !print_ranks(report, &texts, by_class, stream)) {
        status = ME_ERR_OVERFLOW;
    }
    free_texts(texts.times, n_stages);
    free_texts(texts.bodies, report->n_results);
    me_free(texts.printed);
    return status;
}

me_status me_json_print(const me_report *report, bool by_class, FILE *stream,
                        me_diag *diag)
{
    errno = 0; // jansson does not say why it cannot make a value
    const uint64_t lost = me_alloc_lost();
    bool is_good = print_head(report, by_class, stream);
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
    if (report->fit != NULL) {
        is_good &= print_member("fit", me_json_fit(report->fit), stream);
    }
    (void)fputs("}\n", stream);
    if (!is_good && (errno == ENOMEM || me_alloc_lost() != lost)) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory for the JSON report");
    }
    return is_good ? ME_OK
                   : me_fail(diag, ME_ERR_OVERFLOW,
                             "a number or text of the report does not go into "
                             "JSON");
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "search/search_log.h"

#include "base/alloc.h"
#include "base/input.h"
#include "base/json_text.h"
#include "base/outfile.h"
#include "base/statement.h"
#include "collectives/digest.h"
#include "config/options.h"
#include "report/job_report.h"
#include "report/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#ifndef ME_VERSION
#    define ME_VERSION "unknown"
#endif

static void add_text(me_digest *digest, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        me_digest_add(digest, (unsigned char)text[i]);
    }
}

/** A file of the job's own, by what it holds. */
static me_status add_file(me_digest *digest, const char *path, me_diag *diag)
{
    me_str text = {0};
    me_status status = ME_OK;
    if (path[0] != '\0') {
        status = me_input_read(path, ME_INPUT_MAX_BYTES, diag, &text);
    }
    if (status == ME_OK) {
        add_text(digest, me_str_text(&text), text.length);
    }
    me_str_fini(&text);
    return status;
}

me_status me_search_digest_make(const me_config *job, const me_job_card *card,
                                bool strict, me_diag *diag,
                                me_search_digest *digest_out)
{
    me_str statement = {0};
    me_digest digest = {0, 0};
    me_statement_add(&statement, "strict", "%d", (int)strict);
    me_config_state(job, &statement);
    me_device_card_state(&card->card, &statement);
    me_nccl_setup_state(&card->nccl, &statement);
    me_rates_state(&card->rates, &statement);
    if (card->has_machine) {
        me_cluster_state(&card->machine, &statement);
    }
    add_text(&digest, me_str_text(&statement), statement.length);
    me_status status = me_str_status(&statement);
    me_str_fini(&statement);
    if (status == ME_OK) {
        status = add_file(&digest, job->moe.tokens, diag);
    }
    if (status == ME_OK) {
        status = add_file(&digest, job->pipeline.file, diag);
    }
    (void)snprintf(digest_out->text, sizeof digest_out->text,
                   "%016" PRIx64 "%016" PRIx64, digest.a, digest.b);
    return status;
}

me_status me_search_log_read(const char *path, me_diag *diag, me_str *text_out)
{
    struct stat about;
    if (stat(path, &about) != 0 && errno == ENOENT) {
        return ME_OK;
    }
    const me_status status =
        me_input_read(path, ME_INPUT_MAX_BYTES, diag, text_out);
    return status == ME_ERR_IO ? ME_ERR_CONFIG : status;
}

static int compare_keys(const char *assignments, const char *schedule,
                        const me_candidate *candidate)
{
    const int order = strcmp(assignments, candidate->assignments);
    return order != 0 ? order : strcmp(schedule, candidate->choice->name);
}

static int compare_candidates(const void *a, const void *b)
{
    const me_candidate *x = *(me_candidate *const *)a;
    const me_candidate *y = *(me_candidate *const *)b;
    return compare_keys(x->assignments, x->choice->name, y);
}

/** Candidates by what makes them. */
typedef struct index {
    const char *path; /**< of the log */
    const me_search_digest *digest;
    me_candidate **items; /**< sorted; owned */
    uint32_t count;
} index;

static me_candidate *find(const index *of, const char *assignments,
                          const char *schedule)
{
    uint32_t low = 0;
    uint32_t high = of->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const int order =
            compare_keys(assignments, schedule, of->items[middle]);
        if (order == 0) {
            return of->items[middle];
        }
        low = order > 0 ? middle + 1 : low;
        high = order > 0 ? high : middle;
    }
    return NULL;
}

static bool get_number(const json_t *line, const char *key, json_int_t *out)
{
    const json_t *value = json_object_get(line, key);
    *out = json_integer_value(value);
    return json_is_integer(value);
}

/** No number of a result is below zero.
 *  @return false: one is missing, or its type does not hold it */
static bool read_result(const json_t *line, me_search_result *result)
{
    json_int_t number = 0;
    bool is_good = true;
#define ME_SEARCH_READ(type, member)                                           \
    is_good = is_good && get_number(line, #member, &number) && number >= 0 &&  \
              (json_int_t)(type)number == number;                              \
    result->member = (type)number;
    ME_SEARCH_RESULT_LIST(ME_SEARCH_READ)
#undef ME_SEARCH_READ
    return is_good;
}

/** Can it be the candidate's at all? */
static bool is_of(const me_candidate *candidate, const me_search_result *result)
{
#define RISK_NAME(constant, name, phrase) name,
    static const char *const risks[] = {ME_RISK_LIST(RISK_NAME)};
#undef RISK_NAME
#define BASIS_NAME(constant, name) name,
    static const char *const bases[] = {ME_BASIS_LIST(BASIS_NAME)};
#undef BASIS_NAME
    return (size_t)result->risk < sizeof risks / sizeof risks[0] &&
           (size_t)result->basis < sizeof bases / sizeof bases[0] &&
           result->worst_rank < candidate->world;
}

/** @return false: the line is none of a candidate */
static bool read_candidate(const json_t *line, const index *of)
{
    const char *assignments =
        json_string_value(json_object_get(line, "assignments"));
    const char *schedule = json_string_value(json_object_get(line, "schedule"));
    const char *reason = json_string_value(json_object_get(line, "reason"));
    me_search_result result = {0};
    if (assignments == NULL || schedule == NULL ||
        (reason == NULL && !read_result(line, &result))) {
        return false;
    }
    me_candidate *candidate = find(of, assignments, schedule);
    if (candidate != NULL && reason == NULL && !is_of(candidate, &result)) {
        return false;
    }
    if (candidate == NULL || candidate->end != ME_SEARCH_UNDECIDED ||
        candidate->known != ME_SEARCH_UNDECIDED) {
        return true; // of another space
    }
    candidate->result = result;
    candidate->known = reason == NULL ? ME_SEARCH_SIMULATED : ME_SEARCH_REFUSED;
    if (reason != NULL) {
        candidate->reason = me_strdup(reason, "search.reason");
    }
    return reason == NULL || candidate->reason != NULL;
}

static me_status check_head(const char *path, const json_t *line,
                            const me_search_digest *digest, me_diag *diag)
{
    const char *version = json_string_value(json_object_get(line, "memest"));
    const char *job = json_string_value(json_object_get(line, "job"));
    if (version == NULL || job == NULL) {
        return me_fail_at(diag, ME_ERR_CONFIG, path, 1,
                          "no log of a search: give --jsonl another file");
    }
    if (strcmp(version, ME_VERSION) == 0 && strcmp(job, digest->text) == 0) {
        return ME_OK;
    }
    return me_fail_at(diag, ME_ERR_CONFIG, path, 1,
                      "the log of job %.40s by memest %.20s, not of %s by %s: "
                      "give --jsonl another file",
                      job, version, digest->text, ME_VERSION);
}

static me_status read_line(const index *of, const char *text, size_t length,
                           int number, me_diag *diag)
{
    const char *path = of->path;
    json_t *line = NULL;
    me_diag own = {.status = ME_OK};
    me_status status = me_json_parse(path, text, length, &own, &line);
    if (status == ME_ERR_SYNTAX) {
        status =
            me_fail_at(diag, status, path, number, "no JSON: %.300s", own.text);
    } else if (status != ME_OK) {
        *diag = own;
    } else if (number == 1) {
        status = check_head(path, line, of->digest, diag);
    } else if (!read_candidate(line, of)) {
        status = me_fail_at(diag, ME_ERR_SYNTAX, path, number,
                            "no candidate of a search");
    }
    json_decref(line);
    return status;
}

me_status me_search_log_apply(const char *path, const char *text,
                              const me_search_digest *digest, me_diag *diag,
                              me_candidates *candidates)
{
    index of = {.path = path, .digest = digest, .count = candidates->count};
    of.items = me_alloc(of.count, sizeof(me_candidate *), "search.log");
    if (of.items == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for a log");
    }
    for (uint32_t i = 0; i < of.count; i++) {
        of.items[i] = &candidates->items[i];
    }
    if (of.count > 1) {
        qsort(of.items, of.count, sizeof(me_candidate *), compare_candidates);
    }
    me_status status = ME_OK;
    for (int line = 1; status == ME_OK && strchr(text, '\n') != NULL; line++) {
        const size_t length = strcspn(text, "\n");
        status = read_line(&of, text, length, line, diag);
        text += length + 1;
    }
    me_free((void *)of.items);
    return status;
}

static me_status fail_to_write(const char *path, FILE *file, me_diag *diag)
{
    return me_fail(diag, ME_ERR_IO, "%s: cannot write: %s", path,
                   me_stream_reason(file, errno));
}

static me_status write_line(FILE *file, const char *path, json_t *line,
                            me_diag *diag)
{
    me_str text = {0};
    me_status status = me_json_append(line, JSON_COMPACT, &text);
    if (status != ME_OK) {
        (void)me_fail(diag, status, "no host memory for a log");
    } else if (fwrite(me_str_text(&text), 1, text.length, file) !=
                   text.length ||
               fflush(file) != 0) {
        status = fail_to_write(path, file, diag);
    }
    me_str_fini(&text);
    return status;
}

/** What was cut is taken away. */
static me_status keep_whole_lines(const char *path, const char *text,
                                  size_t length, me_diag *diag)
{
    me_outfile *file = NULL;
    me_status status = me_outfile_create(path, diag, &file);
    if (status == ME_OK &&
        fwrite(text, 1, length, me_outfile_stream(file)) != length) {
        status = fail_to_write(path, me_outfile_stream(file), diag);
    }
    if (status == ME_OK) {
        status = me_outfile_commit(file, diag);
    }
    me_outfile_destroy(file);
    return status;
}

/** Is it nothing, or what a first line begins with? */
static bool is_cut_head(const char *text)
{
    static const char head[] = "{\"memest\": \"";
    const size_t length = strlen(text);
    return strncmp(text, head,
                   length < sizeof head - 1 ? length : sizeof head - 1) == 0;
}

me_status me_search_log_open(const char *path, const char *text,
                             const me_search_digest *digest, me_diag *diag,
                             FILE **file_out)
{
    const char *last = strrchr(text, '\n');
    const size_t length = last == NULL ? 0 : (size_t)(last + 1 - text);
    if (length == 0 && !is_cut_head(text)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "%s: no log of a search: name a new file", path);
    }
    if (text[length] != '\0') {
        const me_status status = keep_whole_lines(path, text, length, diag);
        if (status != ME_OK) {
            return status;
        }
    }
    FILE *file = me_output_open(path, true);
    if (file == NULL) {
        return me_fail(diag, ME_ERR_IO, "%s: cannot open: %s", path,
                       me_output_reason(errno));
    }
    me_status status = ME_OK;
    if (length == 0) {
        status = write_line(
            file, path,
            json_pack("{s:s, s:s}", "memest", ME_VERSION, "job", digest->text),
            diag);
    }
    if (status != ME_OK) {
        (void)fclose(file);
        return status;
    }
    *file_out = file;
    return ME_OK;
}

me_status me_search_log_add(FILE *file, const char *path,
                            const me_candidate *candidate, me_diag *diag)
{
    const me_search_result *r = &candidate->result;
    json_t *line = json_pack(
        "{s:s, s:s, s:s}", "assignments", candidate->assignments, "schedule",
        candidate->choice->name, "end", me_search_end_name(candidate->end));
    if (candidate->end == ME_SEARCH_REFUSED) {
        line = me_json_put(line, "reason", json_string(candidate->reason));
        return write_line(file, path, line, diag);
    }
#define ME_SEARCH_WRITE(type, member)                                          \
    line = me_json_put(line, #member, json_integer((json_int_t)r->member));
    ME_SEARCH_RESULT_LIST(ME_SEARCH_WRITE)
#undef ME_SEARCH_WRITE
    return write_line(file, path, line, diag);
}

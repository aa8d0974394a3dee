/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "config/paste.h"
#include "report/comparison.h"
#include "run/fit_internal.h"

#include <stdio.h>
#include <string.h>

enum {
    AT_LEAST_WHOLE = 2
};

static void count(me_fit_run *r, const me_fit_trial *trials, int32_t n)
{
    r->fit.n_tried += n;
    for (int32_t i = 0; i < n; i++) {
        r->fit.n_refused += trials[i].end == ME_FIT_REFUSED ? 1 : 0;
        r->fit.n_over += trials[i].end == ME_FIT_OVER ? 1 : 0;
        if (trials[i].end == ME_FIT_OVER &&
            (r->fit.closest == NULL ||
             trials[i].bytes < r->fit.closest_bytes)) {
            (void)snprintf(r->closest, sizeof r->closest, "%s",
                           trials[i].change.name);
            r->fit.closest = r->closest;
            r->fit.closest_bytes = trials[i].bytes;
        }
    }
}

/** Those that are simulated as a whole: the first of those that may fit. */
typedef struct finalists {
    char (*texts)[ME_FIT_TEXT];
    const char **variants;
    const me_fit_trial **trials;
    int32_t count;
} finalists;

static void finalists_fini(finalists *f)
{
    me_free(f->texts);
    me_free(f->variants);
    me_free(f->trials);
}

static me_status choose_finalists(me_fit_run *r, const me_fit_trial *trials,
                                  int32_t n, me_diag *diag, finalists *f)
{
    const size_t most = (size_t)r->bounds.whole;
    f->texts = me_alloc(most, sizeof *f->texts, "fit.texts");
    f->variants = me_alloc(most, sizeof(char *), "fit.variants");
    f->trials = me_alloc(most, sizeof(me_fit_trial *), "fit.finalists");
    if (f->texts == NULL || f->variants == NULL || f->trials == NULL) {
        return me_fit_no_memory(diag);
    }
    int64_t classes = 0;
    for (int32_t i = 0; i < n; i++) {
        if (trials[i].end != ME_FIT_OPEN) {
            continue;
        }
        const bool has_room =
            f->count < AT_LEAST_WHOLE ||
            classes + trials[i].n_classes <= r->bounds.classes;
        if (f->count == r->bounds.whole || !has_room ||
            !me_fit_change_variant(&trials[i].change, r->base.finished,
                                   f->texts[f->count])) {
            r->fit.n_left++;
            continue;
        }
        classes += trials[i].n_classes;
        f->variants[f->count] = f->texts[f->count];
        f->trials[f->count++] = &trials[i];
    }
    return ME_OK;
}

/** What is pasted for a setting. */
static me_status make_flags(const me_compare_row *row, const char *text,
                            me_diag *diag, me_str *flags)
{
    me_variant variant;
    const me_status status = me_variant_parse(text, diag, &variant);
    if (status == ME_OK) {
        me_paste_append(row->report->config, (const char *const *)variant.sets,
                        variant.n_sets, flags);
    }
    me_variant_fini(&variant);
    return status == ME_OK ? me_str_status(flags) : status;
}

static const me_fit_trial *trial_of(const finalists *f, const char *name)
{
    for (int32_t i = 0; i < f->count; i++) {
        if (strcmp(f->trials[i]->change.name, name) == 0) {
            return f->trials[i];
        }
    }
    return f->trials[0];
}

/** Two settings of which one did nothing more. */
static bool is_equal(const me_compare_row *a, const me_compare_row *b)
{
    const me_step_time *s = a->report->time.step;
    const me_step_time *t = b->report->time.step;
    return a->report->verdict.worst_bytes == b->report->verdict.worst_bytes &&
           (s == NULL || t == NULL || s->step_ns == t->step_ns);
}

/** Does the job do the same with a change before? */
static bool is_repeated(const me_compare_row *rows, size_t n,
                        const me_compare_row *row)
{
    for (size_t i = 0; i < n; i++) {
        if (is_equal(&rows[i], row)) {
            return true;
        }
    }
    return false;
}

static me_status add_offer(me_fit_run *r, const finalists *f,
                           const me_compare_line *line, me_diag *diag)
{
    const size_t i = r->fit.n_offers;
    const me_compare_row *row = line->row;
    const me_fit_trial *trial = trial_of(f, row->variant);
    char text[ME_FIT_TEXT];
    (void)me_fit_change_variant(&trial->change, r->base.finished, text);
    const me_status status = make_flags(row, text, diag, &r->flags[i]);
    r->offers[i] =
        (me_fit_offer){.name = row->variant,
                       .assignments = row->assignments,
                       .flags = me_str_text(&r->flags[i]),
                       .report = row->report,
                       .changes_numerics = trial->change.changes_numerics,
                       .place = line->place,
                       .is_tie = line->is_tie};
    r->fit.n_offers = i + 1;
    return status;
}

static me_status add_offers(me_fit_run *r, const finalists *f,
                            const me_comparison *fitting, me_diag *diag)
{
    me_compare_line *lines = NULL;
    me_status status = ME_OK;
    if (fitting->n_rows > 0) {
        status = me_compare_lines_create(fitting, diag, &lines);
    }
    for (size_t i = 0; i < fitting->n_rows && status == ME_OK; i++) {
        status = add_offer(r, f, &lines[i], diag);
    }
    me_compare_lines_destroy(lines, fitting->n_rows);
    return status;
}

/** What fits of what was simulated; the others are counted. @return how many */
static size_t pick_fitting(me_fit_run *r, me_compare_row *rows)
{
    const me_comparison *all = me_compare_run_comparison(r->whole);
    size_t n = 0;
    for (size_t i = 0; rows != NULL && i < all->n_rows; i++) {
        const me_compare_row *row = &all->rows[i];
        if (row->report == NULL) {
            r->fit.n_refused++;
        } else if (!me_verdict_lets_go(&row->report->verdict)) {
            r->fit.n_over++;
        } else if (is_repeated(rows, n, row)) {
            r->fit.n_equal++;
        } else {
            rows[n++] = *row;
        }
    }
    return n;
}

/** On process 0: the offers, in the order of a comparison. */
static me_status judge(me_fit_run *r, const finalists *f, me_diag *diag)
{
    me_comparison fitting = *me_compare_run_comparison(r->whole);
    me_compare_row *rows = me_alloc(fitting.n_rows, sizeof *rows, "fit.rows");
    r->offers = me_alloc(fitting.n_rows, sizeof *r->offers, "fit.offers");
    r->flags = me_alloc(fitting.n_rows, sizeof *r->flags, "fit.flags");
    if (rows == NULL || r->offers == NULL || r->flags == NULL) {
        me_free(rows);
        return me_fit_no_memory(diag);
    }
    fitting.n_rows = pick_fitting(r, rows);
    fitting.rows = rows;
    const me_status status = add_offers(r, f, &fitting, diag);
    me_free(rows);
    return status;
}

/** @param found_out  does one of them fit? */
static me_status simulate_whole(me_fit_run *r, const finalists *f,
                                me_diag *diag, bool *found_out)
{
    const me_compare_request request = {
        .variants = f->variants,
        .n_variants = (size_t)f->count,
        .leaves_job_out = true,
        .strict = r->request.strict,
        .shows_progress = r->request.shows_progress,
        .threads = r->request.threads,
    };
    me_compare_run_destroy(r->whole);
    r->whole = NULL;
    me_status status =
        me_compare_run_create(r->transport, &request, diag, &r->whole);
    status = me_transport_agree(r->transport, status, diag);
    if (status == ME_OK) {
        status = me_compare_run_all(r->whole, r->base.job, diag);
    }
    if (status == ME_OK && me_transport_rank(r->transport) == 0) {
        for (size_t i = 0; i < r->fit.n_offers; i++) {
            me_str_fini(&r->flags[i]);
        }
        me_free(r->offers);
        me_free(r->flags);
        r->offers = NULL;
        r->flags = NULL;
        status = judge(r, f, diag);
    }
    status = me_transport_agree(r->transport, status, diag);
    r->fit.offers = r->offers;
    *found_out = r->fit.n_offers > 0;
    return status == ME_OK ? me_fit_from_first(r->transport, found_out,
                                               sizeof *found_out, diag)
                           : status;
}

me_status me_fit_try(me_fit_run *run, me_fit_trial *trials, int32_t n,
                     me_diag *diag, bool *found_out)
{
    me_fit_run *r = run;
    *found_out = false;
    r->base.tried = r->fit.n_together == 1   ? "changes tried"
                    : r->fit.n_together == 2 ? "pairs of changes tried"
                                             : "further changes tried";
    me_status status = me_fit_probe(&r->base, trials, n, diag);
    status = me_transport_agree(r->transport, status, diag);
    if (status != ME_OK) {
        return status;
    }
    count(r, trials, n);
    finalists f = {.count = 0};
    status = me_transport_agree(r->transport,
                                choose_finalists(r, trials, n, diag, &f), diag);
    if (status == ME_OK && f.count > 0) {
        status = simulate_whole(r, &f, diag, found_out);
    }
    finalists_fini(&f);
    return status;
}

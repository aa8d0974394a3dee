/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/framework.h"
#include "report/compare_format.h"

#include <string.h>

static bool has_time(const me_compare_print *print)
{
    for (size_t i = 0; i < print->comparison->n_rows; i++) {
        if (me_compare_step(&print->lines[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/** Why there are no times: of the first setting that says so. */
static const char *reason_against_time(const me_compare_print *print)
{
    for (size_t i = 0; i < print->comparison->n_rows; i++) {
        const me_report *report = print->lines[i].row->report;
        if (report != NULL && report->time.reason[0] != '\0') {
            return report->time.reason;
        }
    }
    return "the card has no rates";
}

/** Of the first setting whose step is a lower bound; NULL: none is. */
static const char *missing_of_host(const me_compare_print *print)
{
    const char *missing = NULL;
    for (size_t i = 0; i < print->comparison->n_rows && missing == NULL; i++) {
        missing = me_compare_host_lacks(&print->lines[i]);
    }
    return missing;
}

static bool waits_for_transfers(const me_report *report)
{
    const me_config *c = report->config;
    return me_framework_traits_of(c)->waits_for_transfers(c);
}

static bool is_same_work(const me_report *a, const me_report *b)
{
    const me_config *x = a->config;
    const me_config *y = b->config;
    return x->train.global_batch_size == y->train.global_batch_size &&
           x->model.seq_length == y->model.seq_length &&
           x->torch.num_microbatches == y->torch.num_microbatches &&
           strcmp(x->torch.input_shape, y->torch.input_shape) == 0;
}

/** Sentences about why steps may not be compared, for what there is. */
static void explain_differences(const me_compare_print *print, me_str *text)
{
    const me_report *first = NULL;
    bool is_one_work = true;
    bool waits = false;
    bool runs_ahead = false;
    for (size_t i = 0; i < print->comparison->n_rows; i++) {
        const me_report *report = print->comparison->rows[i].report;
        if (report == NULL) {
            continue;
        }
        first = first == NULL ? report : first;
        is_one_work = is_one_work && is_same_work(first, report);
        waits = waits || waits_for_transfers(report);
        runs_ahead = runs_ahead || (report->config->parallel.pipeline > 1 &&
                                    !waits_for_transfers(report));
    }
    if (waits && runs_ahead && print->comparison->durations == NULL) {
        me_str_append(
            text, " Megatron-LM's own functions without overlapped transfers "
                  "(1f1b) wait on the host for each batch of sends and "
                  "receives, the other orders do not: what they gain by that "
                  "is no merit of the order.");
    }
    if (!is_one_work) {
        me_str_append(text, " Settings differ in what a step trains on: set "
                            "steps against the samples in them.");
    }
}

/** By how much peaks may be higher where sent tensors come back late. */
static void explain_late_frees(const me_compare_print *print, me_str *text)
{
    double most = 1;
    for (size_t i = 0; i < print->comparison->n_rows; i++) {
        const me_compare_line *line = &print->lines[i];
        for (int32_t s = 0; s < line->n_stages; s++) {
            const me_compare_stage *stage = &line->stages[s];
            const double late = (double)stage->result->late.requested_bytes /
                                (double)stage->requested_bytes;
            most = stage->result->late.is_known && stage->requested_bytes > 0 &&
                           late > most
                       ? late
                       : most;
        }
    }
    if (most >= 1.0005) { // else it would be 0.0 %
        me_str_printf(text,
                      " Bytes are the lower ends of ranges: where sent tensors "
                      "come back late, a stage requests up to %.1f %% more.",
                      100 * (most - 1));
    }
}

static void explain_prediction(const me_compare_print *print, me_str *text)
{
    me_str_printf(text,
                  " What fits comes first, by predicted step time; times "
                  "less than %.0f %% above the fastest of a place share "
                  "it (=), since the prediction is no better.",
                  100 * ME_TIME_TIE);
    const char *missing = missing_of_host(print);
    if (missing != NULL) {
        me_str_printf(text,
                      " >= is a lower bound (of tokens/s <= an upper one): the "
                      "host's time for %s is not in it, so such a setting "
                      "comes behind those and has no place.",
                      missing);
    }
}

static void explain_durations(const me_ticks *t, me_str *text)
{
    me_str_printf(text,
                  " Durations are fixed, in ticks: F=%lld, I=%lld, W=%lld, "
                  "B=%lld, comm=%lld",
                  (long long)t->forward, (long long)t->input_gradient,
                  (long long)t->weight_gradient,
                  (long long)me_ticks_backward(t), (long long)t->transfer);
    if (t->overlapped > 0) {
        me_str_printf(text, ", FB=%lld", (long long)t->overlapped);
    }
    me_str_append(
        text,
        ", of a rank's whole share of the layers (one of c chunks takes a "
        "c-th); nothing else is in the step. bubble is the step less the "
        "busiest stage, span bubble the largest idle within a stage's own "
        "span. What fits comes first, by step; equal steps share a place (=).");
}

/** Settings that have no place for what they leave out. */
static void explain_open(const me_compare_print *print, me_str *text)
{
    bool is_any = false;
    for (size_t i = 0; i < print->comparison->n_rows; i++) {
        is_any = is_any || print->lines[i].is_open;
    }
    if (is_any) {
        me_str_append(text, " ? has no place: what is not modelled of it may "
                            "be of any size, or larger than its margin.");
    }
}

void me_compare_explain(const me_compare_print *print, me_str *text)
{
    me_str_append(text, "Bytes are the most of any rank in iteration 1, in "
                        "GiB; in flight are micro-batches of a whole rank.");
    if (print->comparison->durations != NULL) {
        explain_durations(print->comparison->durations, text);
    } else if (has_time(print)) {
        explain_prediction(print, text);
    } else {
        me_str_printf(text,
                      " Step times are not predicted: %s. What fits comes "
                      "first.",
                      reason_against_time(print));
    }
    explain_open(print, text);
    explain_late_frees(print, text);
    explain_differences(print, text);
    me_str_append(text, "\n");
}

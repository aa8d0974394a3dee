/**
 * @file
 * A whole job of a fuzz target: estimated, printed in every format, and held to
 * what must hold of any report.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_SUPPORT_FUZZ_JOB_H
#define MEMEST_TESTS_SUPPORT_FUZZ_JOB_H

#include "memest/memest.h"
#include "support/fuzz.h"

/** Text is whole, and nothing in it steers a terminal. */
static inline void fuzz_check_format(const memest_report *report,
                                     memest_format format, memest_error *error)
{
    char *text = NULL;
    size_t length = 0;
    const memest_status status =
        memest_report_text(report, format, &text, &length, error);
    if (status == MEMEST_ERR_UNSUPPORTED) {
        return; /* pages without Vega */
    }
    if (status != MEMEST_OK || strlen(text) != length) {
        abort();
    }
    for (size_t i = 0; format != MEMEST_FORMAT_HTML && i < length; i++) {
        if ((unsigned char)text[i] < ' ' && text[i] != '\n') {
            abort();
        }
    }
    memest_text_destroy(text);
}

/** The categories of a peak add up to it. */
static inline void fuzz_check_peak(const memest_report *report)
{
    memest_peak peak = MEMEST_INIT(memest_peak);
    uint64_t sum = 0;
    if (!memest_report_peak(report, 0, &peak)) {
        return;
    }
    for (int c = 0; c < 32; c++) {
        sum += memest_report_peak_category_bytes(report, 0, (memest_category)c);
    }
    if (sum != peak.requested_bytes ||
        (peak.allocated_bytes != MEMEST_BYTES_UNKNOWN &&
         peak.allocated_bytes < peak.requested_bytes)) {
        abort();
    }
}

/** Estimate a job that could be read, and give it back. */
static inline void fuzz_run_job(memest_job *job, memest_error *error,
                                const memest_estimate_options *options)
{
    memest_report *report = NULL;
    const memest_status status = memest_estimate(job, options, &report, error);
    if (status == MEMEST_OK) {
        fuzz_check_format(report, MEMEST_FORMAT_TEXT, error);
        fuzz_check_format(report, MEMEST_FORMAT_JSON, error);
        fuzz_check_format(report, MEMEST_FORMAT_CSV, error);
        fuzz_check_peak(report);
    } else {
        fuzz_check_line(memest_error_text(error));
        if (status == MEMEST_ERR_INTERNAL || status == MEMEST_ERR_MISMATCH ||
            status == MEMEST_ERR_STOPPED) {
            (void)fprintf(stderr, "%s\n", memest_error_text(error));
            abort();
        }
    }
    memest_report_destroy(report);
}

#endif /* MEMEST_TESTS_SUPPORT_FUZZ_JOB_H */

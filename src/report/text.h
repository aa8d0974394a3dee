/**
 * @file
 * The sections of the text report, one source file each. Every function
 * appends its section, beginning with an empty line and a title.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_REPORT_TEXT_H
#define MEMEST_REPORT_TEXT_H

#include "report/job_report.h"
#include "report/table.h"

/** The whole text report. Local.
 *
 *  @return ME_OK, ME_ERR_NOMEM */
me_status me_text_append(const me_report *report, bool is_colored,
                         me_str *text) ME_MUST_CHECK;

/**
 * The report on one screen: at most 60 lines, where nobody asks for each rank and
 * a job that dies has no long message. Local.
 *
 * @param shows_ranks  each rank, in place of each stage
 * @return ME_OK, ME_ERR_NOMEM
 */
me_status me_brief_append(const me_report *report, bool shows_ranks,
                          bool is_colored, me_str *text) ME_MUST_CHECK;

/** "memest VERSION: JOB". */
void me_text_title(const me_report *report, me_str *text);

/** What the job is: model, grid, batch, precision, implementations. */
void me_text_head(const me_report *report, me_str *text);

/** Title, verdict, its reason and band, how the job ends, an empty line. */
void me_text_top(const me_report *report, bool is_brief, bool is_colored,
                 me_str *text);

/** "  rank 3 peaks at 91.2 GiB in layer 5's core attention …: 38 % activation, …",
 *  a line; nothing without a peak. */
void me_text_reason(const me_report *report, me_str *text);

/** The peak of the steady iteration, or of a later one that takes more: the
 *  first step that a loss scale lets through. NULL: there is none. Local. */
const me_peak_result *me_report_life_peak(const me_rank_result *worst);

/** The least and the most of each stage's ranks, in at most @p n_shown >= 2 rows:
 *  the last one is of all others. */
me_status me_text_stages(const me_report *report, size_t n_shown,
                         me_str *text) ME_MUST_CHECK;

/** Ranks by stage with their peaks; how stages differ.
 *
 *  @param is_joined  equal ranks of a stage share a row */
me_status me_text_ranks(const me_report *report, bool is_joined,
                        me_str *text) ME_MUST_CHECK;

/** The joined table of me_text_ranks() alone, as @p print writes tables. Local. */
me_status me_ranks_table(const me_report *report, me_table_printer print,
                         me_str *text) ME_MUST_CHECK;

/** Ranges of peaks, where late frees make them ranges, in tables of at most
 *  @p n_shown >= 2 rows: the last one is of all others. */
me_status me_text_late(const me_report *report, size_t n_shown,
                       me_str *text) ME_MUST_CHECK;

/** Where the worst rank's peak goes.
 *
 *  @param n_shown       modules and operations
 *  @param n_categories  rows, >= 1: the last one is of all others */
me_status me_text_peak(const me_report *report, size_t n_shown,
                       size_t n_categories, me_str *text) ME_MUST_CHECK;

/** The table of a peak's tensors alone, as @p print writes tables. Local.
 *  @param n_shown  at most 40 */
me_status me_contributors_table(const me_peak_result *peak, size_t n_shown,
                                me_table_printer print,
                                me_str *text) ME_MUST_CHECK;

/** Append when a peak was and what made it: " in iteration 1, backward of
 *  micro-batch 0, in MODULE, by OP". Local. */
void me_text_instant(const me_peak_result *peak, me_str *text);

/** What the worst rank passes to collectives in the steady iteration. */
me_status me_text_volume(const me_report *report, me_str *text) ME_MUST_CHECK;

/** Predicted time of a step, and what each stage spends it on. */
me_status me_text_time(const me_report *report, me_str *text) ME_MUST_CHECK;
/** The first line of it. */
void me_text_step(const me_report *report, me_str *text);
me_status me_text_links(const me_report *report, me_str *text) ME_MUST_CHECK;

/** Modules of the worst rank, equal ones folded. */
me_status me_text_modules(const me_report *report, me_str *text) ME_MUST_CHECK;

/** The table of me_text_modules() alone, as @p print writes tables. Local. */
me_status me_modules_table(const me_report *report, me_table_printer print,
                           me_str *text) ME_MUST_CHECK;

/** Iterations and points of the worst rank. */
me_status me_text_course(const me_report *report, me_str *text) ME_MUST_CHECK;

/** What the worst rank's card holds outside of the allocator, item by item. */
me_status me_text_device(const me_report *report, me_str *text) ME_MUST_CHECK;

/** Of what its allocator reserves, what CUDA graphs alone can use. */
me_status me_text_graphs(const me_report *report, me_str *text) ME_MUST_CHECK;

/** What the worst rank's host holds in its card's stead. */
me_status me_text_host(const me_report *report, me_str *text) ME_MUST_CHECK;

/** How the job ends where memory does not suffice, with what PyTorch says then, or
 *  in a line. */
void me_text_end(const me_report *report, me_str *text);
void me_text_end_line(const me_report *report, me_str *text);

/** What is not modelled, and what was assumed. */
void me_text_notes(const me_report *report, me_str *text);

/** " (higher: some)": the direction and reach of what is not modelled; nothing
 *  where it has none. Local. */
void me_effect_append(me_effect effect, me_str *text);

/** The band of the verdict, with its parts; nothing if there is none. */
void me_text_band(const me_report *report, me_str *text);

/** What the node keeps whose host holds most; nothing where none does. */
void me_text_node(const me_report *report, me_str *text);

/** The worst rank's result, borrowed. Local. */
const me_rank_result *me_report_worst(const me_report *report);

/** The verdict in one screen: what `check` prints. Local.
 *
 *  @param is_brief  at most 60 lines: not all of what would make it fit, nor all
 *                   assumptions
 *  @return ME_OK, ME_ERR_NOMEM */
me_status me_check_print(const me_report *report, bool is_brief,
                         me_str *text) ME_MUST_CHECK;

#endif /* MEMEST_REPORT_TEXT_H */

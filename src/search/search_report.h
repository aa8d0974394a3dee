/**
 * @file
 * What a search found, printed: text, JSON, CSV.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SEARCH_SEARCH_REPORT_H
#define MEMEST_SEARCH_SEARCH_REPORT_H

#include "base/str.h"
#include "search/search_run.h"

/**
 * Append what was found. Local.
 *
 * @param format  ME_FORMAT_JSON or ME_FORMAT_CSV, else text
 * @return ME_OK, ME_ERR_NOMEM, ME_ERR_OVERFLOW (a number that JSON cannot hold)
 */
me_status me_search_append(const me_search_found *found, me_format format,
                           me_diag *diag, me_str *text) ME_MUST_CHECK;

/** @name The formats, in a file each; as me_search_append()
 *  @{ */
me_status me_search_text(const me_search_found *found,
                         me_str *text) ME_MUST_CHECK;
me_status me_search_json(const me_search_found *found,
                         me_str *text) ME_MUST_CHECK;
me_status me_search_csv(const me_search_found *found,
                        me_str *text) ME_MUST_CHECK;

/** @} */

/** The schedule of a row, "1f1b", "interleaved:5"; "": none is asked for, and
 *  the degrees imply it. Local. */
static inline const char *me_search_schedule(const me_search_row *row)
{
    return row->front.candidate->choice->name;
}

/** Tokens a second; 0: nobody says. Local. */
double me_search_tokens(const me_search_result *result);

/** A row's plan as a report without results: what it assumes and leaves out. Its
 *  assumptions are @p texts, room for all of them. Local. */
me_report me_search_notes(const me_search_row *row, char **texts);

/** How many assumptions a row has. Local. */
uint32_t me_search_n_notes(const me_search_row *row);

#endif /* MEMEST_SEARCH_SEARCH_REPORT_H */

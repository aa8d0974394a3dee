/**
 * @file
 * The readers of profiles, a row a kind of file. Nobody else includes this.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_DIFF_PROFILE_READ_H
#define MEMEST_DIFF_PROFILE_READ_H

#include "diff/profile.h"

#include <stddef.h>
#include <stdio.h>

/** A kind of file. */
typedef struct me_profile_reader {
    const char *source; /**< what it is */
    /** Is it one, by its first bytes? */
    bool (*is_one)(const char *head, size_t length);
    /** Read it, from its first byte on. */
    me_status (*read)(me_profile *profile, FILE *file, me_diag *diag);
} me_profile_reader;

extern const me_profile_reader me_report_reader;
extern const me_profile_reader me_pickle_reader_of_snapshots;
extern const me_profile_reader me_json_reader_of_snapshots;
extern const me_profile_reader me_megatron_log_reader;
extern const me_profile_reader me_torchtitan_log_reader;
extern const me_profile_reader me_nvidia_smi_reader;
extern const me_profile_reader me_nvidia_smi_nameless_reader;
extern const me_profile_reader me_nvidia_smi_monitor_reader;

/** Bytes of a terminal's escape sequence at @p text, such as a colour's (ECMA-48's
 *  control sequences); 0: there is none, or it goes on behind them. */
size_t me_escape_bytes(const char *text, size_t length);

/** Does a text stand in those bytes, whatever colours it has? */
bool me_head_has(const char *head, size_t length, const char *text);

/** Each line of a file, without its end and without a terminal's escape sequences;
 *  ends where a call fails. A carriage return ends a line too, as progress bars
 *  write it. Of a line that has no end the profile says that it is cut.
 *  @return ME_OK; ME_ERR_IO, ME_ERR_NOMEM; ME_ERR_SYNTAX for a line beyond all
 *  bounds; what @p line returns */
me_status me_profile_lines(me_profile *profile, FILE *file,
                           me_status (*line)(me_profile *profile, char *text,
                                             int number, me_diag *diag),
                           me_diag *diag) ME_MUST_CHECK;

/** How a program writes bytes. */
typedef struct me_log_unit {
    double bytes;     /**< of one */
    const char *name; /**< that may follow the number; "": none */
    const char *ends; /**< what may follow both, beside the line's end */
} me_log_unit;

/** The number that begins at @p text behind blanks, in bytes; false: there is none,
 *  or something else follows it. */
bool me_log_bytes(const char *text, const me_log_unit *unit,
                  uint64_t *bytes_out);

/** May a number, or what stands in its place, go on where a line is cut? It is at
 *  the line's end.
 *  @param decimals  that are enough to say it; 0: only what follows it does */
bool me_log_goes_on(const char *text, int decimals);

/** The whole number behind @p mark in a line; @p missing where there is none. */
int32_t me_log_number(const char *line, const char *mark, int32_t missing);

/** @return ME_ERR_NOMEM, with the file's name */
me_status me_log_no_memory(const me_profile *profile,
                           me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_DIFF_PROFILE_READ_H */

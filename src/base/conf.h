/**
 * @file
 * Files in libconfig's format: the one place where libconfig parses. It is
 * given text that was scanned (base/source.h), never a file or a stream, so
 * that nothing in a file ends the process, leaks or is wrapped.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_BASE_CONF_H
#define MEMEST_BASE_CONF_H

#include "base/source.h"
#include "base/status.h"

#include <libconfig.h>
#include <stdbool.h>

/**
 * Parse what was scanned. Local.
 *
 * @param where   file name for messages
 * @param source  of me_source_scan() or me_source_scan_lists()
 * @param conf    of config_init(); the caller destroys it in any case
 * @return ME_OK; ME_ERR_SYNTAX with the line
 */
me_status me_conf_parse(const char *where, const me_source *source,
                        me_diag *diag, config_t *conf) ME_MUST_CHECK;

/**
 * Read text that may have lists and includes nothing. Local.
 *
 * @param where   file name for messages
 * @param what    such as "a card", for a message
 * @param text    bytes, need not end with a NUL
 * @param length  their number
 * @param conf    of config_init(); the caller destroys it in any case
 * @return as me_source_scan_lists() and me_conf_parse(); ME_ERR_CONFIG for an
 *         include
 */
me_status me_conf_read(const char *where, const char *what, const char *text,
                       size_t length, me_diag *diag,
                       config_t *conf) ME_MUST_CHECK;

/** As me_conf_read(), of a file; also as me_input_read(). Local. */
me_status me_conf_load(const char *path, const char *what, me_diag *diag,
                       config_t *conf) ME_MUST_CHECK;

/** A number, whole or not, of a setting; NULL is none. @return is it one? */
bool me_conf_number(const config_setting_t *setting, double *value_out);

/** Of the file where a setting is; 0 for NULL. */
int me_conf_line(const config_setting_t *setting);

#endif /* MEMEST_BASE_CONF_H */

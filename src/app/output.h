/**
 * @file
 * Where text goes that is no report: the options, a stage, a replay.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_APP_OUTPUT_H
#define MEMEST_APP_OUTPUT_H

#include "app/cli.h"
#include "base/status.h"
#include "base/str.h"
#include "base/text_wrap.h"
#include "collectives/transport.h"

#include <stdbool.h>

/**
 * The terminal that a command's text goes to; none where it goes elsewhere, is no
 * text for people, or mpirun, which gives its processes a terminal of its own, has
 * started us. It is as wide as it says, else as COLUMNS does. For NO_COLOR see
 * no-color.org. Local.
 */
me_terminal me_terminal_of(const me_cli *cli);

/**
 * Text to a file or stdout, all of it or a reason; lines of a text that is for a
 * terminal (its columns) are broken to fit. Local.
 *
 * @param path  of a file, written whole or not at all; NULL or "-": stdout
 * @return ME_OK; ME_ERR_NOMEM if the text is not whole, ME_ERR_IO
 */
me_status me_print_text(const me_str *text, const char *path,
                        me_diag *diag) ME_MUST_CHECK;

/** May it be told on the terminal how far the work is: this process is alone, and
 *  no launcher has started it? Local. */
bool me_shows_progress(const me_transport *transport);

#endif /* MEMEST_APP_OUTPUT_H */

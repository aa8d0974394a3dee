/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/output.h"

#include "base/outfile.h"
#include "base/parse.h"
#include "collectives/launcher.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    WIDTH_MAX = 10000 /* columns of a terminal */
};

static me_status print_to_file(const me_str *text, const char *path,
                               me_diag *diag)
{
    me_outfile *file = NULL;
    me_status status = me_outfile_create(path, diag, &file);
    if (status == ME_OK) {
        (void)fwrite(me_str_text(text), 1, text->length,
                     me_outfile_stream(file));
        status = me_outfile_commit(file, diag);
    }
    me_outfile_destroy(file);
    return status;
}

me_terminal me_terminal_of(const me_cli *cli)
{
    const char *no_color = getenv("NO_COLOR");
    const char *name = getenv("TERM");
    const char *columns = getenv("COLUMNS");
    uint64_t width = 0;
    struct winsize size;
    if (strcmp(cli->format, "text") != 0 || cli->output != NULL ||
        isatty(STDOUT_FILENO) == 0 || me_launcher_is_present()) {
        return (me_terminal){.width = 0};
    }
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        width = size.ws_col;
    } else if (columns == NULL || me_parse_u64(columns, &width) != ME_OK ||
               width > WIDTH_MAX) {
        width = 0;
    }
    return (me_terminal){
        .width = (unsigned)width,
        .is_colored = (no_color == NULL || *no_color == '\0') && name != NULL &&
                      *name != '\0' && strcmp(name, "dumb") != 0,
    };
}

/** The text with its lines broken for the terminal that it is for. */
static me_status print_wrapped(const me_str *text, const char *path,
                               me_diag *diag)
{
    const me_terminal terminal = {.width = text->columns};
    me_str wrapped = {0};
    me_text_wrap(me_str_text(text), &terminal, &wrapped);
    const me_status status = me_print_text(&wrapped, path, diag);
    me_str_fini(&wrapped);
    return status;
}

me_status me_print_text(const me_str *text, const char *path, me_diag *diag)
{
    if (me_str_status(text) != ME_OK) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for the text");
    }
    if (text->columns > 0) {
        return print_wrapped(text, path, diag);
    }
    if (path != NULL && strcmp(path, "-") != 0) {
        return print_to_file(text, path, diag);
    }
    errno = 0;
    if (fputs(me_str_text(text), stdout) < 0 || fflush(stdout) != 0) {
        return me_fail(diag, ME_ERR_IO, "cannot write to stdout: %s",
                       me_stream_reason(stdout, errno));
    }
    return ME_OK;
}

bool me_shows_progress(const me_transport *transport)
{
    return me_transport_size(transport) == 1 && !me_launcher_is_present();
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/output.h"

#include "base/outfile.h"
#include "collectives/launcher.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

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

me_status me_print_text(const me_str *text, const char *path, me_diag *diag)
{
    if (me_str_status(text) != ME_OK) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for the text");
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

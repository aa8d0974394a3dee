/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/diff_command.h"

#include "base/alloc.h"
#include "base/parse.h"
#include "base/progress.h"
#include "diff/diff.h"

#include <string.h>
#include <sys/stat.h>

enum {
    PERCENT = 100
};

static me_status read_flags(const me_cli *cli, me_diag *diag,
                            uint64_t *within_out)
{
    if (cli->within != NULL &&
        me_parse_bytes(cli->within, within_out) != ME_OK) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--within %s: must be a whole number of bytes, or of "
                       "KiB, MiB, GiB or TiB, such as 1MiB",
                       cli->within);
    }
    return ME_OK;
}

static me_status compare(const me_cli *cli, const me_profile *a,
                         const me_profile *b, me_diag *diag, me_diff *diff,
                         me_str *text)
{
    me_status status = me_diff_init(a, b, cli->rank, diag, diff);
    if (status != ME_OK) {
        return status;
    }
    status = strcmp(cli->format, "json") == 0 ? me_diff_json(diff, text)
                                              : me_diff_text(diff, text);
    return status == ME_OK
               ? ME_OK
               : me_fail(diag, status, "no host memory for the text");
}

/** Of a file that is not there 0, which reading it says. */
static uint64_t size_of(const char *path)
{
    struct stat is;
    return stat(path, &is) == 0 && is.st_size > 0 ? (uint64_t)is.st_size : 0;
}

static me_status read_files(const me_cli *cli, bool shows_progress,
                            me_diag *diag, me_profile **a_out,
                            me_profile **b_out)
{
    const uint64_t first = size_of(cli->operand);
    const uint64_t second = size_of(cli->second);
    me_progress progress = {.total = 0};
    me_progress_begin(&progress, shows_progress, "% of the files read",
                      PERCENT);
    me_progress_part part = {.progress = &progress, .bytes = first};
    part.steps = first == 0 ? 0
                            : (uint32_t)((double)first * PERCENT /
                                         ((double)first + (double)second));
    const uint32_t rest = PERCENT - part.steps;
    me_status status = me_profile_read(cli->operand, &part, diag, a_out);
    if (status == ME_OK) {
        part = (me_progress_part){
            .progress = &progress, .bytes = second, .steps = rest};
        status = me_profile_read(cli->second, &part, diag, b_out);
    }
    me_progress_end(&progress);
    return status;
}

me_status me_diff_command(const me_cli *cli, bool shows_progress, me_diag *diag,
                          me_str *text, bool *differs_out)
{
    const uint64_t lost = me_alloc_lost();
    uint64_t within = 0;
    me_profile *a = NULL;
    me_profile *b = NULL;
    me_diff diff = {.pairs = NULL};
    me_status status = read_flags(cli, diag, &within);
    if (status == ME_OK) {
        status = read_files(cli, shows_progress, diag, &a, &b);
    }
    if (status == ME_OK) {
        status = compare(cli, a, b, diag, &diff, text);
        *differs_out = cli->within != NULL && diff.largest_bytes > within;
    }
    me_diff_fini(&diff);
    me_profile_destroy(a);
    me_profile_destroy(b);
    return me_alloc_check(lost, status, diag);
}

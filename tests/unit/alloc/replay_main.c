/* SPDX-License-Identifier: BSD-3-Clause */
/* The replay alone: `replay_tool replay FILE|- [--format json|text]
 * [--alloc-conf TEXT] [--memory-limit BYTES] [--device-total BYTES]`. What
 * tests and the benchmark run. */
#include "alloc/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    EXIT_INTERNAL = 1,
    EXIT_USAGE = 2,
    EXIT_NO_FIT = 3
};

static int report_failure(const me_diag *diag)
{
    if (diag->where[0] != '\0') {
        (void)fprintf(stderr, "%s:%d: ", diag->where, diag->line);
    }
    (void)fprintf(stderr, "%s\n", diag->text);
    return diag->status == ME_ERR_IO || diag->status == ME_ERR_NOMEM
               ? EXIT_INTERNAL
               : EXIT_USAGE;
}

static me_status read_option(const char *name, const char *value, me_diag *diag,
                             me_replay_options *options)
{
    if (strcmp(name, "--format") == 0) {
        return me_replay_format_find(value, &options->format)
                   ? ME_OK
                   : me_fail(diag, ME_ERR_CONFIG, "unknown format %s", value);
    } else if (strcmp(name, "--alloc-conf") == 0) {
        options->conf_text = value;
        return me_alloc_conf_parse(value, diag, &options->pool.conf);
    } else if (strcmp(name, "--memory-limit") == 0) {
        options->pool.limit_bytes = strtoull(value, NULL, 10);
    } else if (strcmp(name, "--device-total") == 0) {
        options->pool.device_total_bytes = strtoull(value, NULL, 10);
    } else {
        return me_fail(diag, ME_ERR_CONFIG, "unknown option %s", name);
    }
    return ME_OK;
}

int main(int argc, char **argv)
{
    me_diag diag = {0};
    me_replay_options options = me_replay_options_default();
    if (argc < 3 || argc % 2 == 0 || strcmp(argv[1], "replay") != 0) {
        (void)fprintf(stderr, "usage: %s replay FILE|- [OPTION VALUE]…\n",
                      argv[0]);
        return EXIT_USAGE;
    }
    for (int i = 3; i + 1 < argc; i += 2) {
        if (read_option(argv[i], argv[i + 1], &diag, &options) != ME_OK) {
            return report_failure(&diag);
        }
    }
    me_str report = {0};
    me_replay_summary summary = {0};
    const me_status status =
        me_replay_run(&options, argv[2], &diag, &summary, &report);
    if (status == ME_OK) {
        (void)fputs(me_str_text(&report), stdout);
    }
    me_str_fini(&report);
    if (status != ME_OK) {
        return report_failure(&diag);
    }
    return summary.is_oom ? EXIT_NO_FIT : 0;
}

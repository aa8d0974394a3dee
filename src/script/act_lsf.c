/* SPDX-License-Identifier: BSD-3-Clause */
/* bsub(1), -n and -R; "Environment variables set for job execution". */
#include "script/act_lsf.h"

#include "base/parse.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HOSTS_MOST = 1 << 12, /**< whose names are written */
    NUMBER_BYTES = 24
};

/** The number behind @p mark in a resource's text, up to the `]`; 0: none. */
static uint64_t number_behind(const char *text, const char *mark)
{
    const char *at = strstr(text, mark);
    char number[NUMBER_BYTES];
    uint64_t value = 0;
    if (at == NULL) {
        return 0;
    }
    at += strlen(mark);
    const size_t length = strspn(at, "0123456789");
    if (length == 0 || length >= sizeof number || at[length] != ']') {
        return 0;
    }
    (void)snprintf(number, sizeof number, "%.*s", (int)length, at);
    return me_parse_u64(number, &value) == ME_OK ? value : 0;
}

/** `host1 8 host2 8`, as LSF names them with their slots. */
static void set_hosts(const me_lsf *lsf)
{
    me_str hosts = {0};
    uint64_t left = lsf->slots;
    for (int i = 1; left > 0 && i <= HOSTS_MOST; i++) {
        const uint64_t n = left < lsf->most_each ? left : lsf->most_each;
        me_str_printf(&hosts, "%shost%d %" PRIu64, i > 1 ? " " : "", i, n);
        left -= n;
    }
    if (left == 0 && me_str_status(&hosts) == ME_OK) {
        (void)setenv("LSB_MCPU_HOSTS", me_str_text(&hosts), 1);
    }
    me_str_fini(&hosts);
}

void me_lsf_option(me_lsf *lsf, const char *program, int argc, char **argv)
{
    const char *option = argv[0];
    const char *value = argc > 1 ? argv[1] : "";
    char number[NUMBER_BYTES];
    if (strcmp(program, "bsub") != 0) {
        return;
    }
    if (strcmp(option, "-n") == 0) {
        const bool is_one = me_parse_u64(value, &lsf->slots) == ME_OK;
        lsf->slots = is_one ? lsf->slots : 0; // a range: LSF decides
    } else if (strcmp(option, "-R") == 0) {
        const uint64_t each = number_behind(value, "ptile=");
        lsf->most_each = each > 0                              ? each
                         : number_behind(value, "hosts=") == 1 ? UINT64_MAX
                                                               : 0;
    } else {
        return;
    }
    (void)unsetenv("LSB_DJOB_NUMPROC"); // of a job that this one starts in
    (void)unsetenv("LSB_MCPU_HOSTS");
    if (lsf->slots > 0) {
        (void)snprintf(number, sizeof number, "%" PRIu64, lsf->slots);
        (void)setenv("LSB_DJOB_NUMPROC", number, 1);
    }
    if (lsf->slots > 0 && lsf->most_each > 0) {
        set_hosts(lsf);
    }
}

/* links: diff base */
/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that say what memory took: no crash, one line of error; one that is
 * read does not differ from itself. */
#include "diff/diff.h"
#include "support/fuzz.h"

static void check_diff(const me_profile *profile)
{
    me_diag diag = {0};
    me_diff diff = {.pairs = NULL};
    me_str text = {0};
    if (me_diff_init(profile, profile, -1, &diag, &diff) != ME_OK) {
        abort();
    }
    if (diff.largest_bytes != 0 ||
        (diff.calls.is_known && diff.calls.n_equal != diff.calls.n_calls)) {
        abort();
    }
    (void)!me_diff_text(&diff, &text);
    (void)!me_diff_json(&diff, &text);
    me_str_fini(&text);
    me_diff_fini(&diff);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file(".profile", data, size);
    me_profile *profile = NULL;
    me_diag diag = {0};
    if (me_profile_read(path, NULL, &diag, &profile) == ME_OK) {
        check_diff(profile);
    } else {
        fuzz_check_line(diag.text);
    }
    me_profile_destroy(profile);
    (void)unlink(path);
    return 0;
}

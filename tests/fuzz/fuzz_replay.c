/* links: allocator base */
/* SPDX-License-Identifier: BSD-3-Clause */
/* Any bytes as a recording, under settings that its first byte chooses: no
 * crash, and whatever was replayed leaves a pool whose invariants held. */
#include "alloc/replay.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const confs[] = {
    "",
    "expandable_segments:True",
    "max_split_size_mb:20,garbage_collection_threshold:0.5",
    "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }
    const size_t n_confs = sizeof confs / sizeof confs[0];
    me_replay_options options = me_replay_options_default();
    options.format = (me_replay_format)((data[0] >> 6U) % 3U);
    options.conf_text = confs[data[0] % n_confs];
    options.pool.limit_bytes = (data[0] & 0x40U) != 0 ? UINT64_C(64) << 20U : 0;
    if (me_alloc_conf_parse(options.conf_text, NULL, &options.pool.conf) !=
        ME_OK) {
        return 0;
    }
    char *text = malloc(size - 1);
    FILE *file = text == NULL ? NULL : fmemopen(text, size - 1, "rb");
    if (file == NULL) {
        free(text);
        return 0;
    }
    memcpy(text, data + 1, size - 1);
    me_diag diag = {0};
    me_str report = {0};
    (void)!me_replay_file(&options, file, "fuzz", &diag, NULL, &report);
    me_str_fini(&report);
    (void)fclose(file);
    free(text);
    return 0;
}

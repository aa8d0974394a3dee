/* links: device base */
/* SPDX-License-Identifier: BSD-3-Clause */
/* hwloc's XML: no crash, one line of error, and a node that can be joined. */
#include "device/topology.h"
#include "device/topology_card.h"
#include "support/fuzz.h"

static void check_topology(const me_topology *t)
{
    if (t->n_gpus < 1 || t->n_gpus > ME_TOPOLOGY_GPUS || t->n_adapters < 0) {
        abort();
    }
    for (int i = 0; i < t->n_gpus; i++) {
        for (int j = 0; j < t->n_gpus; j++) {
            if (t->relation[i][j] > ME_GPUS_SHARE_MACHINE ||
                t->relation[i][j] != t->relation[j][i] ||
                !(t->nvlink_bytes[i][j] >= 0)) {
                abort();
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file(".xml", data, size);
    static me_topology t;
    me_diag diag = {.status = ME_OK};
    me_machine_card card = {.n_cards = 0};
    if (me_topology_read(path, &diag, &t) == ME_OK) {
        check_topology(&t);
    } else {
        fuzz_check_line(diag.text);
    }
    if (me_topology_find_card(path, &card) == NULL && card.n_cards < 1) {
        abort();
    }
    (void)unlink(path);
    return 0;
}

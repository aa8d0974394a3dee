/* links: time base */
/* SPDX-License-Identifier: BSD-3-Clause */
/* Machines' files: no crash, one line of error, and of one that is good every
 * pair is joined by a link that is there. */
#include "time/cluster.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_pairs(const me_cluster *c)
{
    for (int i = 0; i < c->gpus; i++) {
        for (int j = 0; j < c->gpus; j++) {
            const int kind = c->pairs[i][j];
            if (i != j &&
                (kind >= ME_LINK_NETWORK || !c->links[kind].is_there ||
                 c->order[i] >= c->gpus)) {
                abort();
            }
        }
    }
}

static void check_ring(me_cluster *c)
{
    int32_t members[ME_CLUSTER_GPUS];
    const int32_t n = c->gpus < 8 ? c->gpus : 8;
    for (int32_t i = 0; i < n; i++) {
        members[i] = i;
    }
    me_link_path path;
    c->layout = (me_cluster_layout){.world = c->gpus, .gpus_per_node = c->gpus};
    if (me_link_path_find(c, members, n, &path) == ME_OK && n > 1 &&
        me_link_path_slowest(&path) >= ME_LINK_NETWORK) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (text == NULL) {
        return 0;
    }
    if (size > 0) {
        memcpy(text, data, size);
    }
    text[size] = '\0';
    me_diag diag = {.status = ME_OK};
    me_cluster c;
    if (me_cluster_read(text, "fuzz.cfg", &diag, &c) == ME_OK) {
        check_pairs(&c);
        check_ring(&c);
    } else if (diag.text[0] == '\0' || strchr(diag.text, '\n') != NULL) {
        abort();
    }
    free(text);
    return 0;
}

/* links: parallel base */
/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of tokens per expert: no crash, one line of error, and every line that
 * was read is found again. The first byte is how many experts a rank has. */
#include "parallel/routing.h"
#include "support/fuzz.h"

static void check_routing(const me_routing *routing)
{
    uint64_t counts[ME_MAX_LOCAL_EXPERTS];
    for (uint32_t i = 0; i < routing->n_rows; i++) {
        const me_routing_place *at = &routing->rows[i].at;
        if (!me_routing_has(routing, at)) {
            abort();
        }
        me_routing_counts(routing, at, 5, routing->n_experts, counts);
        uint64_t sum = 0;
        for (uint32_t k = 0; k < routing->n_experts; k++) {
            sum += counts[k];
        }
        if (sum != me_routing_received(routing, at, 5)) {
            abort();
        }
    }
    (void)me_routing_is_uniform(routing);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    char *text = fuzz_text(data + 1, size - 1);
    me_routing routing = {.n_rows = 0};
    me_diag diag = {.status = ME_OK};
    const uint32_t n_experts[] = {data[0] % 8U + 1, data[0] % 16U + 1};
    if (me_routing_read(text, "tokens", n_experts, &diag, &routing) == ME_OK) {
        check_routing(&routing);
        me_routing_fini(&routing);
    } else {
        fuzz_check_line(diag.text);
    }
    free(text);
    return 0;
}

/* links: allocator time base */
/* SPDX-License-Identifier: BSD-3-Clause */
/* Cards' files: no crash, one line of error, and sizes and rates that a job can
 * be computed with. */
#include "alloc/card.h"
#include "support/fuzz.h"
#include "time/rates.h"

#include <math.h>

static void check_card(const me_device_card *card)
{
    const uint64_t most = UINT64_C(1) << 50;
    me_str names = {0};
    (void)me_device_card_not_measured(card, &names);
    if (card->total_bytes > most || card->context_bytes > most ||
        card->nccl.chunk_bytes > most || me_str_status(&names) != ME_OK) {
        abort();
    }
    me_str_fini(&names);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file(".cfg", data, size);
    me_diag diag = {.status = ME_OK};
    me_device_card card;
    me_rates rates;
    if (me_device_card_load(path, &diag, &card) == ME_OK) {
        check_card(&card);
    } else {
        fuzz_check_line(diag.text);
    }
    if (me_rates_load(path, &diag, &rates) != ME_OK) {
        fuzz_check_line(diag.text);
    } else if (rates.is_known &&
               (!isfinite(rates.half_product) || !(rates.half_product > 0))) {
        abort();
    }
    (void)unlink(path);
    return 0;
}

/* links: config base */
/* SPDX-License-Identifier: BSD-3-Clause */
/* torchtitan's TOML. */
#include "config/torchtitan/torchtitan.h"
#include "support/fuzz_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_reader(me_torchtitan_read, data, size);
    return 0;
}

/* links: config base */
/* SPDX-License-Identifier: BSD-3-Clause */
/* Hugging Face's config.json. */
#include "config/huggingface/huggingface.h"
#include "support/fuzz_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_reader(me_huggingface_read, data, size);
    return 0;
}

/* links: config base */
/* SPDX-License-Identifier: BSD-3-Clause */
/* A tokenizer's file, read as each kind of one. */
#include "config/tokenizer/token_files.h"
#include "support/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static me_token_reader *const readers[] = {
        me_tokens_of_tokenizer_json, me_tokens_of_vocab_json,
        me_tokens_of_tokenizer_config, me_tokens_of_lines,
        me_tokens_of_sentencepiece};
    static const char *const specials[] = {"<s>"};
    const char *path = fuzz_file(".json", data, size);
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++) {
        me_token_set set = {.specials = specials, .n_specials = 1};
        me_diag diag = {.status = ME_OK};
        if (readers[i](&set, path, &diag) != ME_OK) {
            fuzz_check_line(diag.text);
        } else if (me_token_set_count(&set) > size + 1) {
            abort(); /* a token takes a byte at least */
        }
        me_token_set_fini(&set);
    }
    (void)unlink(path);
    return 0;
}

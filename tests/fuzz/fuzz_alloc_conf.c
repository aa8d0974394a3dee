/* links: allocator base */
/* SPDX-License-Identifier: BSD-3-Clause */
/* PYTORCH_CUDA_ALLOC_CONF: no crash, one line of error, and a pool that can be
 * made of what was read. */
#include "alloc/alloc_conf.h"
#include "alloc/pool.h"
#include "support/fuzz.h"

static void check_pool(const me_alloc_conf *conf)
{
    const uint64_t total = UINT64_C(1) << 36;
    me_pool_options options = {.conf = *conf};
    options.limit_bytes = me_alloc_conf_limit_bytes(conf, 0, total);
    me_pool *pool = NULL;
    me_pool_block block = 0;
    if (options.limit_bytes > total ||
        me_pool_create(&options, &pool) != ME_OK) {
        abort();
    }
    const me_status status = me_pool_alloc(pool, 3 << 20, 0, &block);
    if (status == ME_OK) {
        me_pool_free(pool, block);
    } else if (status != ME_ERR_CAPACITY) {
        abort();
    }
    me_pool_destroy(pool);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    me_diag diag = {.status = ME_OK};
    me_alloc_conf conf;
    if (me_alloc_conf_parse(text, &diag, &conf) == ME_OK) {
        check_pool(&conf);
    } else {
        fuzz_check_line(diag.text);
    }
    free(text);
    return 0;
}

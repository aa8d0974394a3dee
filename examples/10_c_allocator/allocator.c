/* SPDX-License-Identifier: BSD-3-Clause */
/* A stream of requests through PyTorch's caching allocator, under two of its
 * settings: sequences of growing length, whose activations are freed at the end
 * of each step. */
#include <inttypes.h>
#include <memest/memest.h>
#include <stdio.h>

enum {
    N_STEPS = 12,
    N_LAYERS = 24
};

static const uint64_t mib = UINT64_C(1024) * 1024;

/** One training step: each layer keeps two tensors and needs a third. */
static memest_status step(memest_pool *pool, uint64_t tokens,
                          memest_error *error)
{
    memest_block kept[N_LAYERS][2];
    memest_block temporary = 0;
    memest_status status = MEMEST_OK;
    for (int i = 0; status == MEMEST_OK && i < N_LAYERS; i++) {
        status = memest_pool_alloc(pool, tokens * 8192, 0, &kept[i][0], error);
        if (status == MEMEST_OK) {
            status =
                memest_pool_alloc(pool, tokens * 24576, 0, &temporary, error);
        }
        if (status == MEMEST_OK) {
            status =
                memest_pool_alloc(pool, tokens * 2048, 0, &kept[i][1], error);
        }
        if (status == MEMEST_OK) {
            status = memest_pool_free(pool, temporary, error);
        }
    }
    for (int i = N_LAYERS - 1; status == MEMEST_OK && i >= 0; i--) {
        status = memest_pool_free(pool, kept[i][0], error);
        if (status == MEMEST_OK) {
            status = memest_pool_free(pool, kept[i][1], error);
        }
    }
    return status;
}

/** Steps until one finds no memory. */
static memest_status run(const char *alloc_conf, const char *name,
                         memest_error *error)
{
    memest_pool_options options = MEMEST_INIT(memest_pool_options);
    memest_pool_counters counters = MEMEST_INIT(memest_pool_counters);
    memest_pool *pool = NULL;
    int n_steps = 0;
    options.alloc_conf = alloc_conf;
    options.limit_bytes = 4096 * mib;
    memest_status status = memest_pool_create(&options, &pool, error);
    while (status == MEMEST_OK && n_steps < N_STEPS) {
        n_steps++;
        status = step(pool, 2048 + 517 * (uint64_t)n_steps, error);
    }
    if (pool != NULL && memest_pool_read(pool, &counters)) {
        printf("%-20s %5d %9" PRIu64 " %8" PRIu64 " %8" PRIu64 " %7" PRIu64
               "\n",
               name, n_steps, counters.allocated_peak_bytes / mib,
               counters.reserved_peak_bytes / mib, counters.segments,
               counters.num_alloc_retries);
    }
    if (status == MEMEST_ERR_CAPACITY) {
        printf("  step %d: %.60s…\n", n_steps, memest_error_text(error));
        status = MEMEST_OK;
    }
    memest_pool_destroy(pool);
    return status;
}

/** Freeing twice is an error with a name, not a crash. */
static int refuses_twice(memest_error *error)
{
    memest_pool *pool = NULL;
    memest_block block = 0;
    memest_status status = memest_pool_create(NULL, &pool, error);
    if (status == MEMEST_OK) {
        status = memest_pool_alloc(pool, mib, 0, &block, error);
    }
    if (status == MEMEST_OK) {
        status = memest_pool_free(pool, block, error);
    }
    if (status == MEMEST_OK) {
        status = memest_pool_free(pool, block, error);
    }
    memest_pool_destroy(pool);
    printf("freed twice: %s\n", memest_error_text(error));
    return status == MEMEST_ERR_CONFIG;
}

int main(void)
{
    memest_error *error = memest_error_create();
    if (error == NULL) {
        return 1;
    }
    printf("%-20s steps allocated reserved segments retries, MiB\n", "");
    memest_status status = run(NULL, "default", error);
    if (status == MEMEST_OK) {
        status = run("expandable_segments:True", "expandable_segments", error);
    }
    if (status != MEMEST_OK) {
        fprintf(stderr, "allocator: %s\n", memest_error_text(error));
    }
    const int is_refused = refuses_twice(error);
    memest_error_destroy(error);
    return status == MEMEST_OK && is_refused ? 0 : 1;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Layers of a Megatron-LM job that a probe of one is of: those with experts, or
 * where there are none all. */
#include "parallel/moe_layers.h"
#include "search/rules.h"

enum {
    LAYERS_MAX = 1024
};

/** @param is_moe  of LAYERS_MAX. @return false: nobody knows */
static bool read_kinds(const me_config *c, bool *is_moe)
{
    const int32_t n = c->model.num_layers;
    const char *frequency =
        c->moe.layer_freq[0] == '\0' ? "1" : c->moe.layer_freq;
    me_diag diag = {.status = ME_OK};
    return n <= LAYERS_MAX &&
           me_moe_layers_read(frequency, n, &diag, is_moe) == ME_OK;
}

static me_megatron_alike of_all(const me_config *c)
{
    const double stages = (double)c->parallel.pipeline;
    const double chunks = (double)c->parallel.virtual_pipeline;
    const double n = (double)c->model.num_layers / stages;
    return (me_megatron_alike){.of_stage = n,
                               .of_chunk = n / chunks,
                               .of_first = n / chunks,
                               .of_last = n / chunks,
                               .is_last = true};
}

static int32_t count(const bool *is_moe, int32_t first, int32_t n)
{
    int32_t sum = 0;
    for (int32_t i = first; i < first + n; i++) {
        sum += is_moe[i] ? 1 : 0;
    }
    return sum;
}

/** A stage with a chunk in turn of layers that are dealt evenly. */
typedef struct stage {
    int32_t all;
    int32_t of_chunk; /**< at least */
} stage;

static stage count_stage(const me_config *c, const bool *is_moe, int32_t index)
{
    const int32_t stages = c->parallel.pipeline;
    const int32_t chunks = c->parallel.virtual_pipeline;
    const int32_t n = c->model.num_layers / (stages * chunks);
    stage s = {.of_chunk = n};
    for (int32_t k = 0; k < chunks; k++) {
        const int32_t here = count(is_moe, (k * stages + index) * n, n);
        s.of_chunk = here < s.of_chunk ? here : s.of_chunk;
        s.all += here;
    }
    return s;
}

static me_megatron_alike least(const me_config *c, const bool *is_moe)
{
    const int32_t last = c->parallel.pipeline - 1;
    stage least = count_stage(c, is_moe, 0);
    me_megatron_alike alike = {
        .of_first = least.of_chunk,
        .of_last = count_stage(c, is_moe, last).of_chunk,
    };
    for (int32_t i = 1; i <= last; i++) {
        const stage s = count_stage(c, is_moe, i);
        least.all = s.all < least.all ? s.all : least.all;
        least.of_chunk =
            s.of_chunk < least.of_chunk ? s.of_chunk : least.of_chunk;
    }
    alike.of_stage = least.all;
    alike.of_chunk = least.of_chunk;
    return alike;
}

me_megatron_alike me_megatron_count_alike(const me_config *config, bool is_even)
{
    bool is_moe[LAYERS_MAX];
    me_megatron_alike alike = {.of_stage = 0};
    const int32_t n = config->model.num_layers;
    if (config->moe.num_experts == 0) {
        return of_all(config);
    }
    if (!read_kinds(config, is_moe)) {
        return alike;
    }
    if (is_even) {
        alike = least(config, is_moe);
    } else {
        alike.of_stage =
            (double)count(is_moe, 0, n) / (double)config->parallel.pipeline;
    }
    alike.is_last = is_moe[n - 1];
    return alike;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Layers of a Megatron-LM job that a probe of one is of: of layers with experts and
 * without the former, of layers with a window and without the former; of a job
 * with neither all. */
#include "parallel/moe_layers.h"
#include "search/rules.h"

#include <string.h>

enum {
    LAYERS_MAX = 1024
};

static bool is_some(const char *frequency)
{
    return frequency[0] != '\0' && strcmp(frequency, "1") != 0;
}

bool me_megatron_has_other_experts(const me_config *job)
{
    return job->moe.num_experts > 0 && is_some(job->moe.layer_freq);
}

bool me_megatron_has_other_windows(const me_config *job)
{
    return job->model.window_attention &&
           job->model.window_attn_skip_freq[0] != '\0';
}

bool me_megatron_has_rest(const me_config *job)
{
    return me_megatron_has_other_experts(job) ||
           me_megatron_has_other_windows(job);
}

/** @param is_alike  of LAYERS_MAX. @return false: nobody knows */
static bool read_kinds(const me_config *c, bool *is_alike)
{
    const int32_t n = c->model.num_layers;
    bool is_windowed[LAYERS_MAX];
    me_diag diag = {.status = ME_OK};
    const char *experts =
        me_megatron_has_other_experts(c) ? c->moe.layer_freq : "1";
    const char *windows =
        me_megatron_has_other_windows(c) ? c->model.window_attn_skip_freq : "";
    if (n > LAYERS_MAX ||
        me_moe_layers_read(experts, n, &diag, is_alike) != ME_OK ||
        me_window_layers_read(windows, n, &diag, is_windowed) != ME_OK) {
        return false;
    }
    for (int32_t i = 0; i < n; i++) {
        is_alike[i] = is_alike[i] && is_windowed[i];
    }
    return true;
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

static int32_t count(const bool *is_alike, int32_t first, int32_t n)
{
    int32_t sum = 0;
    for (int32_t i = first; i < first + n; i++) {
        sum += is_alike[i] ? 1 : 0;
    }
    return sum;
}

/** A stage with a chunk in turn of layers that are dealt evenly. */
typedef struct stage {
    int32_t all;
    int32_t of_chunk; /**< at least */
} stage;

static stage count_stage(const me_config *c, const bool *is_alike,
                         int32_t index)
{
    const int32_t stages = c->parallel.pipeline;
    const int32_t chunks = c->parallel.virtual_pipeline;
    const int32_t n = c->model.num_layers / (stages * chunks);
    stage s = {.of_chunk = n};
    for (int32_t k = 0; k < chunks; k++) {
        const int32_t here = count(is_alike, (k * stages + index) * n, n);
        s.of_chunk = here < s.of_chunk ? here : s.of_chunk;
        s.all += here;
    }
    return s;
}

static me_megatron_alike least(const me_config *c, const bool *is_alike)
{
    const int32_t last = c->parallel.pipeline - 1;
    stage least = count_stage(c, is_alike, 0);
    me_megatron_alike alike = {
        .of_first = least.of_chunk,
        .of_last = count_stage(c, is_alike, last).of_chunk,
    };
    for (int32_t i = 1; i <= last; i++) {
        const stage s = count_stage(c, is_alike, i);
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
    bool is_alike[LAYERS_MAX];
    me_megatron_alike alike = {.of_stage = 0};
    const int32_t n = config->model.num_layers;
    if (config->moe.num_experts == 0 && !me_megatron_has_rest(config)) {
        return of_all(config);
    }
    if (!read_kinds(config, is_alike)) {
        return alike;
    }
    if (is_even) {
        alike = least(config, is_alike);
    } else {
        alike.of_stage =
            (double)count(is_alike, 0, n) / (double)config->parallel.pipeline;
    }
    alike.is_last = is_alike[n - 1];
    return alike;
}

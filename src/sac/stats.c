/* SPDX-License-Identifier: BSD-3-Clause */
#include "sac/stats.h"

#include "base/assert.h"
#include "base/parse.h"

#include <string.h>

static const char *const views[] = {
    "as_strided", "detach",  "diagonal",       "expand",
    "expand_as",  "movedim", "narrow",         "permute",
    "select",     "squeeze", "transpose",      "t",
    "real",       "imag",    "view_as_real",   "view_as_complex",
    "unflatten",  "unfold",  "unsqueeze",      "view",
    "view_as",    "unbind",  "split",          "split_with_sizes",
    "vsplit",     "hsplit",  "tensor_split",   "chunk",
    "swapaxes",   "slice",   "_reshape_alias", "_unsafe_view",
    "_conj",      "alias",
};

static const char *const views_in_place[] = {
    "as_strided_", "detach_", "squeeze_",   "swapaxes_",
    "swapdims_",   "t_",      "transpose_", "unsqueeze_",
};

static const char *const skipped[] = {
    "detach",
    "lift_fresh",
    "clone",
    "_record_function_exit",
    // What a tensor is asked about itself.
    "device",
    "is_contiguous",
    "is_strides_like_format",
    "is_non_overlapping_and_dense",
    "size",
    "sym_size",
    "stride",
    "sym_stride",
    "storage_offset",
    "sym_storage_offset",
    "numel",
    "sym_numel",
    "dim",
};

#define IS_ONE_OF(name, names)                                                 \
    me_is_one_of((name), strlen(name), (names),                                \
                 sizeof(names) / sizeof(names)[0])

bool me_sac_is_view_like(const char *name)
{
    return IS_ONE_OF(name, views) || IS_ONE_OF(name, views_in_place);
}

/** Does @p name go on, after @p from letters and at least one more, with "__"? */
static bool is_closed(const char *name, size_t from)
{
    return strlen(name) > from && strstr(name + from + 1, "__") != NULL;
}

bool me_sac_is_in_place(const char *name)
{
    const size_t length = strlen(name);
    if (strncmp(name, "__i", 3) == 0 && is_closed(name, 3)) {
        return true;
    }
    if (strncmp(name, "__", 2) == 0 && is_closed(name, 2)) {
        return false;
    }
    return length > 0 && name[length - 1] == '_';
}

bool me_sac_is_skipped(const char *name)
{
    return IS_ONE_OF(name, skipped);
}

static uint32_t skipped_before(const me_sac_stats *stats, uint32_t op)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < op; i++) {
        count += me_sac_is_skipped(stats->ops[i].name) ? 1 : 0;
    }
    return count;
}

/** Let the operations that stay name their parents as they will be counted. */
static me_status reindex(me_sac_stats *stats, me_diag *diag)
{
    for (uint32_t i = 0; i < stats->n_ops; i++) {
        me_sac_op *op = &stats->ops[i];
        if (op->in_place_of < 0 || me_sac_is_skipped(op->name)) {
            continue;
        }
        const uint32_t parent = (uint32_t)op->in_place_of;
        ME_ASSERT(parent <= i);
        if (me_sac_is_skipped(stats->ops[parent].name)) {
            return me_fail(diag, ME_ERR_CONFIG,
                           "%s: %s works in place on the result of %s: "
                           "PyTorch's SACEstimator, which leaves %s out, "
                           "raises ValueError",
                           stats->fqn, op->name, stats->ops[parent].name,
                           stats->ops[parent].name);
        }
        op->in_place_of -= (int32_t)skipped_before(stats, parent);
    }
    return ME_OK;
}

/** The operation whose result a checkpoint's output is taken to be; where all
 *  are views or in place Python's index -1 means the last one. */
static uint32_t last_op(const me_sac_stats *stats)
{
    uint32_t last = stats->n_ops;
    while (last > 0 && (stats->ops[last - 1].is_view_like ||
                        stats->ops[last - 1].in_place_of >= 0)) {
        last--;
    }
    return (last > 0 ? last : stats->n_ops) - 1;
}

me_status me_sac_stats_finish(me_sac_stats *stats, me_diag *diag)
{
    const me_status status = reindex(stats, diag);
    if (status != ME_OK) {
        return status;
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < stats->n_ops; i++) {
        if (!me_sac_is_skipped(stats->ops[i].name)) {
            stats->ops[count++] = stats->ops[i];
        }
    }
    stats->n_ops = count;
    if (count == 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "%s: its forward has no operation that counts: "
                       "PyTorch's SACEstimator raises ValueError",
                       stats->fqn);
    }
    stats->ops[last_op(stats)].bytes = 0;
    return ME_OK;
}

uint64_t me_sac_stats_bytes(const me_sac_stats *stats)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < stats->n_ops; i++) {
        bytes += stats->ops[i].bytes;
    }
    return bytes;
}

double me_sac_stats_runtime_ms(const me_sac_stats *stats)
{
    double runtime_ms = 0;
    for (uint32_t i = 0; i < stats->n_ops; i++) {
        runtime_ms += stats->ops[i].runtime_ms;
    }
    return runtime_ms;
}

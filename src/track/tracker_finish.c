/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/size.h"
#include "track/fold.h"
#include "track/tracker.h"
#include "track/tracker_impl.h"

#include <stdlib.h>
#include <string.h>

/** A part of a peak with its module's path, for sorting. */
typedef struct named_part {
    const char *path;
    uint32_t place; /**< of the path among all paths, see order_modules() */
    const char *op; /**< "" for none */
    const me_peak_part *part;
} named_part;

/** Like parts are neighbours, their numbers rise. */
static int compare_parts(const void *a, const void *b)
{
    const named_part *x = a;
    const named_part *y = b;
    if (x->part->category != y->part->category) {
        return x->part->category < y->part->category ? -1 : 1;
    }
    const int by_op = x->op == y->op ? 0 : strcmp(x->op, y->op);
    return by_op != 0 ? by_op : (x->place > y->place) - (x->place < y->place);
}

/** A module's path and what it is called in events. */
typedef struct named_module {
    const char *path;
    uint32_t module;
} named_module;

static int compare_modules(const void *a, const void *b)
{
    const named_module *x = a;
    const named_module *y = b;
    return me_path_compare(x->path, y->path);
}

/** For each module its place in the order of paths; NULL without memory. */
static uint32_t *order_modules(const me_module_tree *tree)
{
    named_module *named =
        me_alloc(tree->count + 1, sizeof *named, "tracker.named_modules");
    uint32_t *places =
        me_alloc(tree->count + 1, sizeof *places, "tracker.places");
    if (named == NULL || places == NULL) {
        me_free(named);
        me_free(places);
        return NULL;
    }
    for (uint32_t i = 0; i < tree->count; i++) {
        named[i] = (named_module){.path = tree->modules[i].path, .module = i};
    }
    qsort(named, tree->count, sizeof *named, compare_modules);
    for (uint32_t i = 0; i < tree->count; i++) {
        const bool is_new = i > 0 && compare_modules(&named[i - 1], &named[i]);
        const uint32_t before = i == 0 ? 0 : places[named[i - 1].module];
        places[named[i].module] = before + (is_new ? 1 : 0);
    }
    me_free(named);
    return places;
}

static bool is_like(const named_part *a, const named_part *b)
{
    return a->part->category == b->part->category &&
           strcmp(a->op, b->op) == 0 && me_path_is_like(a->path, b->path);
}

/** Largest first; then by name, so that the order never depends on luck. */
static int compare_contributors(const void *a, const void *b)
{
    const me_contributor *x = a;
    const me_contributor *y = b;
    if (x->bytes != y->bytes) {
        return x->bytes > y->bytes ? -1 : 1;
    }
    const int by_module = strcmp(x->module, y->module);
    if (by_module != 0) {
        return by_module;
    }
    if (x->category != y->category) {
        return x->category < y->category ? -1 : 1;
    }
    return strcmp(x->op == NULL ? "" : x->op, y->op == NULL ? "" : y->op);
}

static const char *copy_text(me_rank_result *result, const char *text)
{
    return me_arena_strdup(result->arena, text == NULL ? "" : text);
}

/** One contributor of @p count like parts; false without memory. */
static bool fold_parts(me_rank_result *result, const named_part *parts,
                       size_t count, const char **paths,
                       me_contributor *contributor_out)
{
    me_contributor c = {.category = parts[0].part->category};
    for (size_t i = 0; i < count; i++) {
        paths[i] = parts[i].path;
        c.bytes += parts[i].part->bytes;
        c.blocks += parts[i].part->blocks;
        c.modules += i == 0 || strcmp(paths[i], paths[i - 1]) != 0 ? 1 : 0;
    }
    me_str name = {0};
    const me_status status = me_path_fold(paths, count, &name);
    c.module = copy_text(result, me_str_text(&name));
    me_str_fini(&name);
    if (parts[0].part->op != NULL) {
        c.op = copy_text(result, parts[0].part->op);
    }
    *contributor_out = c;
    return status == ME_OK && c.module != NULL &&
           (c.op != NULL || parts[0].part->op == NULL);
}

/** The module that something is of; a shard's may be another rank's. */
static uint32_t module_of(const me_tracker *t, uint32_t module, bool is_shard)
{
    const uint32_t count =
        t->shards == NULL || !is_shard ? 0 : t->shards->count;
    uint32_t i = 0;
    while (i < count && t->shards->from[i] != module) {
        i++;
    }
    return i < count ? t->shards->to[i] : module;
}

static const char *path_of(const me_tracker *t, uint32_t module)
{
    return module < t->tree->count ? t->tree->modules[module].path : "?";
}

/** All contributors, largest first, cut to the largest ones. */
static me_status sort_contributors(me_rank_result *result, me_contributor *all,
                                   uint32_t count, me_peak_result *peak)
{
    qsort(all, count, sizeof *all, compare_contributors);
    const uint32_t kept =
        count < ME_CONTRIBUTORS_MAX ? count : ME_CONTRIBUTORS_MAX;
    peak->contributors = me_arena_alloc(result->arena, kept, sizeof *all);
    if (peak->contributors == NULL) {
        return ME_ERR_NOMEM;
    }
    if (kept > 0) {
        memcpy(peak->contributors, all, kept * sizeof *all);
    }
    peak->n_contributors = kept;
    return ME_OK;
}

static me_status fill_contributors(const me_tracker *t,
                                   const me_seen_iteration *seen,
                                   me_rank_result *result, me_peak_result *peak)
{
    const uint32_t n = seen->n_parts;
    me_status status = ME_ERR_NOMEM;
    named_part *parts = me_alloc(n, sizeof *parts, "tracker.named_parts");
    const char **paths = me_alloc(n, sizeof *paths, "tracker.paths");
    me_contributor *all = me_alloc(n, sizeof *all, "tracker.contributors");
    if (parts == NULL || paths == NULL || all == NULL) {
        goto out;
    }
    for (uint32_t i = 0; i < n; i++) {
        const me_peak_part *part = &seen->parts[i];
        const uint32_t module = module_of(t, part->module, part->is_shard);
        parts[i] = (named_part){
            .path = path_of(t, module),
            .place = module < t->tree->count ? t->places[module] : UINT32_MAX,
            .op = part->op == NULL ? "" : part->op,
            .part = part};
    }
    qsort(parts, n, sizeof *parts, compare_parts);
    uint32_t count = 0;
    for (uint32_t i = 0, last = 0; i < n; i = last) {
        for (last = i + 1; last < n && is_like(&parts[i], &parts[last]);) {
            last++;
        }
        if (!fold_parts(result, &parts[i], last - i, paths, &all[count])) {
            goto out;
        }
        count++;
    }
    status = sort_contributors(result, all, count, peak);
out:
    me_free(all);
    me_free(paths);
    me_free(parts);
    return status;
}

static me_status fill_peak(const me_tracker *t, const me_seen_iteration *seen,
                           me_rank_result *result, me_peak_result *peak)
{
    *peak = (me_peak_result){
        .requested_bytes = seen->peak_requested,
        .allocated_bytes = seen->peaks.allocated,
        .reserved_bytes = seen->reserved_ever,
        .device_bytes = seen->device_bytes,
        .iteration = seen->iteration,
        .microbatch = seen->cause.microbatch,
        .phase = copy_text(result, me_phase_name((me_phase)seen->cause.phase)),
        .module = copy_text(
            result,
            path_of(t, module_of(t, seen->cause.module, seen->cause.is_shard))),
        .op = seen->cause.op == NULL ? NULL : copy_text(result, seen->cause.op),
    };
    if (peak->phase == NULL || peak->module == NULL ||
        (peak->op == NULL && seen->cause.op != NULL)) {
        return ME_ERR_NOMEM;
    }
    if (t->has_totals) {
        return ME_OK;
    }
    uint64_t sum = 0;
    for (uint32_t i = 0; i < seen->n_parts; i++) {
        peak->by_category[seen->parts[i].category] += seen->parts[i].bytes;
        sum += seen->parts[i].bytes;
    }
    if (sum != peak->requested_bytes) {
        return ME_ERR_INTERNAL;
    }
    return fill_contributors(t, seen, result, peak);
}

static me_phase_result phase_result(const char *name, const me_peaks *peaks)
{
    return (me_phase_result){.name = name,
                             .requested_bytes = peaks->requested,
                             .allocated_bytes = peaks->allocated,
                             .reserved_bytes = peaks->reserved};
}

static void raise_to(uint64_t *value, uint64_t by)
{
    *value = me_max_u64(*value, by);
}

/** Forward, backward and recompute as one; false if none of them ran. */
static bool join_phases(const me_seen_iteration *seen, me_peaks *joined_out)
{
    const me_phase joined[] = {ME_PHASE_FORWARD, ME_PHASE_BACKWARD,
                               ME_PHASE_RECOMPUTE};
    bool has_any = false;
    *joined_out = (me_peaks){0};
    for (size_t i = 0; i < sizeof joined / sizeof *joined; i++) {
        if (seen->has_phase[joined[i]]) {
            const me_peaks *peaks = &seen->phases[joined[i]];
            raise_to(&joined_out->requested, peaks->requested);
            raise_to(&joined_out->allocated, peaks->allocated);
            raise_to(&joined_out->reserved, peaks->reserved);
            has_any = true;
        }
    }
    return has_any;
}

static me_status fill_phases(const me_seen_iteration *seen,
                             me_rank_result *result,
                             me_iteration_result *iteration)
{
    iteration->phases = me_arena_alloc(result->arena, ME_PHASE_COUNT + 1,
                                       sizeof *iteration->phases);
    if (iteration->phases == NULL) {
        return ME_ERR_NOMEM;
    }
    me_peaks joined = {0};
    if (join_phases(seen, &joined)) {
        iteration->phases[iteration->n_phases++] =
            phase_result("forward_backward", &joined);
    }
    for (unsigned i = 0; i < ME_PHASE_COUNT; i++) {
        if (seen->has_phase[i]) {
            iteration->phases[iteration->n_phases++] =
                phase_result(me_phase_name((me_phase)i), &seen->phases[i]);
        }
    }
    return ME_OK;
}

static me_status fill_iterations(const me_tracker *t, me_rank_result *result)
{
    result->iterations = me_arena_alloc(result->arena, t->n_iterations,
                                        sizeof *result->iterations);
    if (result->iterations == NULL) {
        return ME_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < t->n_iterations; i++) {
        const me_seen_iteration *seen = &t->iterations[i];
        me_iteration_result *iteration = &result->iterations[i];
        iteration->iteration = seen->iteration;
        iteration->requested_bytes = seen->peak_requested;
        iteration->allocated_bytes = seen->peaks.allocated;
        iteration->reserved_bytes = seen->peaks.reserved;
        me_status status = fill_phases(seen, result, iteration);
        if (status == ME_OK) {
            status = fill_peak(t, seen, result, &iteration->peak);
        }
        if (status != ME_OK) {
            return status;
        }
    }
    result->n_iterations = t->n_iterations;
    return ME_OK;
}

static me_status fill_points(const me_tracker *t, me_result_common *common)
{
    common->points =
        me_arena_alloc(common->arena, t->n_points, sizeof *common->points);
    if (common->points == NULL) {
        return ME_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < t->n_points; i++) {
        const char *name = t->points[i].name;
        common->points[i] = t->points[i];
        common->points[i].name =
            me_arena_strdup(common->arena, name == NULL ? "" : name);
        if (common->points[i].name == NULL) {
            return ME_ERR_NOMEM;
        }
    }
    common->n_points = t->n_points;
    return ME_OK;
}

static uint64_t known_peak(uint64_t peak)
{
    return peak == 0 ? ME_BYTES_UNKNOWN : peak;
}

/** The root is left out: index i here is i + 1 in the tree. */
static me_status fill_modules(const me_tracker *t, me_result_common *common)
{
    const uint32_t count = t->tree->count == 0 ? 0 : t->tree->count - 1;
    me_module_result *modules =
        me_arena_alloc(common->arena, count, sizeof *modules);
    if (modules == NULL) {
        return ME_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < count; i++) {
        const me_module_info *info = &t->tree->modules[i + 1];
        const me_module_stat none = {0};
        const me_module_stat *stat =
            i + 1 < t->modules.n_stats ? &t->modules.stats[i + 1] : &none;
        modules[i] = (me_module_result){
            .name = me_arena_strdup(common->arena, info->path),
            .parent = info->parent == 0 ? UINT32_MAX : info->parent - 1,
            .forward_peak_bytes = known_peak(stat->forward_peak),
            .backward_peak_bytes = known_peak(stat->backward_peak),
            .parameters = info->parameters,
            .parameter_bytes = info->parameter_bytes,
            .activation_bytes = stat->activation,
        };
        if (modules[i].name == NULL) {
            return ME_ERR_NOMEM;
        }
    }
    for (uint32_t i = count; i-- > 0;) {
        const me_module_result *module = &modules[i];
        if (module->parent != UINT32_MAX) {
            ME_ASSERT(module->parent < i);
            modules[module->parent].activation_bytes +=
                module->activation_bytes;
        }
    }
    common->modules = modules;
    common->n_modules = count;
    return ME_OK;
}

/** What is the same whoever's shards the run stands for, made once. */
static me_status share_common(me_tracker *t, me_rank_result *result)
{
    me_status status = ME_OK;
    if (t->common == NULL) {
        me_result_common *common = me_result_common_create();
        status = common == NULL ? ME_ERR_NOMEM : fill_points(t, common);
        if (status == ME_OK) {
            status = fill_modules(t, common);
        }
        if (status != ME_OK) {
            me_result_common_release(common);
            return status;
        }
        t->common = common;
    }
    me_rank_result_share(result, t->common);
    return status;
}

static me_status seen_status(const me_tracker *t)
{
    if (t->status != ME_OK) {
        return t->status;
    }
    if (t->course.status != ME_OK) {
        return t->course.status;
    }
    if (t->quiet.status != ME_OK) {
        return t->quiet.status;
    }
    return t->live.status != ME_OK ? t->live.status : t->modules.status;
}

static me_status fill_result(me_tracker *t, me_rank_result *result)
{
    if (t->tree->count > 0) {
        result->parameters = t->tree->modules[0].parameters;
        result->parameter_bytes = t->tree->modules[0].parameter_bytes;
    }
    memcpy(result->volume, t->volume, sizeof result->volume);
    me_status status = ME_OK;
    if (t->places == NULL && !t->has_totals) {
        t->places = order_modules(t->tree);
        status = t->places == NULL ? ME_ERR_NOMEM : ME_OK;
    }
    if (status == ME_OK) {
        status = fill_iterations(t, result);
    }
    if (status == ME_OK) {
        status = me_course_copy(&t->course, result);
    }
    return status == ME_OK ? share_common(t, result) : status;
}

me_status me_tracker_finish(me_tracker *tracker, me_diag *diag,
                            me_rank_result **result_out)
{
    return me_tracker_finish_as(tracker, NULL, diag, result_out);
}

me_status me_tracker_finish_as(me_tracker *tracker,
                               const me_shard_modules *shards, me_diag *diag,
                               me_rank_result **result_out)
{
    tracker->shards = shards;
    me_tracker_close_iteration(tracker);
    me_status status = seen_status(tracker);
    me_rank_result *result = NULL;
    if (status == ME_OK) {
        result = me_rank_result_create();
        status = result == NULL ? ME_ERR_NOMEM : fill_result(tracker, result);
    }
    if (status != ME_OK) {
        me_rank_result_destroy(result);
        return me_fail(diag, status, "cannot account for the rank's memory: %s",
                       me_status_text(status));
    }
    *result_out = result;
    return ME_OK;
}

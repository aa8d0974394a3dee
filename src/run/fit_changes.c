/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/options.h"
#include "config/torchtitan/torchtitan.h"
#include "run/fit_builder.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

me_fit_change *me_fit_add(me_fit_builder *b, const char *format, ...)
{
    me_fit_changes *to = b->to;
    me_fit_change *change =
        to->count < ME_FIT_CHANGES_MAX ? &to->items[to->count++] : &b->none;
    *change = (me_fit_change){.changes_numerics = false};
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(change->name, sizeof change->name, format, arguments);
    va_end(arguments);
    return change;
}

void me_fit_set(me_fit_change *change, const char *format, ...)
{
    size_t length = strlen(change->sets);
    if (length > 0 && length + 1 < sizeof change->sets) {
        change->sets[length++] = ',';
        change->sets[length] = '\0';
    }
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(change->sets + length, sizeof change->sets - length, format,
                    arguments);
    va_end(arguments);
}

static void add_allocator(me_fit_builder *b)
{
    const char *conf = b->config->device.alloc_conf;
    if (strstr(conf, "expandable_segments:True") == NULL) {
        me_fit_change *c = me_fit_add(b, "expandable segments");
        if (*conf == '\0' || strstr(conf, "expandable_segments") != NULL) {
            me_fit_set(c, "device.alloc_conf=expandable_segments:True");
        } else {
            me_fit_set(c, "device.alloc_conf=%s,expandable_segments:True",
                       conf);
        }
    }
}

static const me_fit_kind of_all[] = {{add_allocator, false, 0},
                                     {NULL, false, 0}};

static void add_kinds(me_fit_builder *b, const me_fit_kind *kinds)
{
    for (size_t i = 0; kinds[i].add != NULL; i++) {
        const int32_t first = b->to->count;
        kinds[i].add(b);
        for (int32_t j = first; j < b->to->count; j++) {
            b->to->items[j].changes_numerics = kinds[i].changes_numerics;
            b->to->items[j].needs |= kinds[i].needs;
        }
    }
}

void me_fit_changes_propose(const me_config *config, bool host_is_short,
                            me_fit_changes *changes_out)
{
    static const me_fit_kind *const of_framework[] = {
        [ME_FRAMEWORK_MEGATRON] = me_fit_megatron_kinds,
        [ME_FRAMEWORK_TORCH] = me_fit_torch_kinds,
    };

    me_fit_builder b = {
        .config = config, .host_is_short = host_is_short, .to = changes_out};
    changes_out->count = 0;
    add_kinds(&b, of_all);
    // What gives a job a tree of modules has keys of its own to change.
    add_kinds(&b, me_torchtitan_of(config) != NULL
                      ? me_fit_torchtitan_kinds
                      : of_framework[config->framework]);
}

/** The next assignment of a list whose values have no commas but in what is no
 *  assignment's beginning. @return its length; 0: none is left */
static size_t next_set(const char **cursor)
{
    const char *at = *cursor + (**cursor == ',' ? 1 : 0);
    const char *end = at;
    while (*end != '\0') {
        const size_t key = strspn(end + 1, "abcdefghijklmnopqrstuvwxyz_.0123456"
                                           "789");
        if (*end == ',' && key > 0 && end[1 + key] == '=') {
            break;
        }
        end++;
    }
    *cursor = at;
    return (size_t)(end - at);
}

/** Does a list set what @p set sets? @param is_same_out  to the same value */
static bool sets_it(const char *list, const char *assignment, size_t length,
                    bool *is_same_out)
{
    const size_t key = strcspn(assignment, "=") + 1;
    const char *at = list;
    for (size_t n = next_set(&at); n > 0; n = next_set(&at)) {
        if (n >= key && strncmp(at, assignment, key) == 0) {
            *is_same_out = n == length && strncmp(at, assignment, n) == 0;
            return true;
        }
        at += n;
    }
    return false;
}

/** `a + b`. @return false: no room for it */
static bool join_names(const char *a, const char *b, me_fit_change *both)
{
    static const char between[] = " + ";
    const size_t n_a = strlen(a);
    const size_t n_b = strlen(b);
    const size_t n_between = sizeof between - 1;
    if (n_a + n_between + n_b >= sizeof both->name) {
        return false;
    }
    memcpy(both->name, a, n_a);
    memcpy(both->name + n_a, between, n_between);
    memcpy(both->name + n_a + n_between, b, n_b + 1);
    return true;
}

static const char no_core_attention[] = "recompute.core_attn=false";

bool me_fit_changes_join(const me_fit_change *a, const me_fit_change *b,
                         me_fit_change *both_out)
{
    me_fit_change both = *a;
    size_t length = strlen(both.sets);
    const size_t before = length;
    const char *at = b->sets;
    for (size_t n = next_set(&at); n > 0; n = next_set(&at)) {
        bool is_same = false;
        const bool is_there = sets_it(a->sets, at, n, &is_same);
        // Nobody asked for it: it is what is recomputed by default.
        const bool is_default =
            strncmp(at, no_core_attention, sizeof no_core_attention - 1) == 0;
        if ((is_there && !is_same && !is_default) ||
            length + n + 2 > sizeof both.sets) {
            return false;
        }
        if (!is_there) {
            both.sets[length++] = ',';
            memcpy(both.sets + length, at, n);
            length += n;
            both.sets[length] = '\0';
        }
        at += n;
    }
    both.needs = a->needs | b->needs;
    both.changes_numerics = a->changes_numerics || b->changes_numerics;
    if (length == before || !join_names(a->name, b->name, &both)) {
        return false;
    }
    *both_out = both;
    return true;
}

bool me_fit_change_is_of_use(const me_fit_change *change,
                             const me_config *config)
{
    const me_parallel_config *p = &config->parallel;
    const bool has_shards = (int64_t)p->data * p->context > 1;
    const unsigned has = (has_shards ? ME_FIT_NEEDS_SHARDS : 0U) |
                         (p->tensor > 1 ? ME_FIT_NEEDS_TENSOR : 0U) |
                         (p->pipeline > 1 ? ME_FIT_NEEDS_STAGES : 0U);
    return (change->needs & ~has) == 0;
}

bool me_fit_change_variant(const me_fit_change *change, const me_config *config,
                           char text[ME_FIT_TEXT])
{
    const bool has_world = me_config_is_set(config, "parallel.world_size");
    // What a step trains follows from these where nothing says it.
    const bool has_batch =
        me_config_is_set(config, "train.global_batch_size") ||
        (strstr(change->sets, "parallel.") == NULL &&
         strstr(change->sets, "train.micro_batch_size") == NULL &&
         strstr(change->sets, "torch.input_shape") == NULL);
    int length =
        snprintf(text, ME_FIT_TEXT, "%s:%s", change->name, change->sets);
    if (!has_world && length < ME_FIT_TEXT) {
        length += snprintf(text + length, (size_t)(ME_FIT_TEXT - length),
                           ",parallel.world_size=%d",
                           (int)config->parallel.world_size);
    }
    if (!has_batch && length < ME_FIT_TEXT) {
        length += snprintf(text + length, (size_t)(ME_FIT_TEXT - length),
                           ",train.global_batch_size=%" PRIu64,
                           config->train.global_batch_size);
    }
    return length < ME_FIT_TEXT && change->sets[0] != '\0';
}

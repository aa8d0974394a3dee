/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "diff/diff.h"
#include "report/json.h"

static json_t *make_source(const me_profile *p)
{
    return json_pack("{s:s, s:s, s:o, s:i}", "file", p->name, "source",
                     p->source, "rounding_bytes", me_json_bytes(p->rounding),
                     "ranks", (int)p->n_ranks);
}

static json_t *make_bytes(bool has, uint64_t bytes)
{
    return has ? me_json_bytes(bytes) : json_null();
}

static json_t *make_quantities(const me_diff *diff, const me_diff_pair *pair)
{
    json_t *object = json_object();
    for (int q = 0; q < ME_QUANTITY_COUNT; q++) {
        const bool a = pair->a->has[q];
        const bool b = pair->b->has[q];
        const uint64_t of_a = pair->a->bytes[q];
        const uint64_t of_b = pair->b->bytes[q];
        if (!a && !b) {
            continue;
        }
        json_t *one =
            json_pack("{s:o, s:o, s:o}", "first", make_bytes(a, of_a), "second",
                      make_bytes(b, of_b), "beyond_rounding",
                      make_bytes(a && b, me_diff_beyond(diff, of_a, of_b)));
        object = me_json_put(object, me_quantity_key((me_quantity)q), one);
    }
    return object;
}

static json_t *make_part(const me_part_pair *p)
{
    const me_part *named = me_part_named(p);
    json_t *one = json_pack(
        "{s:s, s:o, s:o, s:o, s:o}", "name", named->name, "first",
        make_bytes(p->a != NULL, p->a == NULL ? 0 : p->a->bytes), "second",
        make_bytes(p->b != NULL, p->b == NULL ? 0 : p->b->bytes), "first_count",
        make_bytes(p->a != NULL, p->a == NULL ? 0 : p->a->count),
        "second_count",
        make_bytes(p->b != NULL, p->b == NULL ? 0 : p->b->count));
    return named->key == 0
               ? one
               : me_json_put(one, "block_bytes", me_json_bytes(named->key));
}

/** Parts that differ; null where only one of them has the division. */
static json_t *make_division(const me_diff_pair *pair, me_division division)
{
    me_part_pair *parts = NULL;
    uint32_t n = 0;
    if (pair->a->divisions[division].count == 0 ||
        pair->b->divisions[division].count == 0) {
        return json_null();
    }
    if (me_diff_parts(pair, division, &parts, &n) != ME_OK) {
        return NULL;
    }
    json_t *list = json_array();
    for (uint32_t i = 0; i < n && list != NULL; i++) {
        list = me_json_push(list, make_part(&parts[i]));
    }
    me_free(parts);
    return list;
}

static json_t *make_pair(const me_diff *diff, const me_diff_pair *pair)
{
    json_t *object =
        json_pack("{s:o, s:o}", "rank",
                  pair->rank < 0 ? json_null() : json_integer(pair->rank),
                  "bytes", make_quantities(diff, pair));
    for (int d = 0; d < ME_DIVISION_COUNT; d++) {
        object = me_json_put(object, me_division_key((me_division)d),
                             make_division(pair, (me_division)d));
    }
    return object;
}

static json_t *make_options(const me_profile *p)
{
    json_t *object = json_object();
    for (uint32_t i = 0; i < p->n_options; i++) {
        object = me_json_put(object, p->options[i].name,
                             json_string(p->options[i].value));
    }
    return p->has_options ? object : (json_decref(object), json_null());
}

static json_t *make_calls(const me_diff_calls *c)
{
    return !c->is_known
               ? json_null()
               : json_pack("{s:s, s:s, s:I, s:I, s:I}", "of",
                           c->is_of_b ? "second" : "first", "iteration",
                           c->iteration, "calls", (json_int_t)c->n_calls,
                           "equal", (json_int_t)c->n_equal, "at",
                           (json_int_t)c->at);
}

me_status me_diff_json(const me_diff *diff, me_str *text)
{
    json_t *ranks = json_array();
    for (uint32_t i = 0; i < diff->n_pairs && ranks != NULL; i++) {
        ranks = me_json_push(ranks, make_pair(diff, &diff->pairs[i]));
    }
    json_t *root = json_pack(
        "{s:o, s:o, s:s?, s:o, s:o, s:o, s:o, s:o}", "first",
        make_source(diff->a), "second", make_source(diff->b),
        "taken_for_rank_0", diff->guessed == NULL ? NULL : diff->guessed->name,
        "first_options", make_options(diff->a), "second_options",
        make_options(diff->b), "largest_bytes",
        me_json_bytes(diff->largest_bytes), "calls", make_calls(&diff->calls),
        "ranks", ranks);
    return me_json_append(root, JSON_INDENT(1), text);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/megatron/bookkeeping.h"
#include "train/megatron/optimizer.h"
#include "train/megatron/trainer.h"

/* core/optimizer/__init__.py, _get_param_groups(). */

/** Bytes of pickled keys: of an empty list; of a list with one element, and of
 *  each: that sets nothing; no weight decay; a learning rate; that and its least.
 *  What a name saves that is there already. What an optimizer's name adds, more
 *  where nothing else is set, and what it saves. */
enum {
    NO_KEYS_BYTES = 5,
    KEYS_BYTES = 15,
    PLAIN_KEY_BYTES = 4,
    UNDECAYED_KEY_BYTES = 26,
    DECOUPLED_KEY_BYTES = 25,
    DECOUPLED_MIN_KEY_BYTES = 45,
    NAME_AGAIN_SAVES_BYTES = 8,
    OPTIMIZER_BYTES = 21,
    FIRST_SETTING_BYTES = 1,
    OPTIMIZER_AGAIN_SAVES_BYTES = 15
};

/** Which keys there are: groups of all ranks, and of experts. */
typedef struct group_keys {
    bool has[2][2][ME_OPTIMIZER_GROUPS]; /**< second: of experts; then: that
                                              name an optimizer */
} group_keys;

/** get_standard_config_overrides(): vectors have no weight decay. */
me_parameter_group me_parameter_group_of(const me_trainer *t,
                                         const me_parameter *p)
{
    const me_optimizer_config *c = &t->config->optimizer;
    if (p->shape.ndim == 1 && !(c->apply_wd_to_qk_layernorm && p->is_qk_norm)) {
        return ME_GROUP_UNDECAYED;
    }
    return c->decoupled_lr && p->is_embedding_or_output ? ME_GROUP_DECOUPLED
                                                        : ME_GROUP_DECAYED;
}

bool me_job_has_expert_groups(const me_trainer *t)
{
    const me_config *c = t->config;
    bool has_experts = false;
    for (int32_t i = 0;
         c->moe.num_experts > 0 && me_has_expert_groups(&c->parallel) &&
         i < c->model.num_layers;
         i++) {
        has_experts = has_experts || t->spec->is_moe_layer[i];
    }
    return has_experts;
}

bool me_has_experts_optimizer(const me_trainer *t)
{
    return !t->wrapper->has_one_optimizer &&
           (t->optimizers[t->n_optimizers - 1].count > 0 ||
            me_job_has_expert_groups(t));
}

/** Does a parameter's key name an optimizer? */
static bool names_optimizer(const me_trainer *t, const me_parameter *p)
{
    return me_is_emerging_optimizer(t->config->optimizer.kind) &&
           !me_is_layer_matrix(p);
}

/** Keys of an optimizer's chunks on this rank. */
static group_keys own_keys(const me_trainer *t, const me_optimizer *o)
{
    group_keys keys = {{{{false}}}};
    for (uint32_t i = 0; i < t->parameters.count; i++) {
        const me_parameter *p = t->parameters.parameters[i];
        if (p->chunk >= o->chunk_begin && p->chunk < o->chunk_end) {
            const bool is_expert =
                p->is_expert && !t->wrapper->has_one_optimizer;
            keys.has[is_expert][names_optimizer(t, p)]
                    [me_parameter_group_of(t, p)] = true;
        }
    }
    return keys;
}

/** Add what some rank has, of which one at least has matrices and vectors. */
static group_keys all_keys(const me_trainer *t, group_keys keys)
{
    const bool is_emerging =
        me_is_emerging_optimizer(t->config->optimizer.kind);
    const bool is_decoupled = t->config->optimizer.decoupled_lr;
    const bool has_experts =
        is_emerging ? me_job_has_expert_groups(t) : me_has_experts_optimizer(t);
    keys.has[0][0][ME_GROUP_DECAYED] = true;
    keys.has[0][is_emerging][ME_GROUP_UNDECAYED] = true;
    if (is_decoupled) {
        keys.has[0][is_emerging][ME_GROUP_DECOUPLED] = true;
    } else if (is_emerging) {
        keys.has[0][1][ME_GROUP_DECAYED] = true;
    }
    if (has_experts) {
        keys.has[1][0][ME_GROUP_DECAYED] = true;
    }
    if (has_experts && t->config->model.add_bias_linear) {
        keys.has[1][is_emerging][ME_GROUP_UNDECAYED] = true;
    }
    return keys;
}

/** Bytes of one key's pickle. */
static uint64_t key_bytes(const me_trainer *t, int group, bool names_one)
{
    const uint64_t bytes[ME_OPTIMIZER_GROUPS] = {
        [ME_GROUP_DECAYED] = PLAIN_KEY_BYTES,
        [ME_GROUP_DECOUPLED] = t->config->optimizer.decoupled_min_lr
                                   ? DECOUPLED_MIN_KEY_BYTES
                                   : DECOUPLED_KEY_BYTES,
        [ME_GROUP_UNDECAYED] = UNDECAYED_KEY_BYTES,
    };
    const uint64_t first = group == ME_GROUP_DECAYED ? FIRST_SETTING_BYTES : 0;
    return bytes[group] + (names_one ? OPTIMIZER_BYTES + first : 0);
}

/** Bytes of the pickled list of keys, pairs of what a group sets and whether it
 *  is of experts: protocol 4 with its frame. A name that was there already is a
 *  reference. */
static uint64_t pickled_bytes(const me_trainer *t, const group_keys *keys)
{
    uint64_t sum = KEYS_BYTES;
    int n = 0;
    int undecayed = 0;
    int named = 0;
    for (int i = 0; i < 2 * 2 * ME_OPTIMIZER_GROUPS; i++) {
        const int group = i % ME_OPTIMIZER_GROUPS;
        const int is_named = i / ME_OPTIMIZER_GROUPS % 2;
        if (keys->has[i / (2 * ME_OPTIMIZER_GROUPS)][is_named][group]) {
            sum += key_bytes(t, group, is_named != 0);
            undecayed += group == ME_GROUP_UNDECAYED;
            named += is_named;
            n++;
        }
    }
    if (undecayed > 1) {
        sum -= NAME_AGAIN_SAVES_BYTES * ((uint64_t)undecayed - 1);
    }
    if (named > 1) {
        sum -= OPTIMIZER_AGAIN_SAVES_BYTES * ((uint64_t)named - 1);
    }
    return n == 0 ? NO_KEYS_BYTES : n == 1 ? sum : sum + 1;
}

void me_gather_parameter_groups(me_trainer *t, const me_optimizer *o)
{
    const group_keys own = own_keys(t, o);
    const group_keys all = all_keys(t, own);
    me_gather_object(t, pickled_bytes(t, &own), pickled_bytes(t, &all));
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/mup.h"
#include "train/megatron/bookkeeping.h"
#include "train/megatron/optimizer.h"
#include "train/megatron/trainer.h"

#include <string.h>

/* core/optimizer/__init__.py, _get_param_groups(). */

/** What a key sets, in the order of its pickle. */
typedef enum key_name {
    NAME_EPS,
    NAME_MAX_LR,
    NAME_MIN_LR,
    NAME_OPTIMIZER,
    NAME_WD_MULT,
    KEY_NAMES
} key_name;

/** Bytes of pickled keys: of an empty list; of a list with one element, and with
 *  more; of a key that sets nothing, and of what else one that does takes; of a
 *  text beside its letters, and if it was there already; of a number; of a name's
 *  tuple, and of a tuple of more than three beyond that. */
enum {
    NO_KEYS_BYTES = 5,
    KEYS_BYTES = 15,
    FURTHER_KEYS_BYTES = 1,
    PLAIN_KEY_BYTES = 4,
    SETTING_KEY_BYTES = 5,
    TEXT_BYTES = 3,
    TEXT_AGAIN_BYTES = 2,
    NUMBER_BYTES = 9,
    PAIR_BYTES = 2,
    SHORT_TUPLE = 3
};

/** Which keys there are: groups of all ranks, and of experts. */
typedef struct group_keys {
    bool has[2][2][ME_OPTIMIZER_GROUPS]; /**< second: of experts; then: that
                                              name an optimizer */
} group_keys;

/** get_mup_config_overrides(): do widths give learning rates of their own? Those
 *  that are decoupled stay as they are, and Muon's matrices. */
static bool scales_rates(const me_trainer *t)
{
    const me_optimizer_config *c = &t->config->optimizer;
    return me_model_is_mup_scaled(&t->config->model) && !c->decoupled_lr &&
           !me_is_muon(c->kind);
}

/** Are they those of vectors, embeddings and output layer, not of matrices? */
static bool scales_vectors(const me_trainer *t)
{
    return scales_rates(t) && t->config->optimizer.kind == ME_OPTIMIZER_SGD;
}

/** The group of layers' matrices. */
static me_parameter_group group_of_matrices(const me_trainer *t)
{
    return scales_rates(t) && !scales_vectors(t) ? ME_GROUP_OWN_RATE
                                                 : ME_GROUP_DECAYED;
}

/** The group of embeddings and output layer; with decoupled rates not of those of
 *  positions. */
static me_parameter_group group_of_embeddings(const me_trainer *t)
{
    return scales_vectors(t) || t->config->optimizer.decoupled_lr
               ? ME_GROUP_OWN_RATE
               : ME_GROUP_DECAYED;
}

/** get_standard_config_overrides(): vectors have no weight decay. */
me_parameter_group me_parameter_group_of(const me_trainer *t,
                                         const me_parameter *p)
{
    const me_optimizer_config *c = &t->config->optimizer;
    const bool is_vector = p->shape.ndim == 1;
    if (is_vector && !(c->apply_wd_to_qk_layernorm && p->is_qk_norm)) {
        return ME_GROUP_UNDECAYED;
    }
    if (p->is_embedding_or_output) {
        return group_of_embeddings(t);
    }
    if (is_vector || p->is_position_embedding) {
        return scales_vectors(t) ? ME_GROUP_OWN_RATE : ME_GROUP_DECAYED;
    }
    return group_of_matrices(t);
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
    const me_parameter_group matrices = group_of_matrices(t);
    const bool has_experts =
        is_emerging ? me_job_has_expert_groups(t) : me_has_experts_optimizer(t);
    keys.has[0][0][matrices] = true;
    keys.has[0][is_emerging][ME_GROUP_UNDECAYED] = true;
    keys.has[0][is_emerging][group_of_embeddings(t)] = true;
    if (has_experts) {
        keys.has[1][0][matrices] = true;
    }
    if (has_experts && t->config->model.add_bias_linear) {
        keys.has[1][is_emerging][ME_GROUP_UNDECAYED] = true;
    }
    return keys;
}

/** What a group's key sets: a bit for each name. */
static unsigned names_of(const me_trainer *t, int group, bool names_one)
{
    const me_optimizer_config *c = &t->config->optimizer;
    const unsigned rates = 1U << NAME_MAX_LR | 1U << NAME_MIN_LR;
    unsigned names = names_one ? 1U << NAME_OPTIMIZER : 0;
    if (group == ME_GROUP_UNDECAYED) {
        names |= 1U << NAME_WD_MULT;
        names |= scales_vectors(t) ? rates : 0;
    } else if (group == ME_GROUP_OWN_RATE && !scales_rates(t)) {
        names |= c->decoupled_min_lr ? rates : 1U << NAME_MAX_LR;
    } else if (group == ME_GROUP_OWN_RATE) {
        names |= rates;
        names |= c->kind == ME_OPTIMIZER_ADAM ? 1U << NAME_EPS : 0;
    }
    return names;
}

/** Bytes of a text's pickle. @param has_seen  it was there already */
static uint64_t text_bytes(const char *text, bool has_seen)
{
    return has_seen ? TEXT_AGAIN_BYTES : TEXT_BYTES + strlen(text);
}

/** Bytes of one key's pickle. @param seen  names that were there already */
static uint64_t key_bytes(unsigned names, unsigned seen)
{
    static const char *const texts[KEY_NAMES] = {
        [NAME_EPS] = "eps",         [NAME_MAX_LR] = "max_lr",
        [NAME_MIN_LR] = "min_lr",   [NAME_OPTIMIZER] = "optimizer",
        [NAME_WD_MULT] = "wd_mult",
    };
    uint64_t sum = names == 0 ? PLAIN_KEY_BYTES : SETTING_KEY_BYTES;
    int n = 0;
    for (int i = 0; i < KEY_NAMES; i++) {
        const bool has_seen = (seen >> i & 1U) != 0;
        if ((names >> i & 1U) != 0) {
            sum += text_bytes(texts[i], has_seen) + PAIR_BYTES;
            sum += i == NAME_OPTIMIZER ? text_bytes("adam", has_seen)
                                       : NUMBER_BYTES;
            n++;
        }
    }
    return n > SHORT_TUPLE ? sum + 1 : sum;
}

/** Bytes of the pickled list of keys, pairs of what a group sets and whether it
 *  is of experts: protocol 4 with its frame. A text that was there already is a
 *  reference. */
static uint64_t pickled_bytes(const me_trainer *t, const group_keys *keys)
{
    uint64_t sum = KEYS_BYTES;
    unsigned seen = 0;
    int n = 0;
    for (int i = 0; i < 2 * 2 * ME_OPTIMIZER_GROUPS; i++) {
        const int group = i % ME_OPTIMIZER_GROUPS;
        const int is_named = i / ME_OPTIMIZER_GROUPS % 2;
        if (keys->has[i / (2 * ME_OPTIMIZER_GROUPS)][is_named][group]) {
            const unsigned names = names_of(t, group, is_named != 0);
            sum += key_bytes(names, seen);
            seen |= names;
            n++;
        }
    }
    return n == 0 ? NO_KEYS_BYTES : n == 1 ? sum : sum + FURTHER_KEYS_BYTES;
}

void me_gather_parameter_groups(me_trainer *t, const me_optimizer *o)
{
    const group_keys own = own_keys(t, o);
    const group_keys all = all_keys(t, own);
    me_gather_object(t, pickled_bytes(t, &own), pickled_bytes(t, &all));
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/torch/tree_keys.h"

#include "base/nearest.h"
#include "config/torch/tree_plan.h"

#include <stddef.h>
#include <string.h>

static const int64_t extent_max = INT64_C(1) << 28;

me_status me_layers_fail(const me_layers_reading *r,
                         const config_setting_t *setting, const char *what)
{
    return me_fail_at(r->diag, ME_ERR_CONFIG, r->where,
                      (int)config_setting_source_line(setting), "%s: %s",
                      config_setting_name(setting), what);
}

me_status me_layers_no_memory(const me_layers_reading *r)
{
    return me_fail(r->diag, ME_ERR_NOMEM, "no memory for the modules of %.80s",
                   r->where);
}

static bool is_whole(const config_setting_t *setting)
{
    const int type = config_setting_type(setting);
    return type == CONFIG_TYPE_INT || type == CONFIG_TYPE_INT64;
}

static me_status read_number(const me_layers_reading *r,
                             const config_setting_t *setting, int64_t least,
                             int64_t *value_out)
{
    const int64_t value =
        is_whole(setting) ? (int64_t)config_setting_get_int64(setting) : -1;
    if (value < least || value > extent_max) {
        return me_layers_fail(
            r, setting,
            least == 0 ? "must be a whole number from 0 to 268435456"
                       : "must be a whole number from 1 to 268435456");
    }
    *value_out = value;
    return ME_OK;
}

static me_status read_extent(const me_layers_reading *r,
                             const config_setting_t *setting,
                             int64_t *value_out)
{
    return read_number(r, setting, 1, value_out);
}

static me_status read_dtype(const me_layers_reading *r,
                            const config_setting_t *setting,
                            me_dtype *dtype_out)
{
    static const me_dtype known[] = {ME_DTYPE_FLOAT32, ME_DTYPE_BFLOAT16,
                                     ME_DTYPE_FLOAT16};
    const char *word = config_setting_get_string(setting);
    for (size_t i = 0; word != NULL && i < sizeof known / sizeof known[0];
         i++) {
        if (strcmp(me_dtype_name(known[i]), word) == 0) {
            *dtype_out = known[i];
            return ME_OK;
        }
    }
    return me_layers_fail(r, setting,
                          "must be one of float32, bfloat16, float16");
}

static me_status read_bool(const me_layers_reading *r,
                           const config_setting_t *setting, bool *value_out)
{
    if (config_setting_type(setting) != CONFIG_TYPE_BOOL) {
        return me_layers_fail(r, setting, "must be true or false");
    }
    *value_out = config_setting_get_bool(setting) != 0;
    return ME_OK;
}

/** The mean of each channel is the one that is known. */
static me_status set_output_size(const me_layers_reading *r,
                                 const config_setting_t *setting,
                                 const me_layer_target *t)
{
    (void)t;
    return is_whole(setting) && config_setting_get_int64(setting) == 1
               ? ME_OK
               : me_layers_fail(r, setting, "must be 1");
}

static me_status set_p(const me_layers_reading *r,
                       const config_setting_t *setting,
                       const me_layer_target *t)
{
    const bool is_float = config_setting_type(setting) == CONFIG_TYPE_FLOAT;
    t->layer->p = is_float ? config_setting_get_float(setting)
                           : (double)config_setting_get_int64(setting);
    if ((!is_float && !is_whole(setting)) || t->layer->p < 0 ||
        t->layer->p > 1) {
        return me_layers_fail(r, setting, "must be a number from 0 to 1");
    }
    return ME_OK;
}

static me_status set_dtype(const me_layers_reading *r,
                           const config_setting_t *setting,
                           const me_layer_target *t)
{
    return read_dtype(r, setting, &t->layer->dtype);
}

static me_status set_weight(const me_layers_reading *r,
                            const config_setting_t *setting,
                            const me_layer_target *t)
{
    static const char end[] = ".weight";
    const char *text = config_setting_get_string(setting);
    const size_t length = text == NULL ? 0 : strlen(text);
    if (length < sizeof end ||
        strcmp(text + length - (sizeof end - 1), end) != 0) {
        return me_layers_fail(
            r, setting, "must name another module's, as \"embedding.weight\"");
    }
    char *path = me_arena_strdup(r->arena, text);
    if (path == NULL) {
        return me_layers_no_memory(r);
    }
    path[length - (sizeof end - 1)] = '\0';
    t->layer->tied_to = path;
    return ME_OK;
}

static me_status set_class_name(const me_layers_reading *r,
                                const config_setting_t *setting,
                                const me_layer_target *t)
{
    const char *text = config_setting_get_string(setting);
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "abcdefghijklmnopqrstuvwxyz0123456789_";
    if (text == NULL || text[0] == '\0' ||
        text[strspn(text, letters)] != '\0') {
        return me_layers_fail(r, setting,
                              "must be the name of a class, in quotes");
    }
    t->layer->class_name = me_arena_strdup(r->arena, text);
    return t->layer->class_name == NULL ? me_layers_no_memory(r) : ME_OK;
}

static me_status set_checkpoint(const me_layers_reading *r,
                                const config_setting_t *setting,
                                const me_layer_target *t)
{
    const char *word = config_setting_get_string(setting);
    if (word == NULL) {
        return read_bool(r, setting, &t->layer->is_checkpointed);
    }
    if (strcmp(word, "reentrant") != 0) {
        return me_layers_fail(r, setting,
                              "must be true, false or \"reentrant\"");
    }
    t->layer->is_checkpointed = true;
    t->layer->is_reentrant = true;
    return ME_OK;
}

static me_status set_checkpoint_policy(const me_layers_reading *r,
                                       const config_setting_t *setting,
                                       const me_layer_target *t)
{
    const char *word = config_setting_get_string(setting);
    if (word == NULL ||
        (strcmp(word, "op") != 0 && strcmp(word, "none") != 0)) {
        return me_layers_fail(r, setting, "must be one of none, op");
    }
    t->layer->is_selective = strcmp(word, "op") == 0;
    return ME_OK;
}

static me_status set_early_stop(const me_layers_reading *r,
                                const config_setting_t *setting,
                                const me_layer_target *t)
{
    bool stops = true;
    const me_status status = read_bool(r, setting, &stops);
    t->layer->has_early_stop = true;
    t->layer->is_recomputed_to_end = !stops;
    return status;
}

static me_status set_reshard(const me_layers_reading *r,
                             const config_setting_t *setting,
                             const me_layer_target *t)
{
    bool reshards = true;
    const me_status status = read_bool(r, setting, &reshards);
    t->layer->keeps_unsharded = !reshards;
    return status;
}

static me_status set_fully_shard(const me_layers_reading *r,
                                 const config_setting_t *setting,
                                 const me_layer_target *t)
{
    const me_status status = read_bool(r, setting, &t->layer->is_sharded);
    return status == ME_OK && t->layer->is_sharded &&
                   t->layer->kind == ME_LAYER_MODULE_LIST
               ? me_layers_fail(
                     r, setting,
                     "a ModuleList has no forward, and fully_shard() "
                     "refuses it; what is in it can be sharded")
               : status;
}

static me_status set_checkpoint_from(const me_layers_reading *r,
                                     const config_setting_t *setting,
                                     const me_layer_target *t)
{
    t->layer->is_checkpointed = true;
    return read_extent(r, setting, &t->placing->checkpoint_from);
}

static me_status set_repeat(const me_layers_reading *r,
                            const config_setting_t *setting,
                            const me_layer_target *t)
{
    return read_extent(r, setting, &t->placing->repeat);
}

static me_status set_repeat_children(const me_layers_reading *r,
                                     const config_setting_t *setting,
                                     const me_layer_target *t)
{
    return read_extent(r, setting, &t->placing->repeat_children);
}

static me_status set_to(const me_layers_reading *r,
                        const config_setting_t *setting,
                        const me_layer_target *t)
{
    t->tree->has_cast = true;
    return read_dtype(r, setting, &t->tree->cast);
}

static me_status set_device(const me_layers_reading *r,
                            const config_setting_t *setting,
                            const me_layer_target *t)
{
    const char *word = config_setting_get_string(setting);
    if (word == NULL ||
        (strcmp(word, "cpu") != 0 && strcmp(word, "cuda") != 0 &&
         strcmp(word, "meta") != 0 && strcmp(word, "host") != 0)) {
        return me_layers_fail(r, setting,
                              "must be one of cpu, cuda, meta, host");
    }
    t->tree->stays_on_host = strcmp(word, "host") == 0;
    t->tree->is_built_on_host =
        strcmp(word, "cpu") == 0 || t->tree->stays_on_host;
    t->tree->is_meta = strcmp(word, "meta") == 0;
    return ME_OK;
}

static me_status set_plan(const me_layers_reading *r,
                          const config_setting_t *setting,
                          const me_layer_target *t)
{
    return me_layers_read_plan(
        r,
        config_setting_get_member(config_setting_parent(setting),
                                  config_setting_name(setting)),
        t->tree);
}

#define KIND(kind) (1U << (unsigned)(kind))
#define LISTS      (KIND(ME_LAYER_SEQUENTIAL) | KIND(ME_LAYER_MODULE_LIST))
#define TENSORS    (KIND(ME_LAYER_PARAMETER) | KIND(ME_LAYER_BUFFER))
#define MODULES    (~TENSORS)
#define NORMS      (KIND(ME_LAYER_LAYER_NORM) | KIND(ME_LAYER_RMS_NORM))
#define WINDOWS    (KIND(ME_LAYER_CONV2D) | KIND(ME_LAYER_MAX_POOL2D))
#define BIASED     (KIND(ME_LAYER_LINEAR) | KIND(ME_LAYER_CONV2D))

#define AT(field) offsetof(me_layer_spec, field)

/** Keys that are no children: of which classes, and where they go. `class` and
 * `forward` are read before and after the others. */
static const struct {
    const char *key;
    unsigned kinds;
    bool is_required;
    bool is_of_root;
    size_t extent; /**< of the layer's field that gets a number from 1; or */
    bool may_be_0; /**< from 0 */
    size_t flag;   /**< of the one that gets true or false; or */
    bool is_true;  /**< unless it is given */
    me_status (*set)(const me_layers_reading *r,
                     const config_setting_t *setting, const me_layer_target *t);
} keys[] = {
    {"in_features", KIND(ME_LAYER_LINEAR), true, .extent = AT(inputs)},
    {"out_features", KIND(ME_LAYER_LINEAR), true, .extent = AT(outputs)},
    {"num_embeddings", KIND(ME_LAYER_EMBEDDING), true, .extent = AT(inputs)},
    {"embedding_dim", KIND(ME_LAYER_EMBEDDING), true, .extent = AT(outputs)},
    {"normalized_shape", NORMS, true, .extent = AT(inputs)},
    {"shape", TENSORS, true, .extent = AT(inputs)},
    {"in_channels", KIND(ME_LAYER_CONV2D), true, .extent = AT(inputs)},
    {"out_channels", KIND(ME_LAYER_CONV2D), true, .extent = AT(outputs)},
    {"bias", BIASED, .flag = AT(has_bias), .is_true = true},
    {"kernel_size", WINDOWS, true, .extent = AT(kernel)},
    {"padding", WINDOWS, .extent = AT(padding), .may_be_0 = true},
    {"stride", WINDOWS, .extent = AT(stride)},
    {"num_features", KIND(ME_LAYER_BATCH_NORM2D), true, .extent = AT(inputs)},
    {"output_size", KIND(ME_LAYER_ADAPTIVE_AVG_POOL2D), true,
     .set = set_output_size},
    {"inplace", KIND(ME_LAYER_RELU), .flag = AT(is_in_place)},
    {"p", KIND(ME_LAYER_DROPOUT), .set = set_p},
    {"weight", KIND(ME_LAYER_LINEAR), .set = set_weight},
    {"repeat_children", LISTS, .set = set_repeat_children},
    {"class_name", ~0U, .set = set_class_name},
    {"dtype", ~0U, .set = set_dtype},
    {"fully_shard", MODULES, .set = set_fully_shard},
    {"reshard_after_forward", MODULES, .set = set_reshard},
    {"checkpoint", MODULES, .set = set_checkpoint},
    {"checkpoint_policy", MODULES, .set = set_checkpoint_policy},
    {"checkpoint_early_stop", MODULES, .set = set_early_stop},
    {"checkpoint_from", MODULES, .set = set_checkpoint_from},
    {"repeat", MODULES, .set = set_repeat},
    {"to", ~0U, .is_of_root = true, .set = set_to},
    {"device", ~0U, .is_of_root = true, .set = set_device},
    {"parallelize_plan", ~0U, .is_of_root = true, .set = set_plan},
};

enum {
    N_KEYS = sizeof keys / sizeof keys[0]
};

static me_status unknown_key(const me_layers_reading *r,
                             const config_setting_t *setting,
                             const me_layer_target *t)
{
    const me_layer_spec *layer = t->layer;
    const char *name = config_setting_name(setting);
    const int line = (int)config_setting_source_line(setting);
    const char *near = NULL;
    me_nearest nearest = me_nearest_begin(name);
    for (size_t i = 0; i < N_KEYS; i++) {
        if ((keys[i].kinds & KIND(layer->kind)) != 0 &&
            (t->tree != NULL || !keys[i].is_of_root) &&
            me_nearest_offer(&nearest, keys[i].key)) {
            near = keys[i].key;
        }
    }
    return me_fail_at(r->diag, ME_ERR_CONFIG, r->where, line,
                      near == NULL ? "%s has no '%.40s'%s"
                                   : "%s has no '%.40s': did you mean %s?",
                      me_layer_kind_name(layer->kind), name,
                      near == NULL ? "" : near);
}

/** The value of key @p i, where its row says. */
static me_status set_value(const me_layers_reading *r, size_t i,
                           const config_setting_t *setting,
                           const me_layer_target *t)
{
    if (keys[i].set != NULL) {
        return keys[i].set(r, setting, t);
    }
    if (keys[i].flag != 0) {
        return read_bool(r, setting, (void *)((char *)t->layer + keys[i].flag));
    }
    uint64_t *size = (void *)((char *)t->layer + keys[i].extent);
    int64_t value = 0;
    const me_status status =
        read_number(r, setting, keys[i].may_be_0 ? 0 : 1, &value);
    *size = (uint64_t)value;
    return status;
}

void me_layer_keys_dump(const me_layer_spec *layer, me_str *text)
{
    for (size_t i = 0; i < N_KEYS; i++) {
        if ((keys[i].kinds & KIND(layer->kind)) == 0) {
            continue;
        }
        const void *at = (const char *)layer + keys[i].extent + keys[i].flag;
        if (keys[i].flag != 0 && *(const bool *)at != keys[i].is_true) {
            me_str_printf(text, " %s = %s;", keys[i].key,
                          keys[i].is_true ? "false" : "true");
        } else if (keys[i].extent != 0 &&
                   (*(const uint64_t *)at > 0 || keys[i].may_be_0)) {
            me_str_printf(text, " %s = %llu;", keys[i].key,
                          (unsigned long long)*(const uint64_t *)at);
        }
    }
}

me_status me_layer_key_set(const me_layers_reading *r,
                           const config_setting_t *setting,
                           const me_layer_target *t)
{
    const char *name = config_setting_name(setting);
    for (size_t i = 0; i < N_KEYS; i++) {
        if (strcmp(keys[i].key, name) == 0 &&
            (keys[i].kinds & KIND(t->layer->kind)) != 0 &&
            (t->tree != NULL || !keys[i].is_of_root)) {
            return set_value(r, i, setting, t);
        }
    }
    for (size_t i = 0; i < N_KEYS; i++) {
        if (strcmp(keys[i].key, name) == 0 && keys[i].is_of_root) {
            return me_layers_fail(r, setting, "is of the whole model alone");
        }
    }
    return unknown_key(r, setting, t);
}

/** A key that looks at another one, which is not there. */
static me_status check_pairs(const me_layers_reading *r,
                             config_setting_t *group,
                             const me_layer_spec *layer)
{
    static const char *const of_checkpoint[] = {"checkpoint_policy",
                                                "checkpoint_early_stop"};
    const config_setting_t *padding =
        config_setting_get_member(group, "padding");
    for (size_t i = 0; i < 2 && !layer->is_checkpointed; i++) {
        const config_setting_t *s =
            config_setting_get_member(group, of_checkpoint[i]);
        if (s != NULL) {
            return me_layers_fail(r, s,
                                  "is of a checkpoint, which this module "
                                  "has not: checkpoint = true");
        }
    }
    if (layer->kind == ME_LAYER_MAX_POOL2D && padding != NULL &&
        layer->padding > layer->kernel / 2) {
        return me_fail_at(r->diag, ME_ERR_CONFIG, r->where,
                          (int)config_setting_source_line(padding),
                          "padding = %llu: MaxPool2d takes half of kernel_size "
                          "= %llu at most",
                          (unsigned long long)layer->padding,
                          (unsigned long long)layer->kernel);
    }
    return ME_OK;
}

me_status me_layer_keys_check(const me_layers_reading *r,
                              config_setting_t *group,
                              const me_layer_spec *layer)
{
    for (size_t i = 0; i < N_KEYS; i++) {
        if (keys[i].is_required && (keys[i].kinds & KIND(layer->kind)) != 0 &&
            config_setting_get_member(group, keys[i].key) == NULL) {
            return me_fail_at(r->diag, ME_ERR_CONFIG, r->where,
                              (int)config_setting_source_line(group),
                              "%s %s needs %s", me_layer_kind_name(layer->kind),
                              layer->name[0] == '\0' ? "(root)" : layer->name,
                              keys[i].key);
        }
    }
    return check_pairs(r, group, layer);
}

bool me_layer_is_list(const me_layer_spec *layer)
{
    return (KIND(layer->kind) & LISTS) != 0;
}

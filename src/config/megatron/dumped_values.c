/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/megatron/dumped_values.h"

#include "base/parse.h"

#include <stdbool.h>
#include <string.h>

enum {
    MEMBERS_MAX = 8 /**< of an enumeration */
};

/** A mapping of the keys that dumpers have for a value. */
typedef struct object {
    size_t n; /**< leaves side by side that are in the mapping */
    const me_yaml_leaf *target;
    const me_yaml_leaf *args; /**< NULL: none */
    const me_yaml_leaf *name; /**< an enumeration's member; NULL: not said */
} object;

/** core_v0.19.0, core/transformer/enums.py: members from 1 on. */
static const struct {
    const char *name;
    const char *members[MEMBERS_MAX];
} enumerations[] = {
    {"AttnBackend", {"flash", "fused", "unfused", "local", "auto"}},
    {"CudaGraphModule",
     {"attn", "mlp", "moe", "moe_router", "moe_preprocess", "mamba"}},
    {"CudaGraphScope",
     {"full_iteration", "attn", "mlp", "moe", "moe_router", "moe_preprocess",
      "mamba", "full_iteration_inference"}},
    {"InferenceCudaGraphScope", {"none", "layer", "block"}},
};

/** Words of flags for torch's types (training/arguments.py, dtype_map). */
static const char *const types[][2] = {
    {"torch.float32", "fp32"},  {"torch.float", "fp32"},
    {"torch.float16", "fp16"},  {"torch.half", "fp16"},
    {"torch.bfloat16", "bf16"}, {"torch.uint8", "fp8"},
};

static const char *find_type(const char *value)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(value, types[i][0]) == 0) {
            return types[i][1];
        }
    }
    return NULL;
}

/** The member of the number, or the number itself. */
static const char *find_member(const char *target, const char *number)
{
    const char *dot = strrchr(target, '.');
    const char *name = dot == NULL ? target : dot + 1;
    uint64_t member = 0;
    if (me_parse_u64(number, &member) != ME_OK || member == 0 ||
        member > MEMBERS_MAX) {
        return number;
    }
    for (size_t i = 0; i < sizeof enumerations / sizeof *enumerations; i++) {
        const char *found = enumerations[i].members[member - 1];
        if (strcmp(enumerations[i].name, name) == 0 && found != NULL) {
            return found;
        }
    }
    return number;
}

/** Of a leaf's path without its key. */
static size_t parent_length(const me_yaml_leaf *leaf)
{
    const size_t key = strlen(leaf->key) + 1;
    const size_t path = strlen(leaf->path);
    return path > key ? path - key : 0;
}

/** Leaves from @p first on that are in one mapping.
 *  @return whether they are a value's and no others' */
static bool read_object(const me_yaml *yaml, size_t first, object *out)
{
    const me_yaml_leaf *leaves = yaml->leaves + first;
    const size_t length = parent_length(leaves);
    bool is_value = length > 0;
    *out = (object){.n = 0};
    for (; first + out->n < yaml->count; out->n++) {
        const me_yaml_leaf *leaf = &leaves[out->n];
        if (parent_length(leaf) != length ||
            strncmp(leaf->path, leaves->path, length) != 0) {
            break;
        }
        if (strcmp(leaf->key, "_target_") == 0 && leaf->n_values == 1) {
            out->target = leaf;
        } else if (strcmp(leaf->key, "_args_") == 0) {
            out->args = leaf;
        } else if (strcmp(leaf->key, "_name_") == 0 && leaf->n_values == 1) {
            out->name = leaf;
        } else {
            is_value = is_value && strcmp(leaf->key, "_call_") == 0;
        }
    }
    return is_value && out->target != NULL;
}

/** What the object under @p key stands for, or NULL: it is more than a value. */
static const char *find_value(const object *o, const char *key)
{
    const char *target = o->target->values[0];
    if (o->name != NULL) {
        return o->name->values[0];
    }
    if (o->args != NULL && o->args->n_values > 0) {
        return o->args->n_values == 1 ? find_member(target, o->args->values[0])
                                      : NULL;
    }
    const bool is_function = strcmp(key, "activation_func") == 0;
    const char *type = find_type(target);
    return type == NULL && is_function ? target : type;
}

/** A leaf with the values of @p old, which may be NULL, and one more. */
static bool add_value(const me_yaml_leaf *old, const char *value,
                      me_arena *arena, me_yaml_leaf *leaf)
{
    const int n = old == NULL ? 0 : old->n_values;
    const char **values = me_arena_alloc(arena, (size_t)n + 1, sizeof *values);
    for (int i = 0; values != NULL && i < n; i++) {
        values[i] = old->values[i];
    }
    if (values != NULL) {
        values[n] = value;
    }
    leaf->values = values;
    leaf->n_values = n + 1;
    return values != NULL;
}

/** The leaf of an object, or another member of the list that is last in
 *  @p out. */
static bool put_value(const object *o, const char *path, const char *value,
                      me_arena *arena, me_yaml *out)
{
    me_yaml_leaf leaf = *o->target;
    const char *dot = strrchr(path, '.');
    const char *key = dot == NULL ? path : dot + 1;
    const bool is_member =
        dot != NULL && strspn(key, "0123456789") == strlen(key);
    char *list = is_member ? me_arena_strdup(arena, path) : NULL;
    if (is_member && list == NULL) {
        return false;
    }
    if (is_member) {
        list[dot - path] = '\0';
        dot = strrchr(list, '.');
        path = list;
        key = dot == NULL ? list : dot + 1;
    }
    const size_t at = out->count == 0 ? 0 : out->count - 1;
    const bool is_next = is_member && out->count > 0 &&
                         out->leaves[at].is_list &&
                         strcmp(out->leaves[at].path, path) == 0;
    leaf.path = path;
    leaf.key = key;
    leaf.is_list = is_member;
    if (!add_value(is_next ? &out->leaves[at] : NULL, value, arena, &leaf)) {
        return false;
    }
    if (!is_next) {
        out->count++;
    }
    out->leaves[out->count - 1] = leaf;
    return true;
}

/** An object that is more than a value, or leaves that are none: types alone are
 *  read. */
static bool put_leaves(const me_yaml_leaf *leaves, size_t n, me_arena *arena,
                       me_yaml *out)
{
    for (size_t i = 0; i < n; i++) {
        me_yaml_leaf leaf = leaves[i];
        const char *type = leaf.is_list || leaf.n_values != 1
                               ? NULL
                               : find_type(leaf.values[0]);
        if (type != NULL && !add_value(NULL, type, arena, &leaf)) {
            return false;
        }
        out->leaves[out->count++] = leaf;
    }
    return true;
}

me_status me_dumped_values_read(me_yaml *yaml, me_arena *arena, me_diag *diag)
{
    me_yaml out = {.leaves = yaml->leaves};
    bool is_right = true;
    object o;
    for (size_t i = 0; is_right && i < yaml->count; i += o.n) {
        const char *value = NULL;
        char *path = NULL;
        if (read_object(yaml, i, &o)) {
            path = me_arena_strdup(arena, o.target->path);
            is_right = path != NULL;
        }
        if (path != NULL) {
            path[parent_length(o.target)] = '\0';
            const char *dot = strrchr(path, '.');
            value = find_value(&o, dot == NULL ? path : dot + 1);
        }
        if (is_right) {
            is_right = value != NULL
                           ? put_value(&o, path, value, arena, &out)
                           : put_leaves(&yaml->leaves[i], o.n, arena, &out);
        }
    }
    *yaml = out;
    return is_right ? ME_OK
                    : me_fail(diag, ME_ERR_NOMEM, "no memory for a value");
}

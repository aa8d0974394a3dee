/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/torch/torch_tied.h"

#include "model/layer.h"

#include <string.h>

/** The group of the module with a path; NULL: no such module. */
static const me_layer_spec *find_group(const me_layer_spec *root,
                                       const char *path)
{
    const me_layer_spec *at = root;
    const me_layer_spec *group = root;
    while (at != NULL && *path != '\0') {
        const size_t length = strcspn(path, ".");
        const me_layer_spec *next = NULL;
        for (uint32_t i = 0; i < at->n_children; i++) {
            const char *name = at->children[i].name;
            if (strlen(name) == length && strncmp(name, path, length) == 0) {
                next = &at->children[i];
            }
        }
        at = next;
        group = at != NULL && at->is_sharded ? at : group;
        path += length + (path[length] == '.');
    }
    return at == NULL ? NULL : group;
}

/** Is there a weight that is tied to one of another group? */
// NOLINTNEXTLINE(misc-no-recursion): as deep as the tree
static bool has_parted(const me_layer_spec *root, const me_layer_spec *at,
                       const me_layer_spec *group)
{
    group = at->is_sharded ? at : group;
    bool is = at->tied_to != NULL && find_group(root, at->tied_to) != group;
    for (uint32_t i = 0; i < at->n_children && !is; i++) {
        is = has_parted(root, &at->children[i], group);
    }
    return is;
}

me_status me_torch_note_tied(me_config *config, me_diag *diag)
{
    const me_layer_spec *root = &config->torch_job.tree->root;
    const bool is_wrapped =
        config->torch.data_parallel == ME_DATA_PARALLEL_FULLY_SHARD &&
        (config->torch.wrap_one_rank || config->parallel.data > 1);
    return !is_wrapped || !has_parted(root, root, root)
               ? ME_OK
               : me_config_assume(
                     config, diag,
                     "fully_shard() parts weights that modules of different "
                     "groups have together: each group trains its own, and "
                     "nothing ties them any more");
}

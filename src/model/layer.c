/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/layer.h"

#include "base/assert.h"

static const struct {
    const char *name;
    bool has_children;
} kinds[] = {

#define LAYER_ROW(constant, name, has_children) {name, has_children},
    ME_LAYER_LIST(LAYER_ROW)
#undef LAYER_ROW
};

const char *me_layer_kind_name(me_layer_kind kind)
{
    ME_ASSERT(kind < ME_LAYER_COUNT);
    return kinds[kind].name;
}

const char *me_style_kind_name(me_style_kind kind)
{
    static const char *const names[] = {
#define STYLE_NAME(constant, name) name,
        ME_STYLE_LIST(STYLE_NAME)
#undef STYLE_NAME
    };
    ME_ASSERT(kind < ME_STYLE_COUNT);
    return names[kind];
}

bool me_layer_kind_has_children(me_layer_kind kind)
{
    ME_ASSERT(kind < ME_LAYER_COUNT);
    return kinds[kind].has_children;
}

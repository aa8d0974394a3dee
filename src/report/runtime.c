/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/runtime.h"

#include "base/parse.h"
#include "report/json.h"

static void append_order(me_str *text, const me_runtime_estimator *r,
                         me_mod_event_kind kind, uint32_t depth)
{
    const me_module_order *order = me_runtime_estimator_order(r, kind);
    for (uint32_t i = 0; i < order->count; i++) {
        if (me_path_is_within(order->fqns[i], depth)) {
            me_str_printf(text, "%s\n", order->fqns[i]);
        }
    }
}

void me_runtime_append(me_str *text, const me_runtime_estimator *r,
                       uint32_t depth)
{
    me_str_printf(text, "Estimated (%s)total_time: %.3f ms\n",
                  "operator-level-cost-model",
                  me_runtime_estimator_total_ms(r));
    me_str_append(text, "Pre-Forward Execution Order: \n");
    append_order(text, r, ME_MOD_PRE_FORWARD, depth);
    me_str_append(text, "Pre-Backward Execution Order: \n");
    append_order(text, r, ME_MOD_PRE_BACKWARD, depth);
    uint32_t count = 0;
    const me_module_runtime *modules = me_runtime_estimator_modules(r, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (me_path_is_within(modules[i].fqn, depth)) {
            me_str_printf(text, "%s fw: %.3fms bw: %.3fms\n", modules[i].fqn,
                          modules[i].forward_ms, modules[i].backward_ms);
        }
    }
}

static json_t *make_order(const me_runtime_estimator *r, me_mod_event_kind kind,
                          uint32_t depth)
{
    const me_module_order *order = me_runtime_estimator_order(r, kind);
    json_t *list = json_array();
    for (uint32_t i = 0; list != NULL && i < order->count; i++) {
        if (me_path_is_within(order->fqns[i], depth) &&
            json_array_append_new(list, json_string(order->fqns[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *make_modules(const me_runtime_estimator *r, uint32_t depth)
{
    uint32_t count = 0;
    const me_module_runtime *modules = me_runtime_estimator_modules(r, &count);
    json_t *list = json_array();
    for (uint32_t i = 0; list != NULL && i < count; i++) {
        if (me_path_is_within(modules[i].fqn, depth) &&
            json_array_append_new(
                list, json_pack("{s:s, s:f, s:f}", "module", modules[i].fqn,
                                "fw_ms", modules[i].forward_ms, "bw_ms",
                                modules[i].backward_ms)) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

me_status me_runtime_json_append(me_str *text, const me_runtime_estimator *r,
                                 const char *card, uint32_t depth)
{
    json_t *root = json_pack(
        "{s:s, s:s, s:f, s:o, s:o, s:o, s:o, s:o}", "mode",
        "operator-level-cost-model", "card", card, "total_ms",
        me_runtime_estimator_total_ms(r), "mod_fw_pre_order",
        make_order(r, ME_MOD_PRE_FORWARD, depth), "mod_fw_post_order",
        make_order(r, ME_MOD_POST_FORWARD, depth), "mod_bw_pre_order",
        make_order(r, ME_MOD_PRE_BACKWARD, depth), "mod_bw_post_order",
        make_order(r, ME_MOD_POST_BACKWARD, depth), "modules",
        make_modules(r, depth));
    return me_json_append(root, JSON_INDENT(2) | JSON_REAL_PRECISION(9), text);
}

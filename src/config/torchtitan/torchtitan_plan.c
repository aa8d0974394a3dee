/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/torchtitan/torchtitan_model.h"

/* apply_tp() of torchtitan's parallelize.py for llama3, whose two versions have
 * the same plan. */

/** A module's style, as a `.cfg` file has it. */
typedef struct entry {
    const char *module;
    const char *style;
} entry;

#define SEQUENCE        "SequenceParallel\""
#define COLWISE         "ColwiseParallel\""
#define TO_SHARD(style) style "\"; output_layouts = \"Shard(1)\""
#define PREPARE                                                                \
    "PrepareModuleInput\"; input_layouts = \"Shard(1)\"; "                     \
    "desired_input_layouts = \"Replicate\""

static const entry of_block[] = {
    {"attention_norm", SEQUENCE},
    {"attention", PREPARE},
    {"attention.w[qkv]", COLWISE},
    {"attention.wo", TO_SHARD("RowwiseParallel")},
    {"ffn_norm", SEQUENCE},
    {"feed_forward", PREPARE},
    {"feed_forward.w1", COLWISE},
    {"feed_forward.w2", TO_SHARD("RowwiseParallel")},
    {"feed_forward.w3", COLWISE},
};

/** In a pipeline the stages are the children of the whole. */
static void write_entry(me_titan_model *m, uint32_t number, const char *above,
                        const entry *e)
{
    me_str_printf(&m->text, "s%u: { module = \"%s%s%s\"; style = \"%s; };\n",
                  number, m->stages > 1 ? "*." : "", above, e->module,
                  e->style);
}

/** Is there a block that is checkpointed, or one that is not? */
static bool has_block(const me_titan_model *m, bool is_checkpointed)
{
    bool has = false;
    for (uint64_t i = 0; i < m->flavor->n_layers && !has; i++) {
        has =
            me_titan_block_of(m, i, m->flavor->n_layers - 1).is_checkpointed ==
            is_checkpointed;
    }
    return has;
}

void me_titan_plan_write(me_titan_model *m)
{
    if (m->tensor == 1) {
        return;
    }
    const char *head = me_titan_has_head(m) ? "head." : "";
    const entry output = {
        "output", m->is_loss_parallel ? COLWISE
                      "; input_layouts = \"Shard(1)\"; output_layouts = "
                      "\"Shard(-1)\"; use_local_output = false"
                                      : COLWISE
                      "; input_layouts = \"Shard(1)\"; output_layouts = "
                      "\"Replicate\""};
    const entry table = {"tok_embeddings",
                         TO_SHARD("RowwiseParallel") "; input_layouts = "
                                                     "\"Replicate\""};
    const entry norm = {"norm", SEQUENCE};
    uint32_t number = 0;
    me_str_append(&m->text, "parallelize_plan: {\n");
    write_entry(m, number++, "", &table);
    write_entry(m, number++, head, &norm);
    write_entry(m, number++, head, &output);
    for (int i = 0; i < 2; i++) {
        for (size_t k = 0;
             k < sizeof of_block / sizeof of_block[0] && has_block(m, i == 1);
             k++) {
            write_entry(m, number++, i == 1 ? "layers.*.wrapped." : "layers.*.",
                        &of_block[k]);
        }
    }
    me_str_append(&m->text, "};\n");
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "tiny.h"

#include "support/stream.h"
#include "track/tracker.h"

static const uint64_t tiny_scale = UINT64_C(1) << 26;

static me_flag_note missing[] = {
    {"--fp8-format", "no FP8 in the model", ME_LOWER(SOME)}};
static me_flag_note assumed[] = {
    {"", "tokens are spread evenly", ME_EITHER(NONE)}};

me_config me_tiny_config(void)
{
    return (me_config){
        .device.gpus_per_node = 8,
        .name = "tiny",
        .model = {.num_layers = 2,
                  .hidden_size = 8,
                  .ffn_hidden_size = 32,
                  .num_attention_heads = 2,
                  .num_query_groups = 1,
                  .kv_channels = 4,
                  .query_head_size = 4,
                  .seq_length = 16,
                  .padded_vocab_size = 128},
        .parallel = {.world_size = TINY_WORLD,
                     .tensor = 2,
                     .pipeline = 2,
                     .context = 1,
                     .expert = 1,
                     .data = 1,
                     .virtual_pipeline = 1},
        .train = {.micro_batch_size = 1,
                  .global_batch_size = 1,
                  .num_microbatches = 1,
                  .params_dtype = ME_DTYPE_BFLOAT16},
        .optimizer = {.kind = ME_OPTIMIZER_ADAM},
        .not_modelled = {missing, 1},
        .assumptions = {assumed, 1},
    };
}

/** Stage 0 with nothing more, stage 1 with @p extra bytes of parameters. */
static me_status track(uint64_t extra, me_rank_result **result_out)
{
    me_tracker *tracker = me_tracker_create(&me_stream_tree, NULL, NULL);
    if (tracker == NULL) {
        return ME_ERR_NOMEM;
    }
    me_test_stream s = {.observers = {me_tracker_observer(tracker)},
                        .n_observers = 1,
                        .scale = tiny_scale};
    if (extra > 0) {
        s.iteration = -1;
        s.microbatch = ME_NO_MICROBATCH;
        me_stream_alloc(&s, 99, extra, ME_CATEGORY_PARAMETER, "aten::empty");
    }
    me_stream_play(&s);
    const me_status status = me_tracker_finish(tracker, NULL, result_out);
    me_tracker_destroy(tracker);
    return status;
}

static const me_rank_place tiny_places[TINY_WORLD] = {
    {.rank = 0, .tp = 0, .pp = 0, .class_id = 0},
    {.rank = 1, .tp = 1, .pp = 0, .class_id = 0},
    {.rank = 2, .tp = 0, .pp = 1, .class_id = 1},
    {.rank = 3, .tp = 1, .pp = 1, .class_id = 1},
};

/** The parts of one process. */
static uint32_t deal(const me_transport *transport, bool is_folded,
                     me_rank_result *const *results, me_report_part *parts)
{
    const int n_parts = is_folded ? 2 : TINY_WORLD;
    const int size = me_transport_size(transport);
    uint32_t n = 0;
    for (int i = me_transport_rank(transport); i < n_parts; i += size) {
        const int first = is_folded ? 2 * i : TINY_WORLD - 1 - i;
        parts[n++] = (me_report_part){.result = results[first / 2],
                                      .places = &tiny_places[first],
                                      .n_places = is_folded ? 2 : 1};
    }
    return n;
}

me_status me_tiny_gather(me_transport *transport, const me_config *config,
                         bool is_folded, me_diag *diag, me_report **report_out)
{
    static const char *const assumptions[] = {"a card nobody measured"};
    const me_report_input input = {.config = config,
                                   .version = "0.1.0",
                                   .world_size = TINY_WORLD,
                                   .capacity_bytes = 2000 * tiny_scale,
                                   .assumptions = assumptions,
                                   .n_assumptions = 1};
    me_rank_result *results[2] = {NULL, NULL};
    me_report_part parts[TINY_WORLD];
    me_status status = track(0, &results[0]);
    if (status == ME_OK) {
        status = track(1000, &results[1]);
    }
    status = me_transport_agree(transport, status, diag);
    if (status == ME_OK) {
        const uint32_t n = deal(transport, is_folded, results, parts);
        status =
            me_report_gather(transport, &input, parts, n, diag, report_out);
    }
    me_rank_result_destroy(results[0]);
    me_rank_result_destroy(results[1]);
    return status;
}

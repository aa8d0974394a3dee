/* SPDX-License-Identifier: BSD-3-Clause */
#include "track/codec.h"
#include "track/result.h"

static const int64_t LONGEST_NS = INT64_C(1) << 50;

/** Of times: none is longer than some days, so sums of them never overflow. */
static void code_ns(me_codec *c, int64_t *ns)
{
    me_code_i64(c, ns);
    if ((*ns < 0 || *ns > LONGEST_NS) && *ns != ME_TIME_NEVER) {
        me_codec_refuse(c, *ns < 0 ? ME_ERR_SYNTAX : ME_ERR_OVERFLOW);
        *ns = 0;
    }
}

static void code_stretch(me_codec *c, me_stretch *stretch)
{
    for (int i = 0; i < ME_CLOCKS; i++) {
        for (int j = 0; j < ME_CLOCKS; j++) {
            code_ns(c, &stretch->after[i][j]);
        }
    }
    code_ns(c, &stretch->compute_ns);
    code_ns(c, &stretch->communication_ns);
    code_ns(c, &stretch->exposed_ns);
    code_ns(c, &stretch->host_ns);
}

/** Item @p index; what it refers to is there. */
static void code_time_item(me_codec *c, const me_time_program *time,
                           uint32_t index)
{
    me_time_item *item = &time->items[index];
    me_code_u8(c, &item->kind, ME_TIME_ITEM_KINDS);
    me_code_u8(c, &item->part, ME_TIME_PARTS);
    me_code_u8(c, &item->transfers, 16);
    me_code_u8(c, &item->group, ME_GROUP_COUNT);
    me_code_bool(c, &item->is_async);
    me_code_bool(c, &item->is_queued);
    me_code_i32(c, &item->chunk);
    me_code_i32(c, &item->microbatch);
    me_code_i32(c, &item->next);
    me_code_i32(c, &item->previous);
    me_code_i32(c, &item->first_stage);
    me_code_u32(c, &item->stretch);
    code_ns(c, &item->ns);
    if (item->next < 0 || item->previous < 0 || item->first_stage < 0) {
        me_codec_refuse(c, ME_ERR_SYNTAX);
    }
    if (item->kind == ME_TIME_RUN && item->stretch >= time->n_stretches) {
        me_codec_refuse(c, ME_ERR_SYNTAX);
    }
}

static void code_time(me_codec *c, me_time_program *time)
{
    time->stretches = me_code_array(c, time->stretches, &time->n_stretches,
                                    sizeof *time->stretches, 13);
    for (uint32_t i = 0; i < time->n_stretches; i++) {
        code_stretch(c, &time->stretches[i]);
    }
    time->items =
        me_code_array(c, time->items, &time->n_items, sizeof *time->items, 13);
    for (uint32_t i = 0; i < time->n_items; i++) {
        code_time_item(c, time, i);
    }
}

me_status me_rank_result_encode_time(const me_rank_result *result,
                                     unsigned char **bytes_out,
                                     size_t *size_out)
{
    me_codec c = {0};
    me_time_program copy = result->time; // encoding changes nothing
    code_time(&c, &copy);
    return me_codec_give(&c, bytes_out, size_out);
}

me_status me_time_program_decode(const unsigned char *bytes, size_t size,
                                 me_arena *arena, me_diag *diag,
                                 me_time_program *program_out)
{
    me_codec c = {
        .is_decoding = true, .bytes = bytes, .left = size, .arena = arena};
    me_time_program program = {.n_items = 0};
    code_time(&c, &program);
    const me_status status =
        c.status == ME_ERR_OVERFLOW
            ? me_fail(diag, c.status,
                      "a part of a step takes over 13 days: is a rate of the "
                      "card, or of what joins cards, wrong?")
            : me_codec_end(&c, size, "a rank's times", diag);
    if (status == ME_OK) {
        *program_out = program;
    }
    return status;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/agree.h"

#include "base/statement.h"
#include "collectives/agreement.h"
#include "collectives/digest.h"
#include "config/options.h"
#include "run/exit_code.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/** Hold it against the others', and give it back. */
static me_status agree(me_transport *transport, me_str *statement,
                       me_diag *diag)
{
    const me_status status = me_statement_agree(transport, statement, diag);
    me_str_fini(statement);
    return status;
}

me_status me_input_agree(me_transport *transport, const char *what,
                         me_status status, me_diag *diag)
{
    const bool is_ours = me_exit_code(status) == ME_EXIT_INTERNAL;
    me_status agreed =
        me_transport_agree(transport, is_ours ? status : ME_OK, diag);
    if (agreed != ME_OK || me_transport_size(transport) == 1) {
        return agreed == ME_OK ? status : agreed;
    }
    char line[ME_DIAG_LINE] = "fine";
    me_str statement = {0};
    me_diag differs = {.status = ME_OK};
    if (status != ME_OK) {
        me_diag_line(diag, line);
    }
    me_statement_add(&statement, what, "%s", line);
    agreed = agree(transport, &statement, &differs);
    if (agreed != ME_OK) {
        *diag = differs;
        return agreed;
    }
    return me_transport_agree(transport, status, diag);
}

me_status me_config_agree(me_transport *transport, const me_config *config,
                          me_diag *diag)
{
    me_str statement = {0};
    me_config_state(config, &statement);
    return agree(transport, &statement, diag);
}

static void state_digest(const char *name, me_digest digest, me_str *statement)
{
    me_statement_add(statement, name, "of digest %016" PRIx64 "%016" PRIx64,
                     digest.a, digest.b);
}

static void state_tokens(const me_routing *routing, me_str *statement)
{
    me_digest digest = {0, 0};
    for (uint32_t i = 0; i < routing->n_rows; i++) {
        const me_routing_row *row = &routing->rows[i];
        const uint64_t *counts = me_routing_row_counts(routing, row);
        me_digest_add(&digest, (uint32_t)row->at.rank);
        me_digest_add(&digest, (uint32_t)row->at.iteration);
        me_digest_add(&digest, (uint32_t)row->at.layer);
        me_digest_add(&digest, (uint32_t)row->at.microbatch);
        for (uint32_t j = 0; j < routing->n_experts; j++) {
            me_digest_add(&digest, counts[j]);
        }
        if (routing->sent != NULL) {
            me_digest_add(&digest, routing->sent[row->number]);
        }
    }
    state_digest("the contents of moe.tokens", digest, statement);
}

static void state_order(const me_pipeline_order *order, me_str *statement)
{
    char name[80];
    me_statement_add(statement, "the order of the pipeline", "%s",
                     order == NULL ? "Megatron-LM's own" : "a list");
    for (int32_t rank = 0; order != NULL && rank < order->n_ranks; rank++) {
        const me_actions *actions = &order->ranks[rank];
        me_digest digest = {0, 0};
        for (int32_t i = 0; i < actions->count; i++) {
            const me_action *a = &actions->items[i];
            me_digest_add(&digest, (uint32_t)a->kind);
            me_digest_add(&digest, (uint32_t)a->stage);
            me_digest_add(&digest, (uint32_t)a->microbatch);
            me_digest_add(&digest, a->is_overlapped);
        }
        (void)snprintf(name, sizeof name,
                       "the order of pipeline rank %d (pipeline.schedule_file)",
                       (int)rank);
        state_digest(name, digest, statement);
    }
}

me_status me_plan_agree(me_transport *transport, const me_plan *plan,
                        const me_job_card *card, me_diag *diag)
{
    me_str statement = {0};
    if (me_transport_size(transport) == 1) {
        return ME_OK;
    }
    me_config_state(plan->config, &statement);
    me_device_card_state(&card->card, &statement);
    me_nccl_setup_state(&card->nccl, &statement);
    me_rates_state(&card->rates, &statement);
    if (card->has_machine) {
        me_cluster_state(&card->machine, &statement);
    }
    if (plan->routing.n_rows > 0) {
        state_tokens(&plan->routing, &statement);
    }
    state_order(plan->order, &statement);
    return agree(transport, &statement, diag);
}

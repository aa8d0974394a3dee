/* SPDX-License-Identifier: BSD-3-Clause */
#include "alloc/card.h"

#include <libconfig.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define KIB (INT64_C(1) << 10)
#define MIB (INT64_C(1) << 20)

/* A petabyte: no value of a card is larger. */
#define ABSURD (INT64_C(1) << 50)

/** A value of the file, its unit in bytes, and where it goes. */
typedef struct field {
    const char *path;
    int64_t unit;
    size_t offset;
} field;

static const field fields[] = {
    {"total_bytes", 1, offsetof(me_card, total_bytes)},
    {"context_kib", KIB, offsetof(me_card, context_bytes)},
    {"first_kernel", MIB, offsetof(me_card, first_kernel_bytes)},
    {"small_modules", MIB, offsetof(me_card, small_modules_bytes)},
    {"cublas_handle", MIB, offsetof(me_card, cublas_handle_bytes)},
    {"cudnn_handle", MIB, offsetof(me_card, cudnn_handle_bytes)},
    {"nccl.first_communicator", MIB,
     offsetof(me_card, nccl.first_communicator_bytes)},
    {"nccl.first_collective", MIB,
     offsetof(me_card, nccl.first_collective_bytes)},
    {"nccl.first_broadcast", MIB,
     offsetof(me_card, nccl.first_broadcast_bytes)},
    {"nccl.first_send_recv", MIB,
     offsetof(me_card, nccl.first_send_recv_bytes)},
    {"nccl.bookkeeping", MIB, offsetof(me_card, nccl.bookkeeping_bytes)},
    {"nccl.granularity", MIB, offsetof(me_card, nccl.granularity_bytes)},
    {"nccl.allocations_per_channel", 1,
     offsetof(me_card, nccl.allocations_per_channel)},
    {"nccl.fixed_allocations", 1, offsetof(me_card, nccl.fixed_allocations)},
    {"nccl.channels_size1", 1, offsetof(me_card, nccl.channels_size1)},
    {"nccl.coll_channels", 1, offsetof(me_card, nccl.coll_channels)},
    {"nccl.p2p_channels", 1, offsetof(me_card, nccl.p2p_channels)},
    {"nccl.p2p_channels_per_peer", 1,
     offsetof(me_card, nccl.p2p_channels_per_peer)},
    {"nccl.send_connection", MIB,
     offsetof(me_card, nccl.send_connection_bytes)},
    {"nccl.recv_connection", MIB,
     offsetof(me_card, nccl.recv_connection_bytes)},
};

static me_status read_number(const config_t *file, const char *path,
                             const field *f, me_diag *diag, me_card *card)
{
    long long value = 0;
    const config_setting_t *setting = config_lookup(file, f->path);
    if (setting == NULL ||
        config_lookup_int64(file, f->path, &value) == CONFIG_FALSE) {
        return me_fail_at(diag, ME_ERR_CONFIG, path, 0,
                          "%s is missing or is no whole number", f->path);
    }
    if (value < 0 || value > ABSURD / f->unit) {
        return me_fail_at(diag, ME_ERR_CONFIG, path,
                          (int)config_setting_source_line(setting),
                          "%s = %lld is out of range", f->path, value);
    }
    *(uint64_t *)(void *)((char *)card + f->offset) =
        (uint64_t)(value * f->unit);
    return ME_OK;
}

static me_status read_text(const config_t *file, const char *path,
                           const char *key, me_diag *diag,
                           char text_out[ME_CARD_NAME])
{
    const char *text = NULL;
    if (config_lookup_string(file, key, &text) == CONFIG_FALSE) {
        return me_fail_at(diag, ME_ERR_CONFIG, path, 0,
                          "%s is missing or is no string", key);
    }
    (void)snprintf(text_out, ME_CARD_NAME, "%s", text);
    return ME_OK;
}

static me_status read_card(const config_t *file, const char *path,
                           me_diag *diag, me_card *card)
{
    me_status status = read_text(file, path, "card", diag, card->name);
    if (status == ME_OK) {
        status = read_text(file, path, "source", diag, card->source);
    }
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (status == ME_OK) {
            status = read_number(file, path, &fields[i], diag, card);
        }
    }
    return status;
}

me_status me_card_load(const char *path, me_diag *diag, me_card *card_out)
{
    me_card card = {0};
    config_t file;
    config_init(&file);
    me_status status = ME_OK;
    if (config_read_file(&file, path) == CONFIG_FALSE) {
        const bool is_syntax = config_error_type(&file) == CONFIG_ERR_PARSE;
        status = me_fail_at(diag, is_syntax ? ME_ERR_SYNTAX : ME_ERR_IO, path,
                            is_syntax ? config_error_line(&file) : 0, "%s",
                            config_error_text(&file));
    } else {
        status = read_card(&file, path, diag, &card);
    }
    config_destroy(&file);
    if (status == ME_OK) {
        *card_out = card;
    }
    return status;
}

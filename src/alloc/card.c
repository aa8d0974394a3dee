/* SPDX-License-Identifier: BSD-3-Clause */
#include "alloc/card.h"

#include "base/clean.h"
#include "base/conf.h"
#include "base/parse.h"
#include "base/statement.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define KIB (INT64_C(1) << 10)
#define MIB (INT64_C(1) << 20)

/* A petabyte: no value of a card is larger. */
#define ABSURD (INT64_C(1) << 50)

enum {
    LEAST_CARD_BYTES = 1 << 28, /**< less than any CUDA context */
    MOST_COUNT = 1 << 16        /**< of multiprocessors, channels, threads */
};

/** What gives a value that files did not have when they were written. */
typedef struct rule {
    const char *needs; /**< the value that it reads, of a row before */
    uint64_t (*bytes)(const me_device_card *card);
} rule;

/** A value of the file, its unit in bytes, and where it goes. */
typedef struct field {
    const char *path;
    int64_t unit;
    size_t offset;
    bool is_everywhere; /**< NCCL's source decides it, not the card: it holds
                             for the card that stands in and for this one */
    const rule *rule;   /**< NULL: the file, or the card that stands in, must
                             give it */
} field;

#define CARD(name, unit, member)                                               \
    {                                                                          \
        name, unit, offsetof(me_device_card, member), false, NULL              \
    }
#define RULE(name, unit, member, rule)                                         \
    {                                                                          \
        name, unit, offsetof(me_device_card, member), false, rule              \
    }
#define NCCL(name, unit, member)                                               \
    {                                                                          \
        "nccl." name, unit, offsetof(me_device_card, nccl.member), true, NULL  \
    }

static bool is_from_9(const me_device_card *card)
{
    return card->cublas_workspace_bytes >= 32 * (uint64_t)MIB;
}

/** Ten times it. A file need not say it, but PyTorch's workspace does
 *  (getChosenWorkspaceSize()): 32 MiB on 9.0, 8320 KiB before. */
static uint64_t compute_capability(const me_device_card *card)
{
    return is_from_9(card) ? 90 : 80;
}

static const rule capability_rule = {"cublas_workspace_kib",
                                     compute_capability};

/** Transformer Engine's workspace (get_cublas_workspace_size_bytes()): 32 MiB
 *  and 1 KiB from compute capability 9.0 on, else 4 MiB. Where PyTorch takes
 *  less for a later card too, the file has to give both. */
static uint64_t te_workspace_bytes(const me_device_card *card)
{
    return is_from_9(card) ? (uint64_t)(32 * MIB + KIB) : (uint64_t)(4 * MIB);
}

static const rule te_workspace_rule = {"cublas_workspace_kib",
                                       te_workspace_bytes};

/** Bounds of a value in its unit, where a larger or smaller one is no card's. A
 *  card holds a CUDA context at least; what is counted one by one has no end
 *  within reach otherwise. */
static long long least_of(const char *path)
{
    static const char counts[] =
        "multiprocessors threads_per_multiprocessor compute_capability";
    return strcmp(path, "total_bytes") == 0            ? LEAST_CARD_BYTES
           : me_names_have(counts, path, strlen(path)) ? 1
                                                       : 0;
}

static long long most_of(const field *f)
{
    return f->unit == 1 && strcmp(f->path, "total_bytes") != 0
               ? MOST_COUNT
               : ABSURD / f->unit;
}

static const field fields[] = {
    CARD("total_bytes", 1, total_bytes),
    CARD("multiprocessors", 1, multiprocessors),
    CARD("threads_per_multiprocessor", 1, threads_per_multiprocessor),
    CARD("cublas_workspace_kib", KIB, cublas_workspace_bytes),
    RULE("compute_capability", 1, compute_capability, &capability_rule),
    RULE("te_workspace_kib", KIB, te_workspace_bytes, &te_workspace_rule),
    CARD("l2_cache_kib", KIB, l2_cache_bytes),
    CARD("context_kib", KIB, context_bytes),
    CARD("first_kernel", MIB, first_kernel_bytes),
    CARD("small_modules", MIB, small_modules_bytes),
    CARD("cublas_handle", MIB, cublas_handle_bytes),
    CARD("cudnn_handle", MIB, cudnn_handle_bytes),
    CARD("nccl.first_communicator", MIB, nccl.first_communicator_bytes),
    CARD("nccl.first_collective", MIB, nccl.first_collective_bytes),
    CARD("nccl.first_broadcast", MIB, nccl.first_broadcast_bytes),
    CARD("nccl.first_send_recv", MIB, nccl.first_send_recv_bytes),
    CARD("nccl.bookkeeping", MIB, nccl.bookkeeping_bytes),
    NCCL("granularity", MIB, granularity_bytes),
    NCCL("allocations_per_channel", 1, allocations_per_channel),
    NCCL("fixed_allocations", 1, fixed_allocations),
    NCCL("channels_size1", 1, channels_size1),
    CARD("nccl.coll_channels", 1, nccl.coll_channels),
    CARD("nccl.p2p_channels_per_peer", 1, nccl.p2p_channels_per_peer),
    NCCL("has_peer_access", 1, has_peer_access),
    NCCL("reads_from_peer", 1, reads_from_peer),
    NCCL("nvls_channels", 1, nvls_channels),
    NCCL("nvls_min_kib", KIB, nvls_min_bytes),
    NCCL("chunk_kib", KIB, chunk_bytes),
    NCCL("nodes_channels", 1, nodes_channels),
    NCCL("nodes_p2p_channels_per_peer", 1, nodes_p2p_channels_per_peer),
};

enum {
    N_FIELDS = sizeof fields / sizeof fields[0]
};

_Static_assert(N_FIELDS <= 64, "not_measured has one bit a value");

static void set_measured(me_device_card *card, size_t i, bool is_measured)
{
    const uint64_t bit = UINT64_C(1) << i;
    card->not_measured =
        is_measured ? card->not_measured & ~bit : card->not_measured | bit;
}

static uint64_t *value_of(me_device_card *card, const field *f)
{
    return (uint64_t *)(void *)((char *)card + f->offset);
}

/** What the file does not give: its rule, if it gives what that reads, or what
 *  the card that stands in has.
 *  @return false: neither */
static bool fill(const config_t *file, size_t i, me_device_card *card)
{
    const field *f = &fields[i];
    if (f->rule != NULL && config_lookup(file, f->rule->needs) != NULL) {
        *value_of(card, f) = f->rule->bytes(card);
    } else if (card->like[0] == '\0') {
        return false;
    }
    set_measured(card, i, f->is_everywhere);
    return true;
}

static me_status read_number(const config_t *file, const char *path, size_t i,
                             me_diag *diag, me_device_card *card)
{
    const field *f = &fields[i];
    const config_setting_t *setting = config_lookup(file, f->path);
    if (setting == NULL && fill(file, i, card)) {
        return ME_OK;
    }
    long long value = 0;
    if (setting == NULL ||
        config_lookup_int64(file, f->path, &value) == CONFIG_FALSE) {
        return me_fail_at(diag, ME_ERR_CONFIG, path, 0,
                          "%s is missing or is no whole number", f->path);
    }
    if (value < least_of(f->path) || value > most_of(f)) {
        return me_fail_at(diag, ME_ERR_CONFIG, path, me_conf_line(setting),
                          "%s = %lld is out of range: must be %lld to %lld",
                          f->path, value, least_of(f->path), most_of(f));
    }
    *value_of(card, f) = (uint64_t)(value * f->unit);
    set_measured(card, i, true);
    return ME_OK;
}

static me_status read_text(const config_t *file, const char *path,
                           const char *key, me_diag *diag,
                           char text_out[ME_CARD_TEXT])
{
    const char *text = NULL;
    if (config_lookup_string(file, key, &text) == CONFIG_FALSE) {
        return me_fail_at(diag, ME_ERR_CONFIG, path, 0,
                          "%s is missing or is no string", key);
    }
    if (text[0] == '\0' || !me_text_is_clean(text)) {
        return me_fail_at(diag, ME_ERR_CONFIG, path, 0,
                          "%s must be printable text", key);
    }
    if (strlen(text) >= ME_CARD_TEXT) {
        return me_fail_at(diag, ME_ERR_CONFIG, path, 0,
                          "%s is longer than %d bytes", key, ME_CARD_TEXT - 1);
    }
    (void)snprintf(text_out, ME_CARD_TEXT, "%s", text);
    return ME_OK;
}

static size_t find_field(const char *name)
{
    size_t i = 0;
    while (i < N_FIELDS && strcmp(fields[i].path, name) != 0) {
        i++;
    }
    return i;
}

/** `not_measured = ["context_kib", …]`: given, but by a rule or a guess. */
static me_status read_not_measured(const config_t *file, const char *path,
                                   me_diag *diag, me_device_card *card)
{
    const config_setting_t *list = config_lookup(file, "not_measured");
    const int n = list == NULL ? 0 : config_setting_length(list);
    if (list != NULL && config_setting_is_array(list) == 0 &&
        config_setting_is_list(list) == 0) {
        return me_fail_at(diag, ME_ERR_CONFIG, path, me_conf_line(list),
                          "not_measured must be a list of values' names");
    }
    for (int i = 0; i < n; i++) {
        const char *name = config_setting_get_string_elem(list, i);
        const size_t found = name == NULL ? N_FIELDS : find_field(name);
        if (found == N_FIELDS) {
            return me_fail_at(diag, ME_ERR_CONFIG, path, me_conf_line(list),
                              "not_measured: '%.40s' is no value of a card",
                              name == NULL ? "?" : name);
        }
        set_measured(card, found, false);
    }
    return ME_OK;
}

static bool is_known_key(const char *prefix, const char *name)
{
    static const char *const others[] = {"card", "source",
                                         "like", "not_measured",
                                         "nccl", "rates"}; // src/time/rates.h
    char path[ME_CARD_TEXT];
    (void)snprintf(path, sizeof path, "%s%s", prefix, name);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (strcmp(path, others[i]) == 0) {
            return true;
        }
    }
    return find_field(path) < N_FIELDS;
}

/** A key with a typing error must not pass for a value that is not given. */
static me_status check_keys(const config_setting_t *group, const char *prefix,
                            const char *path, me_diag *diag)
{
    const int n = group == NULL ? 0 : config_setting_length(group);
    for (int i = 0; i < n; i++) {
        const config_setting_t *one =
            config_setting_get_elem(group, (unsigned)i);
        const char *name = config_setting_name(one);
        if (name == NULL || !is_known_key(prefix, name)) {
            return me_fail_at(diag, ME_ERR_CONFIG, path, me_conf_line(one),
                              "%s%.40s is no value of a card", prefix,
                              name == NULL ? "?" : name);
        }
    }
    return ME_OK;
}

static me_status load(const char *path, bool may_be_like, me_diag *diag,
                      me_device_card *card);

/** The card that stands in: its values first, this file's over them. */
static me_status load_like(const config_t *file, const char *path,
                           bool may_be_like, me_diag *diag,
                           me_device_card *card)
{
    if (config_lookup(file, "like") == NULL) {
        return ME_OK;
    }
    char like[ME_CARD_TEXT] = "";
    me_status status = read_text(file, path, "like", diag, like);
    if (status != ME_OK) {
        return status;
    }
    if (!may_be_like) {
        return me_fail_at(diag, ME_ERR_CONFIG, path, 0,
                          "a card that stands in for another must give all "
                          "values itself");
    }
    const char *slash = strrchr(path, '/');
    me_str other = {0};
    me_str_append_n(&other, path,
                    slash == NULL ? 0 : (size_t)(slash - path) + 1);
    me_str_printf(&other, "%s.cfg", like);
    status = me_str_status(&other);
    if (status == ME_OK) {
        status = load(me_str_text(&other), false, diag, card);
    }
    me_str_fini(&other);
    (void)snprintf(card->like, sizeof card->like, "%s", card->name);
    return status;
}

static me_status read_card(const config_t *file, const char *path,
                           bool may_be_like, me_diag *diag,
                           me_device_card *card)
{
    me_status status = check_keys(config_root_setting(file), "", path, diag);
    if (status == ME_OK) {
        status = check_keys(config_lookup(file, "nccl"), "nccl.", path, diag);
    }
    if (status == ME_OK) {
        status = load_like(file, path, may_be_like, diag, card);
    }
    if (status == ME_OK) {
        status = read_text(file, path, "card", diag, card->name);
    }
    if (status == ME_OK) {
        status = read_text(file, path, "source", diag, card->source);
    }
    for (size_t i = 0; status == ME_OK && i < N_FIELDS; i++) {
        status = read_number(file, path, i, diag, card);
    }
    return status == ME_OK ? read_not_measured(file, path, diag, card) : status;
}

// NOLINTNEXTLINE(misc-no-recursion): once, for the card that stands in
static me_status load(const char *path, bool may_be_like, me_diag *diag,
                      me_device_card *card)
{
    config_t file;
    config_init(&file);
    me_status status = me_conf_load(path, "a card", diag, &file);
    if (status == ME_OK) {
        status = read_card(&file, path, may_be_like, diag, card);
    }
    config_destroy(&file);
    return status;
}

me_status me_device_card_load(const char *path, me_diag *diag,
                              me_device_card *card_out)
{
    me_device_card card = {.name = ""};
    const me_status status = load(path, true, diag, &card);
    if (status == ME_OK) {
        *card_out = card;
    }
    return status;
}

void me_device_card_state(const me_device_card *card, me_str *statement)
{
    char name[ME_CARD_TEXT];
    me_statement_add(statement, "card", "%s", card->name);
    for (size_t i = 0; i < N_FIELDS; i++) {
        const uint64_t unit = (uint64_t)fields[i].unit;
        const uint64_t value =
            *(const uint64_t *)(const void *)((const char *)card +
                                              fields[i].offset);
        (void)snprintf(name, sizeof name, "card.%s", fields[i].path);
        if (value % unit == 0) {
            me_statement_add(statement, name, "%" PRIu64, value / unit);
        } else {
            me_statement_add(statement, name, "%" PRIu64 " bytes", value);
        }
    }
}

unsigned me_device_card_not_measured(const me_device_card *card, me_str *text)
{
    unsigned n = 0;
    for (size_t i = 0; i < N_FIELDS; i++) {
        if ((card->not_measured >> i & 1) != 0) {
            me_str_printf(text, "%s%s", n == 0 ? "" : ", ", fields[i].path);
            n++;
        }
    }
    return n;
}

static void take(me_device_card *card, const char *path, uint64_t value)
{
    const size_t i = find_field(path);
    if (value != 0) {
        *value_of(card, &fields[i]) = value;
    }
    set_measured(card, i, value != 0);
}

me_device_card me_device_card_stand_in(const me_device_card *like,
                                       const me_seen_card *seen)
{
    me_device_card card = *like;
    (void)snprintf(card.name, sizeof card.name, "%s", seen->name);
    (void)snprintf(card.like, sizeof card.like, "%s", like->name);
    (void)snprintf(card.source, sizeof card.source, "this machine");
    for (size_t i = 0; i < N_FIELDS; i++) {
        set_measured(&card, i, fields[i].is_everywhere);
    }
    take(&card, "total_bytes", seen->total_bytes);
    take(&card, "multiprocessors", seen->multiprocessors);
    take(&card, "threads_per_multiprocessor", seen->threads_per_multiprocessor);
    card.context_bytes = me_device_context_bytes(
        card.multiprocessors, card.threads_per_multiprocessor);
    return card;
}

uint64_t me_device_context_bytes(uint64_t multiprocessors,
                                 uint64_t threads_per_multiprocessor)
{
    return multiprocessors * threads_per_multiprocessor * 2 * (uint64_t)KIB;
}

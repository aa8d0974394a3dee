/* SPDX-License-Identifier: BSD-3-Clause */
#include "time/rates.h"

#include "base/clean.h"
#include "base/conf.h"
#include "base/statement.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/** A value of the group `rates`, its unit, and where it goes. */
typedef struct field {
    const char *path;
    double unit;
    size_t offset;
    /** Of a card that names another as `like`, without a value of its own:
     *  the other's times this value's ratio, by its path; NULL: as it is. */
    const char *scales_with;
    bool is_own; /**< may be missing, and is never another card's */
    /** What a file without it has times @p share, by its path; NULL: it must be
     *  there. */
    const char *stands_in;
    double share;
} field;

static const char by_copy[] = "copy_tbs";
static const char by_product[] = "half_tflops";
static const char by_nvlink[] = "nvlink_gbs";

#define RATE(path, unit, member, scales)                                       \
    {                                                                          \
        path, unit, offsetof(me_rates, member), scales, false, NULL, 0         \
    }
#define RATE_OR(path, unit, member, scales, stands_in, share)                  \
    {                                                                          \
        path, unit, offsetof(me_rates, member), scales, false, stands_in,      \
            share                                                              \
    }
#define OWN(path, unit, member)                                                \
    {                                                                          \
        path, unit, offsetof(me_rates, member), NULL, true, NULL, 0            \
    }
#define MEMORY(path, kernel, scales) RATE(path, 1e12, memory[kernel], scales)
// NOLINTBEGIN(bugprone-macro-parentheses): a literal is joined to others
#define LINK(name, member, scales)                                             \
    RATE(name ".latency_us", 1e-6, member.latency_s, NULL),                    \
        RATE(name ".all_reduce_gbs", 1e9, member.all_reduce, scales),          \
        RATE(name ".all_gather_gbs", 1e9, member.all_gather, scales),          \
        RATE(name ".all_to_all_gbs", 1e9, member.all_to_all, scales),          \
        RATE(name ".p2p_latency_us", 1e-6, member.p2p_latency_s, NULL),        \
        RATE(name ".p2p_gbs", 1e9, member.p2p, scales)
// NOLINTEND(bugprone-macro-parentheses)

static const field fields[] = {
    RATE("uncertainty_percent", 0.01, uncertainty, NULL),
    RATE("multiprocessors", 1, multiprocessors, NULL),
    RATE("half_tflops", 1e12, half_product, NULL),
    RATE("single_tflops", 1e12, single_product, NULL),
    RATE("half_sheet_tflops", 1e12, half_sheet, NULL),
    RATE("single_sheet_tflops", 1e12, single_sheet, NULL),
    RATE("nvlink_gbs", 1e9, nvlink, NULL),
    MEMORY("copy_tbs", ME_KERNEL_COPY, NULL),
    MEMORY("strided_copy_tbs", ME_KERNEL_STRIDED, by_copy),
    MEMORY("add_tbs", ME_KERNEL_ELEMENTWISE, by_copy),
    MEMORY("cast_tbs", ME_KERNEL_CAST, by_copy),
    RATE_OR("quantize_tbs", 1e12, memory[ME_KERNEL_QUANTIZE], by_copy,
            "cast_tbs", 1),
    MEMORY("accumulate_tbs", ME_KERNEL_ACCUMULATE, by_copy),
    MEMORY("silu_tbs", ME_KERNEL_SILU, by_copy),
    MEMORY("gelu_tbs", ME_KERNEL_GELU, by_copy),
    MEMORY("dropout_tbs", ME_KERNEL_DROPOUT, by_copy),
    MEMORY("softmax_tbs", ME_KERNEL_SOFTMAX, by_copy),
    MEMORY("norm_tbs", ME_KERNEL_NORM, by_copy),
    MEMORY("reduce_tbs", ME_KERNEL_REDUCE, by_copy),
    MEMORY("adamw_tbs", ME_KERNEL_ADAMW, by_copy),
    RATE("flash64_forward_tflops", 1e12, flash[0][0], by_product),
    RATE("flash64_backward_tflops", 1e12, flash[0][1], by_product),
    RATE("flash128_forward_tflops", 1e12, flash[1][0], by_product),
    RATE("flash128_backward_tflops", 1e12, flash[1][1], by_product),
    RATE_OR("fused64_forward_tflops", 1e12, fused[0][0], by_product,
            "flash64_forward_tflops", 1),
    RATE_OR("fused64_backward_tflops", 1e12, fused[0][1], by_product,
            "flash64_backward_tflops", 1),
    RATE_OR("fused128_forward_tflops", 1e12, fused[1][0], by_product,
            "flash128_forward_tflops", 1),
    RATE_OR("fused128_backward_tflops", 1e12, fused[1][1], by_product,
            "flash128_backward_tflops", 1),
    RATE_OR("fp8_tflops", 1e12, fp8_product[0], by_product, by_product, 2),
    RATE_OR("fp8_block_tflops", 1e12, fp8_product[1], by_product, by_product,
            1.6),
    OWN("sm_clock_mhz", 1e6, sm_clock),
    OWN("memory_gbs", 1e9, memory_sheet),
    RATE("launch_us", 1e-6, launch_s, NULL),
    LINK("pair", pair, by_nvlink),
    LINK("node", node, by_nvlink),
    LINK("network", network, NULL),
};

enum {
    N_FIELDS = sizeof fields / sizeof fields[0]
};

/** A slower card's times would not go into 64 bits of nanoseconds. */
static const double LEAST = 1e-3;

static double *value_of(me_rates *rates, const field *f)
{
    return (double *)(void *)((char *)rates + f->offset);
}

static const field *find_field(const char *path)
{
    for (size_t i = 0; i < N_FIELDS; i++) {
        if (strcmp(fields[i].path, path) == 0) {
            return &fields[i];
        }
    }
    return NULL;
}

/** Everything that follows the ratio of one value, with it. */
static void scale(me_rates *rates, const char *path, double ratio)
{
    for (size_t i = 0; i < N_FIELDS; i++) {
        const char *with = fields[i].scales_with;
        if (with != NULL && strcmp(with, path) == 0) {
            *value_of(rates, &fields[i]) *= ratio;
        }
    }
}

/** The kernels that no value of their own is measured for. */
static void fill_in(me_rates *rates)
{
    static const me_kernel_class as[][2] = {
        {ME_KERNEL_MASKED_FILL, ME_KERNEL_ELEMENTWISE},
        {ME_KERNEL_EMBEDDING, ME_KERNEL_STRIDED},
        {ME_KERNEL_INDEX, ME_KERNEL_STRIDED},
        {ME_KERNEL_COMPILED, ME_KERNEL_ELEMENTWISE},
        {ME_KERNEL_OPTIMIZER, ME_KERNEL_ADAMW},
    };
    for (size_t i = 0; i < sizeof as / sizeof as[0]; i++) {
        rates->memory[as[i][0]] = rates->memory[as[i][1]];
    }
}

static me_status read_value(const config_setting_t *setting, const char *path,
                            const char *name, me_diag *diag, me_rates *rates)
{
    const field *f = find_field(name);
    const int line = me_conf_line(setting);
    double value = 0;
    if (f == NULL) {
        return me_fail_at(diag, ME_ERR_CONFIG, path, line,
                          "rates.%.60s is no rate of a card", name);
    }
    if (!me_conf_number(setting, &value) || !(value >= LEAST) || value > 1e9) {
        return me_fail_at(diag, ME_ERR_CONFIG, path, line,
                          "rates.%.60s must be a number from 0.001 to 1e9",
                          name);
    }
    value *= f->unit;
    double *old = value_of(rates, f);
    if (*old > 0) {
        scale(rates, f->path, value / *old);
    }
    *old = value;
    return ME_OK;
}

static me_status read_text(const config_setting_t *setting, const char *path,
                           me_diag *diag, char text_out[ME_RATES_TEXT])
{
    const char *text = config_setting_get_string(setting);
    if (text == NULL || strlen(text) >= ME_RATES_TEXT ||
        !me_text_is_clean(text)) {
        return me_fail_at(diag, ME_ERR_CONFIG, path, me_conf_line(setting),
                          "rates.%.60s must be printable text of less than "
                          "%d bytes",
                          config_setting_name(setting), ME_RATES_TEXT);
    }
    (void)snprintf(text_out, ME_RATES_TEXT, "%s", text);
    return ME_OK;
}

/** Values of the group and of its links, in the file's order. */
// NOLINTNEXTLINE(misc-no-recursion): once, for a link
static me_status read_group(const config_setting_t *group, const char *prefix,
                            const char *path, me_diag *diag, me_rates *rates)
{
    me_status status = ME_OK;
    const int n = config_setting_length(group);
    for (int i = 0; status == ME_OK && i < n; i++) {
        const config_setting_t *one =
            config_setting_get_elem(group, (unsigned)i);
        char name[64] = "";
        (void)snprintf(name, sizeof name, "%s%s", prefix,
                       config_setting_name(one));
        if (strcmp(name, "like") == 0) {
            continue;
        }
        if (strcmp(name, "source") == 0) {
            status = read_text(one, path, diag, rates->source);
        } else if (strcmp(name, "network.source") == 0) {
            status = read_text(one, path, diag, rates->network_source);
        } else if (config_setting_is_group(one) != 0 && prefix[0] == '\0') {
            (void)snprintf(name, sizeof name, "%s.", config_setting_name(one));
            status = read_group(one, name, path, diag, rates);
        } else {
            status = read_value(one, path, name, diag, rates);
        }
    }
    return status;
}

static me_status load(const char *path, bool may_be_like, me_diag *diag,
                      me_rates *rates);

/** The rates of the card that stands in, from its file beside this one. */
static me_status load_like(const config_setting_t *group, const char *path,
                           bool may_be_like, me_diag *diag, me_rates *rates)
{
    const char *like = NULL;
    if (config_setting_lookup_string(group, "like", &like) == CONFIG_FALSE) {
        return ME_OK;
    }
    if (!may_be_like) {
        return me_fail_at(diag, ME_ERR_CONFIG, path, 0,
                          "rates that stand in for others must be complete");
    }
    const char *slash = strrchr(path, '/');
    me_str other = {0};
    me_str_append_n(&other, path,
                    slash == NULL ? 0 : (size_t)(slash - path) + 1);
    me_str_printf(&other, "%s.cfg", like);
    me_status status = me_str_status(&other);
    if (status == ME_OK) {
        status = load(me_str_text(&other), false, diag, rates);
    }
    for (size_t i = 0; i < N_FIELDS; i++) {
        double *value = value_of(rates, &fields[i]);
        *value = fields[i].is_own ? 0 : *value;
    }
    me_str_fini(&other);
    return status;
}

/** A file that was written before a rate was known need not have it. */
static void take_stand_ins(me_rates *rates)
{
    for (size_t i = 0; i < N_FIELDS; i++) {
        const field *f = &fields[i];
        if (f->stands_in != NULL && !(*value_of(rates, f) > 0)) {
            *value_of(rates, f) =
                f->share * *value_of(rates, find_field(f->stands_in));
        }
    }
}

static me_status check_complete(const char *path, me_diag *diag,
                                me_rates *rates)
{
    take_stand_ins(rates);
    for (size_t i = 0; i < N_FIELDS; i++) {
        if (!fields[i].is_own && !(*value_of(rates, &fields[i]) > 0)) {
            return me_fail_at(diag, ME_ERR_CONFIG, path, 0,
                              "rates.%s is missing", fields[i].path);
        }
    }
    return ME_OK;
}

static me_status read_rates(const config_t *file, const char *path,
                            bool may_be_like, me_diag *diag, me_rates *rates)
{
    const config_setting_t *group = config_lookup(file, "rates");
    if (group == NULL) {
        return ME_OK;
    }
    if (config_setting_is_group(group) == 0) {
        return me_fail_at(diag, ME_ERR_CONFIG, path, me_conf_line(group),
                          "rates must be a group: rates = { … };");
    }
    me_status status = load_like(group, path, may_be_like, diag, rates);
    if (status == ME_OK) {
        status = read_group(group, "", path, diag, rates);
    }
    if (status == ME_OK) {
        status = check_complete(path, diag, rates);
    }
    rates->is_known = status == ME_OK;
    return status;
}

// NOLINTNEXTLINE(misc-no-recursion): once, for the card that stands in
static me_status load(const char *path, bool may_be_like, me_diag *diag,
                      me_rates *rates)
{
    config_t file;
    config_init(&file);
    me_status status = me_conf_load(path, "a card", diag, &file);
    if (status == ME_OK) {
        status = read_rates(&file, path, may_be_like, diag, rates);
    }
    config_destroy(&file);
    return status;
}

me_status me_rates_load(const char *path, me_diag *diag, me_rates *rates_out)
{
    me_rates rates = {.is_known = false};
    const me_status status = load(path, true, diag, &rates);
    if (status == ME_OK) {
        fill_in(&rates);
        *rates_out = rates;
    }
    return status;
}

void me_rates_state(const me_rates *rates, me_str *statement)
{
    me_rates copy = *rates;
    char name[ME_RATES_TEXT];
    for (size_t i = 0; rates->is_known && i < N_FIELDS; i++) {
        (void)snprintf(name, sizeof name, "rates.%s", fields[i].path);
        me_statement_add(statement, name, "%.17g",
                         *value_of(&copy, &fields[i]) / fields[i].unit);
    }
}

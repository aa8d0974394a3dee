/* SPDX-License-Identifier: BSD-3-Clause */
#include "alloc/alloc_conf.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)

enum {
    TOKEN_TEXT = 64,
    DEFAULT_SEGMENT_MB = 20,
    MIN_SEGMENT_MB = 10, /* a request of just under 10 MiB must fit */
    MIN_ROUNDING_MB = 20,
    MAX_SEGMENT_MB = 1 << 20,
    MAX_REGISTER_THREADS = 128
};

/** The string and the token that is being looked at. */
typedef struct reader {
    const char *at;         /**< behind the token */
    char token[TOKEN_TEXT]; /**< "" at the end of the string */
    me_diag *diag;
} reader;

typedef me_status read_value(reader *r, const char *key, me_alloc_conf *conf);

typedef struct setting {
    const char *key;
    read_value *read;
} setting;

static bool is_mark(char c)
{
    return c == ',' || c == ':' || c == '[' || c == ']';
}

static bool is_at_end(const reader *r)
{
    return r->token[0] == '\0';
}

static bool token_is(const reader *r, const char *text)
{
    return strcmp(r->token, text) == 0;
}

/** White space is left out wherever it stands, also inside of a word. */
static me_status next_token(reader *r)
{
    size_t length = 0;
    for (; *r->at != '\0'; r->at++) {
        if (isspace((unsigned char)*r->at)) {
            continue;
        }
        const bool is_marked = is_mark(*r->at);
        if (is_marked && length > 0) {
            break;
        }
        if (length + 1 == TOKEN_TEXT) {
            r->token[length] = '\0';
            return me_fail(r->diag, ME_ERR_CONFIG,
                           "allocator config: '%s…' is too long", r->token);
        }
        r->token[length++] = *r->at;
        if (is_marked) {
            r->at++;
            break;
        }
    }
    r->token[length] = '\0';
    return ME_OK;
}

static me_status expect(reader *r, const char *mark, const char *key)
{
    if (!token_is(r, mark)) {
        return me_fail(r->diag, ME_ERR_CONFIG,
                       "allocator config: expected '%s' after '%s' but got "
                       "'%s'",
                       mark, key, is_at_end(r) ? "the end" : r->token);
    }
    return next_token(r);
}

static me_status read_number(reader *r, const char *key, uint64_t *number_out)
{
    char *end = NULL;
    errno = 0;
    const unsigned long long number = strtoull(r->token, &end, 10);
    if (!isdigit((unsigned char)r->token[0]) || *end != '\0' || errno != 0) {
        return me_fail(r->diag, ME_ERR_CONFIG,
                       "allocator config: %s = '%s' is not a whole number", key,
                       r->token);
    }
    *number_out = number;
    return next_token(r);
}

static me_status read_fraction(reader *r, const char *key, double *number_out)
{
    char *end = NULL;
    errno = 0;
    *number_out = strtod(r->token, &end);
    if (errno == ERANGE) { // std::stod() throws
        return me_fail(r->diag, ME_ERR_CONFIG,
                       "allocator config: %s = '%s' is out of the range of "
                       "numbers",
                       key, r->token);
    }
    if (is_at_end(r) || *end != '\0') {
        return me_fail(r->diag, ME_ERR_CONFIG,
                       "allocator config: %s = '%s' is not a number", key,
                       r->token);
    }
    return next_token(r);
}

static me_status read_bool(reader *r, const char *key, bool *is_set_out)
{
    if (!token_is(r, "True") && !token_is(r, "False")) {
        return me_fail(r->diag, ME_ERR_CONFIG,
                       "allocator config: %s: expected 'True' or 'False' but "
                       "got '%s'",
                       key, r->token);
    }
    *is_set_out = token_is(r, "True");
    return next_token(r);
}

static me_status read_mb(reader *r, const char *key, uint64_t least,
                         uint64_t *bytes_out)
{
    uint64_t megabytes = 0;
    const me_status status = read_number(r, key, &megabytes);
    if (status != ME_OK) {
        return status;
    }
    if (megabytes < least) {
        return me_fail(r->diag, ME_ERR_CONFIG,
                       "allocator config: %s = %llu is too small, must be >= "
                       "%llu",
                       key, (unsigned long long)megabytes,
                       (unsigned long long)least);
    }
    const uint64_t most = UINT64_MAX / MIB;
    *bytes_out = (megabytes < most ? megabytes : most) * MIB;
    return ME_OK;
}

static me_status read_max_split(reader *r, const char *key, me_alloc_conf *conf)
{
    return read_mb(r, key, MIN_SEGMENT_MB, &conf->max_split_bytes);
}

static me_status read_rounding(reader *r, const char *key, me_alloc_conf *conf)
{
    return read_mb(r, key, MIN_ROUNDING_MB,
                   &conf->max_non_split_rounding_bytes);
}

static me_status read_large_segment(reader *r, const char *key,
                                    me_alloc_conf *conf)
{
    const me_status status =
        read_mb(r, key, MIN_SEGMENT_MB, &conf->large_segment_bytes);
    if (status == ME_OK && conf->large_segment_bytes > MAX_SEGMENT_MB * MIB) {
        return me_fail(r->diag, ME_ERR_CONFIG,
                       "allocator config: %s is larger than any card", key);
    }
    return status;
}

static me_status read_threshold(reader *r, const char *key, me_alloc_conf *conf)
{
    double value = 0;
    const me_status status = read_fraction(r, key, &value);
    if (status == ME_OK && !(value > 0.0 && value < 1.0)) {
        return me_fail(r->diag, ME_ERR_CONFIG,
                       "allocator config: %s = %g is invalid, set it in "
                       "(0.0, 1.0)",
                       key, value);
    }
    conf->garbage_collection_threshold = value;
    return status;
}

static me_status read_memory_fraction(reader *r, const char *key,
                                      me_alloc_conf *conf)
{
    double value = 0;
    const me_status status = read_fraction(r, key, &value);
    if (status == ME_OK && !(value >= 0.0 && value <= 1.0)) {
        return me_fail(r->diag, ME_ERR_CONFIG,
                       "allocator config: %s = %g is invalid, set it in "
                       "[0.0, 1.0]",
                       key, value);
    }
    conf->per_process_memory_fraction = value;
    return status;
}

static bool is_power_of_2(uint64_t number)
{
    return number != 0 && (number & (number - 1)) == 0;
}

static void fill(me_alloc_conf *conf, size_t from, size_t to,
                 uint64_t divisions)
{
    for (size_t i = from; i < to; i++) {
        conf->roundup_power2_divisions[i] = divisions;
    }
}

static me_status read_divisions(reader *r, const char *key, bool is_in_list,
                                uint64_t *divisions_out)
{
    const me_status status = read_number(r, key, divisions_out);
    if (status == ME_OK && !is_power_of_2(*divisions_out) &&
        !(is_in_list && *divisions_out == 0)) {
        return me_fail(r->diag, ME_ERR_CONFIG,
                       "allocator config: %s: divisions %llu are not a power "
                       "of 2",
                       key, (unsigned long long)*divisions_out);
    }
    return status;
}

static me_status read_interval(reader *r, const char *key, size_t *index_out)
{
    uint64_t megabytes = 0;
    const me_status status = read_number(r, key, &megabytes);
    if (status != ME_OK) {
        return status;
    }
    if (!is_power_of_2(megabytes)) {
        return me_fail(r->diag, ME_ERR_CONFIG,
                       "allocator config: %s: interval %llu is not a power of "
                       "2",
                       key, (unsigned long long)megabytes);
    }
    const size_t log2 = 63 - (size_t)__builtin_clzll(megabytes);
    *index_out =
        log2 < ME_ALLOC_CONF_INTERVALS ? log2 : ME_ALLOC_CONF_INTERVALS - 1;
    return ME_OK;
}

/** One `INTERVAL:DIVISIONS` or `>:DIVISIONS` of a list. */
static me_status read_pair(reader *r, const char *key, me_alloc_conf *conf,
                           size_t *last, bool *is_first)
{
    const bool is_rest = token_is(r, ">");
    size_t index = *last;
    me_status status = is_rest ? next_token(r) : read_interval(r, key, &index);
    if (status == ME_OK) {
        status = expect(r, ":", key);
    }
    uint64_t divisions = 0;
    if (status == ME_OK) {
        status = read_divisions(r, key, true, &divisions);
    }
    if (status != ME_OK) {
        return status;
    }
    if (is_rest) {
        fill(conf, index, ME_ALLOC_CONF_INTERVALS, divisions);
        return ME_OK;
    }
    fill(conf, *is_first ? 0 : index, index + 1, divisions);
    *is_first = false;
    *last = index;
    return ME_OK;
}

static me_status read_roundup(reader *r, const char *key, me_alloc_conf *conf)
{
    if (!token_is(r, "[")) {
        uint64_t divisions = 0;
        const me_status status = read_divisions(r, key, false, &divisions);
        if (status == ME_OK) {
            fill(conf, 0, ME_ALLOC_CONF_INTERVALS, divisions);
        }
        return status;
    }
    size_t last = 0;
    bool is_first = true;
    me_status status = next_token(r);
    while (status == ME_OK && !token_is(r, "]")) {
        status = read_pair(r, key, conf, &last, &is_first);
        if (status == ME_OK && !token_is(r, "]")) {
            status = expect(r, ",", key);
        }
    }
    return status == ME_OK ? next_token(r) : status;
}

static me_status read_expandable(reader *r, const char *key,
                                 me_alloc_conf *conf)
{
    return read_bool(r, key, &conf->expandable_segments);
}

static me_status read_backend(reader *r, const char *key, me_alloc_conf *conf)
{
    conf->is_async_backend = token_is(r, "cudaMallocAsync");
    if (!conf->is_async_backend && !token_is(r, "native")) {
        return me_fail(r->diag, ME_ERR_CONFIG,
                       "allocator config: %s = '%s' is unknown, options are "
                       "native and cudaMallocAsync",
                       key, r->token);
    }
    return next_token(r);
}

static me_status skip_bool(reader *r, const char *key, me_alloc_conf *conf)
{
    (void)conf;
    bool ignored = false;
    return read_bool(r, key, &ignored);
}

/** Threads that register pinned memory: a power of 2, at most 128
 *  (CUDAAllocatorConfig::parsePinnedNumRegisterThreads()). */
static me_status skip_threads(reader *r, const char *key, me_alloc_conf *conf)
{
    (void)conf;
    uint64_t threads = 0;
    const me_status status = read_number(r, key, &threads);
    return status != ME_OK ||
                   (is_power_of_2(threads) && threads <= MAX_REGISTER_THREADS)
               ? status
               : me_fail(r->diag, ME_ERR_CONFIG,
                         "allocator config: %s = %llu must be a power of 2 of "
                         "at most %d",
                         key, (unsigned long long)threads,
                         (int)MAX_REGISTER_THREADS);
}

/** Pinned memory of the host (parsePinnedReserveSegmentSize()). */
static me_status skip_reserve(reader *r, const char *key, me_alloc_conf *conf)
{
    (void)conf;
    uint64_t ignored = 0;
    return read_mb(r, key, 1, &ignored);
}

static const setting settings[] = {
    {"backend", read_backend},
    {"expandable_segments", read_expandable},
    {"garbage_collection_threshold", read_threshold},
    {"graph_capture_record_stream_reuse", skip_bool},
    {"large_segment_size_mb", read_large_segment},
    {"max_non_split_rounding_mb", read_rounding},
    {"max_split_size_mb", read_max_split},
    {"per_process_memory_fraction", read_memory_fraction},
    {"pinned_num_register_threads", skip_threads},
    {"pinned_reserve_segment_size_mb", skip_reserve},
    {"pinned_use_background_threads", skip_bool},
    {"pinned_use_cuda_host_register", skip_bool},
    {"release_lock_on_cudamalloc", skip_bool},
    {"roundup_power2_divisions", read_roundup},
    {"throw_on_cudamalloc_oom", skip_bool},
};

static me_status read_setting(reader *r, me_alloc_conf *conf)
{
    char key[TOKEN_TEXT];
    memcpy(key, r->token, sizeof key);
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        if (strcmp(settings[i].key, key) != 0) {
            continue;
        }
        me_status status = next_token(r);
        if (status == ME_OK) {
            status = expect(r, ":", key);
        }
        return status == ME_OK ? settings[i].read(r, key, conf) : status;
    }
    return me_fail(r->diag, ME_ERR_CONFIG,
                   "Unrecognized key '%s' in CUDA allocator config", key);
}

/** What follows from keys that were given and keys that were not. */
static me_status settle(const reader *r, me_alloc_conf *conf)
{
    if (conf->is_async_backend) {
        return me_fail(r->diag, ME_ERR_UNSUPPORTED,
                       "allocator config: backend = cudaMallocAsync is not "
                       "modelled, only native is");
    }
    if (conf->max_split_bytes < conf->large_segment_bytes) {
        return me_fail(r->diag, ME_ERR_CONFIG,
                       "allocator config: max_split_size_mb = %llu is below "
                       "large_segment_size_mb = %llu",
                       (unsigned long long)(conf->max_split_bytes / MIB),
                       (unsigned long long)(conf->large_segment_bytes / MIB));
    }
    return ME_OK;
}

me_alloc_conf me_alloc_conf_default(void)
{
    return (me_alloc_conf){
        .max_split_bytes = ME_ALLOC_CONF_UNLIMITED,
        .max_non_split_rounding_bytes = MIN_ROUNDING_MB * MIB,
        .large_segment_bytes = DEFAULT_SEGMENT_MB * MIB,
        .per_process_memory_fraction = -1.0,
    };
}

me_status me_alloc_conf_parse(const char *text, me_diag *diag,
                              me_alloc_conf *conf_out)
{
    me_alloc_conf conf = me_alloc_conf_default();
    reader r = {.at = text == NULL ? "" : text, .diag = diag};
    me_status status = next_token(&r);
    while (status == ME_OK && !is_at_end(&r)) {
        status = read_setting(&r, &conf);
        if (status == ME_OK && !is_at_end(&r)) {
            status = expect(&r, ",", "a value");
        }
    }
    if (status == ME_OK) {
        status = settle(&r, &conf);
    }
    if (status == ME_OK) {
        *conf_out = conf;
    }
    return status;
}

uint64_t me_alloc_conf_limit_bytes(const me_alloc_conf *conf,
                                   uint64_t limit_bytes,
                                   uint64_t device_total_bytes)
{
    const double fraction = conf->per_process_memory_fraction;
    if (limit_bytes != 0 || fraction < 0.0 || device_total_bytes == 0) {
        return limit_bytes;
    }
    // 0 would be no limit; a fraction of 0 lets no segment be taken.
    const uint64_t limit = (uint64_t)(fraction * (double)device_total_bytes);
    return limit > 0 ? limit : 1;
}

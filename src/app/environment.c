/* SPDX-License-Identifier: BSD-3-Clause */
/* Variables of a launch command's environment: each is modelled, does not
 * change memory, or is reported as not modelled. Only those that CUDA, NCCL
 * and PyTorch read are looked at. */
#include "app/card.h"
#include "base/parse.h"

#include <stdio.h>
#include <string.h>

/* Names, or beginnings of names where they end in '*'. */
static const char *const without_effect[] = {
    "NCCL_DEBUG*",
    /* Read by graph/tuning.cc alone, where it decides which kernels run;
     * p2pRecvSetup() and the network's proxies allocate for all protocols. */
    "NCCL_PROTO",
    "NCCL_SOCKET_*",
    "NCCL_NSOCKS_*",
    "NCCL_IB_*",
    "NCCL_OOB_*",
    "NCCL_NET",
    "NCCL_NET_PLUGIN",
    "NCCL_CROSS_NIC",
    "NCCL_CHECKS_DISABLE",
    "NCCL_CHECK_POINTERS",
    "NCCL_LAUNCH_MODE",
    "NCCL_ASYNC_ERROR_HANDLING",
    "NCCL_BLOCKING_WAIT",
    "NCCL_TIMEOUT",
    "NCCL_IGNORE_CPU_AFFINITY",
    "NCCL_SET_THREAD_NAME",
    "NCCL_WORK_FIFO_BYTES", /* pinned memory of the host */
    /* groups are new communicators, not splits, unless a device is bound */
    "NCCL_COMM_SPLIT_SHARE_RESOURCES",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING",
    "TORCH_NCCL_BLOCKING_WAIT",
    "TORCH_NCCL_ENABLE_MONITORING",
    "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC",
    "TORCH_NCCL_DUMP_ON_TIMEOUT",
    "TORCH_NCCL_TRACE_BUFFER_SIZE",
    "TORCH_NCCL_DEBUG_INFO_*",
    "CUDA_DEVICE_MAX_CONNECTIONS", /* none seen between 1 and the default */
    "CUDA_DEVICE_ORDER",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_CACHE_*",
    "PYTORCH_ALLOC_CONF", /* the allocator's settings have their option */
    "PYTORCH_CUDA_ALLOC_CONF",
};

static const char *const read_by[] = {"NCCL_*",    "TORCH_NCCL_*", "CUDA_*",
                                      "PYTORCH_*", "CUBLAS*",      "NVTE_*"};

static bool matches(const char *name, const char *pattern)
{
    const size_t length = strlen(pattern);
    return pattern[length - 1] == '*' ? strncmp(name, pattern, length - 1) == 0
                                      : strcmp(name, pattern) == 0;
}

static bool is_among(const char *name, const char *const *patterns, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (matches(name, patterns[i])) {
            return true;
        }
    }
    return false;
}

/** `:SIZE:COUNT` in KiB, several times, as PyTorch reads it. */
static bool parse_workspace(const char *text, uint64_t *bytes_out)
{
    uint64_t total = 0;
    while (*text == ':') {
        char size[24];
        char count[24];
        int length = 0;
        uint64_t kib = 0;
        uint64_t n = 0;
        const size_t size_length = strcspn(text + 1, ":");
        const char *second = text + 1 + size_length;
        const size_t count_length =
            *second == ':' ? strcspn(second + 1, ":") : 0;
        if (size_length >= sizeof size || count_length >= sizeof count) {
            return false;
        }
        (void)snprintf(size, sizeof size, "%.*s", (int)size_length, text + 1);
        length = snprintf(count, sizeof count, "%.*s", (int)count_length,
                          second + 1);
        if (length <= 0 || me_parse_u64(size, &kib) != ME_OK ||
            me_parse_u64(count, &n) != ME_OK || kib > 1 << 24 || n > 1 << 10) {
            return false;
        }
        total += kib * n * 1024;
        text = second + 1 + count_length;
    }
    *bytes_out = total;
    return *text == '\0' && total > 0;
}

static me_status refuse(const char *name, const char *value, me_diag *diag)
{
    return me_fail(diag, ME_ERR_CONFIG, "%s=%s: the value makes no sense", name,
                   value);
}

static me_status apply_nccl(me_config *config, const me_flag_note *variable,
                            me_diag *diag, me_job_card *card)
{
    const me_status status =
        me_nccl_setup_set(&card->nccl, variable->flag, variable->note);
    if (status == ME_ERR_CONFIG) {
        return refuse(variable->flag, variable->note, diag);
    }
    return status == ME_OK
               ? ME_OK
               : me_config_add_not_modelled(config, variable->flag,
                                            "a variable of NCCL", diag);
}

static me_status apply(me_config *config, const me_flag_note *variable,
                       me_diag *diag, me_job_card *card)
{
    const char *name = variable->flag;
    const char *value = variable->note;
    const size_t n_readers = sizeof read_by / sizeof read_by[0];
    const size_t n_others = sizeof without_effect / sizeof without_effect[0];
    if (!is_among(name, read_by, n_readers) ||
        is_among(name, without_effect, n_others) ||
        (strcmp(name, "CUDA_MODULE_LOADING") == 0 && value != NULL &&
         strcmp(value, "LAZY") == 0)) {
        return ME_OK;
    }
    if (value == NULL) {
        return me_config_add_not_modelled(
            config, name, "the launch command does not say its value", diag);
    }
    if (strcmp(name, "CUBLAS_WORKSPACE_CONFIG") == 0) {
        return parse_workspace(value, &card->card.cublas_workspace_bytes)
                   ? ME_OK
                   : refuse(name, value, diag);
    }
    return strncmp(name, "NCCL_", 5) == 0
               ? apply_nccl(config, variable, diag, card)
               : me_config_add_not_modelled(config, name,
                                            "an environment variable", diag);
}

me_status me_environment_apply(me_config *config, me_diag *diag,
                               me_job_card *card)
{
    const me_flag_list *list = &config->environment;
    me_status status = ME_OK;
    for (int32_t i = 0; status == ME_OK && i < list->count; i++) {
        const me_flag_note *variable = &list->flags[i];
        /* The last assignment of a name holds. */
        const char *value = me_config_variable(config, variable->flag);
        if (value == variable->note) {
            status = apply(config, variable, diag, card);
        }
    }
    return status;
}

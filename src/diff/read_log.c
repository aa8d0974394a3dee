/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines on memory in logs: Megatron-LM's report_memory()
 * (megatron/training/utils/common_utils.py of core_v0.19.0) and torchtitan's
 * (torchtitan/components/metrics.py). */
#include "diff/profile_read.h"

#include <string.h>

/** Ranks that print at once may begin behind each other's line. */
static const me_log_unit mib = {1048576.0, "", " |["};
static const me_log_unit gib = {1073741824.0, "GiB", "("};

enum {
    DECIMALS = 2 /**< of report_memory() */
};

static bool is_megatron_log(const char *head, size_t length)
{
    return me_head_has(head, length, " memory (MB) | allocated: ");
}

static me_status read_megatron_line(me_profile *profile, char *text, int number,
                                    me_diag *diag)
{
    static const struct {
        const char *mark;
        me_quantity quantity;
        void (*keep)(me_profile_rank *rank, me_quantity quantity,
                     uint64_t bytes); // the last line's, or the most
    } fields[] = {
        {"| allocated: ", ME_QUANTITY_ALLOCATED_END, me_profile_set},
        {"| max allocated: ", ME_QUANTITY_ALLOCATED_PEAK, me_profile_raise},
        {"| reserved: ", ME_QUANTITY_RESERVED_END, me_profile_set},
        {"| max reserved: ", ME_QUANTITY_RESERVED_PEAK, me_profile_raise},
        {"| total device memory used: ", ME_QUANTITY_DEVICE_PEAK,
         me_profile_raise},
    };

    const char *from = strstr(text, " memory (MB) | ");
    if (from == NULL) {
        return ME_OK;
    }
    const int32_t number_of_rank = me_log_number(text, "[Rank ", -1);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        const char *at = strstr(from, fields[i].mark);
        uint64_t bytes = 0;
        if (at == NULL ||
            (profile->is_cut &&
             me_log_goes_on(at + strlen(fields[i].mark), DECIMALS))) {
            continue;
        }
        if (!me_log_bytes(at + strlen(fields[i].mark), &mib, &bytes)) {
            return me_fail_at(diag, ME_ERR_SYNTAX, profile->name, number,
                              "no number of MB follows '%s'", fields[i].mark);
        }
        me_profile_rank *rank = me_profile_rank_add(profile, number_of_rank);
        if (rank == NULL) {
            return me_log_no_memory(profile, diag);
        }
        fields[i].keep(rank, fields[i].quantity, bytes);
    }
    return ME_OK;
}

static me_status read_megatron(me_profile *profile, FILE *file, me_diag *diag)
{
    profile->rounding =
        (uint64_t)(mib.bytes / 200) + 1; // half of the last digit
    return me_profile_lines(profile, file, read_megatron_line, diag);
}

const me_profile_reader me_megatron_log_reader = {
    "Megatron-LM's log", is_megatron_log, read_megatron};

static bool is_torchtitan_log(const char *head, size_t length)
{
    return me_head_has(head, length, "memory: ") &&
           me_head_has(head, length, "GiB(") &&
           me_head_has(head, length, "step: ");
}

static me_status read_torchtitan_line(me_profile *profile, char *text,
                                      int number, me_diag *diag)
{
    (void)number;
    const char *at = strstr(text, "memory: ");
    uint64_t bytes = 0;
    if (at == NULL || strstr(text, "step: ") == NULL ||
        strstr(at, "GiB(") == NULL ||
        !me_log_bytes(at + strlen("memory: "), &gib, &bytes)) {
        return ME_OK;
    }
    me_profile_rank *rank =
        me_profile_rank_add(profile, me_log_number(text, "[rank", -1));
    if (rank == NULL) {
        return me_log_no_memory(profile, diag);
    }
    me_profile_raise(rank, ME_QUANTITY_RESERVED_PEAK, bytes);
    return ME_OK;
}

static me_status read_torchtitan(me_profile *profile, FILE *file, me_diag *diag)
{
    profile->rounding = (uint64_t)(gib.bytes / 200) + 1;
    return me_profile_lines(profile, file, read_torchtitan_line, diag);
}

const me_profile_reader me_torchtitan_log_reader = {
    "torchtitan's log", is_torchtitan_log, read_torchtitan};

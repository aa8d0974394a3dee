/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines on memory in logs: Megatron-LM's report_memory()
 * (megatron/training/utils/common_utils.py of core_v0.19.0), torchtitan's
 * (torchtitan/components/metrics.py), and samples of nvidia-smi. */
#include "base/parse.h"
#include "diff/profile_read.h"

#include <math.h>
#include <string.h>

static const double mib = 1048576.0;
static const double gib = 1073741824.0;

enum {
    MAX_COLUMNS = 64,
    NUMBER_BYTES = 32
};

/** The number that begins at @p text, in bytes; false: there is none. */
static bool read_bytes(const char *text, double unit, uint64_t *bytes_out)
{
    char number[NUMBER_BYTES];
    double value = 0;
    text += strspn(text, " ");
    const size_t length = strspn(text, "0123456789.");
    if (length == 0 || length >= sizeof number) {
        return false;
    }
    memcpy(number, text, length);
    number[length] = '\0';
    if (me_parse_double(number, &value) != ME_OK || value < 0 ||
        value * unit >= 0x1p63) {
        return false;
    }
    *bytes_out = (uint64_t)llround(value * unit);
    return true;
}

/** The whole number behind @p mark in a line; @p missing where there is none. */
static int32_t number_behind(const char *line, const char *mark,
                             int32_t missing)
{
    const char *at = strstr(line, mark);
    char number[NUMBER_BYTES];
    uint64_t value = 0;
    if (at == NULL) {
        return missing;
    }
    at += strlen(mark);
    const size_t length = strspn(at, "0123456789");
    if (length == 0 || length >= sizeof number) {
        return missing;
    }
    memcpy(number, at, length);
    number[length] = '\0';
    return me_parse_u64(number, &value) == ME_OK && value <= INT32_MAX
               ? (int32_t)value
               : missing;
}

static me_status no_memory(const me_profile *profile, me_diag *diag)
{
    return me_fail(diag, ME_ERR_NOMEM, "no memory to read %s", profile->name);
}

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
    } fields[] = {
        {"| allocated: ", ME_QUANTITY_ALLOCATED_END},
        {"| max allocated: ", ME_QUANTITY_ALLOCATED_PEAK},
        {"| reserved: ", ME_QUANTITY_RESERVED_END},
        {"| max reserved: ", ME_QUANTITY_RESERVED_PEAK},
        {"| total device memory used: ", ME_QUANTITY_DEVICE_PEAK},
    };

    const char *from = strstr(text, " memory (MB) | ");
    if (from == NULL) {
        return ME_OK;
    }
    me_profile_rank *rank =
        me_profile_rank_add(profile, number_behind(text, "[Rank ", -1));
    if (rank == NULL) {
        return no_memory(profile, diag);
    }
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        const char *at = strstr(from, fields[i].mark);
        uint64_t bytes = 0;
        if (at == NULL) {
            continue;
        }
        if (!read_bytes(at + strlen(fields[i].mark), mib, &bytes)) {
            return me_fail_at(diag, ME_ERR_SYNTAX, profile->name, number,
                              "no number of MB follows '%s'", fields[i].mark);
        }
        if (fields[i].quantity == ME_QUANTITY_ALLOCATED_END ||
            fields[i].quantity == ME_QUANTITY_RESERVED_END) {
            me_profile_set(rank, fields[i].quantity, bytes);
        } else {
            me_profile_raise(rank, fields[i].quantity, bytes);
        }
    }
    return ME_OK;
}

static me_status read_megatron(me_profile *profile, FILE *file, me_diag *diag)
{
    profile->rounding = (uint64_t)(mib / 200) + 1; // half of the last digit
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

/** Take escape sequences of a terminal's colours out. */
static void remove_colors(char *text)
{
    char *to = text;
    for (const char *at = text; *at != '\0';) {
        if (*at == '\033' && at[1] == '[') {
            at += 2 + strcspn(at + 2, "m");
            at += *at == 'm' ? 1 : 0;
        } else {
            *to++ = *at++;
        }
    }
    *to = '\0';
}

static me_status read_torchtitan_line(me_profile *profile, char *text,
                                      int number, me_diag *diag)
{
    (void)number;
    remove_colors(text);
    const char *at = strstr(text, "memory: ");
    uint64_t bytes = 0;
    if (at == NULL || strstr(text, "step: ") == NULL ||
        strstr(at, "GiB(") == NULL ||
        !read_bytes(at + strlen("memory: "), gib, &bytes)) {
        return ME_OK;
    }
    me_profile_rank *rank =
        me_profile_rank_add(profile, number_behind(text, "[rank", -1));
    if (rank == NULL) {
        return no_memory(profile, diag);
    }
    me_profile_raise(rank, ME_QUANTITY_RESERVED_PEAK, bytes);
    return ME_OK;
}

static me_status read_torchtitan(me_profile *profile, FILE *file, me_diag *diag)
{
    profile->rounding = (uint64_t)(gib / 200) + 1;
    return me_profile_lines(profile, file, read_torchtitan_line, diag);
}

const me_profile_reader me_torchtitan_log_reader = {
    "torchtitan's log", is_torchtitan_log, read_torchtitan};

static bool is_nvidia_smi(const char *head, size_t length)
{
    const char *end = memchr(head, '\n', length);
    const size_t line = end == NULL ? length : (size_t)(end - head);
    return me_head_has(head, line, "memory.used [MiB]");
}

/** Where a field of a line of CSV begins; NULL: it has fewer. */
static const char *find_field(const char *line, int column)
{
    const char *at = line;
    for (int i = 0; i < column && at != NULL; i++) {
        at = strchr(at, ',');
        at = at == NULL ? NULL : at + 1;
    }
    return at == NULL ? NULL : at + strspn(at, " ");
}

/** Which column is called so; -1: none. */
static int find_column(const char *header, const char *name)
{
    const size_t length = strlen(name);
    for (int i = 0; i < MAX_COLUMNS; i++) {
        const char *field = find_field(header, i);
        if (field == NULL) {
            return -1;
        }
        if (strncmp(field, name, length) == 0 &&
            strchr(",\r\n", field[length]) != NULL) {
            return i;
        }
    }
    return -1;
}

/** A sample: of the GPU of that index, which is taken for the rank. */
static me_status add_sample(me_profile *profile, const char *line, int index,
                            int used, int number, me_diag *diag)
{
    const char *at = find_field(line, used);
    uint64_t bytes = 0;
    if (at == NULL || !read_bytes(at, mib, &bytes)) {
        return me_fail_at(diag, ME_ERR_SYNTAX, profile->name, number,
                          "no number of MiB in the column memory.used");
    }
    const char *gpu = index < 0 ? NULL : find_field(line, index);
    me_profile_rank *rank = me_profile_rank_add(
        profile, gpu == NULL ? -1 : number_behind(gpu, "", -1));
    if (rank == NULL) {
        return no_memory(profile, diag);
    }
    me_profile_raise(rank, ME_QUANTITY_DEVICE_PEAK, bytes);
    return ME_OK;
}

static me_status read_nvidia_smi(me_profile *profile, FILE *file, me_diag *diag)
{
    char line[1024];
    me_status status = ME_OK;
    profile->rounding = (uint64_t)mib;
    if (fgets(line, sizeof line, file) == NULL) {
        return ME_OK;
    }
    const int used = find_column(line, "memory.used [MiB]");
    const int index = find_column(line, "index");
    for (int number = 2; status == ME_OK && used >= 0; number++) {
        if (fgets(line, sizeof line, file) == NULL) {
            break;
        }
        if (line[strspn(line, " \r\n")] != '\0') {
            status = add_sample(profile, line, index, used, number, diag);
        }
    }
    return status;
}

const me_profile_reader me_nvidia_smi_reader = {"samples of nvidia-smi",
                                                is_nvidia_smi, read_nvidia_smi};

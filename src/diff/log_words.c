/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers in lines of logs. */
#include "base/parse.h"
#include "diff/profile_read.h"

#include <math.h>
#include <string.h>

enum {
    NUMBER_BYTES = 32
};

bool me_log_bytes(const char *text, double unit, uint64_t *bytes_out)
{
    char number[NUMBER_BYTES];
    double value = 0;
    text += strspn(text, " ");
    const size_t length = strspn(text, "0123456789.");
    if (length == 0 || length >= sizeof number ||
        strchr("eExX_+-", text[length] == '\0' ? ' ' : text[length]) != NULL) {
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

int32_t me_log_number(const char *line, const char *mark, int32_t missing)
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

me_status me_log_no_memory(const me_profile *profile, me_diag *diag)
{
    return me_fail(diag, ME_ERR_NOMEM, "no memory to read %s", profile->name);
}

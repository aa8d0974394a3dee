/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers in lines of logs. */
#include "base/parse.h"
#include "diff/profile_read.h"

#include <math.h>
#include <string.h>

enum {
    NUMBER_BYTES = 32
};

/** Is what follows a number its unit, if anything, and then its end? */
static bool has_end(const char *at, const me_log_unit *unit)
{
    const size_t length = strlen(unit->name);
    if (length > 0) {
        at += strspn(at, " ");
        at += strncmp(at, unit->name, length) == 0 ? length : 0;
        at += strspn(at, " ");
    }
    return *at == '\0' || strchr("\r\n", *at) != NULL ||
           strchr(unit->ends, *at) != NULL;
}

size_t me_escape_bytes(const char *text, size_t length)
{
    size_t n = 2;
    if (length < n || text[0] != '\033' || text[1] != '[') {
        return 0;
    }
    while (n < length && text[n] >= ' ' && text[n] <= '?') {
        n++; // parameters, and what stands behind them
    }
    return n < length ? n + 1 : 0;
}

bool me_log_bytes(const char *text, const me_log_unit *unit,
                  uint64_t *bytes_out)
{
    char number[NUMBER_BYTES];
    double value = 0;
    text += strspn(text, " ");
    const size_t length = strspn(text, "0123456789.");
    if (length == 0 || length >= sizeof number ||
        !has_end(text + length, unit)) {
        return false;
    }
    memcpy(number, text, length);
    number[length] = '\0';
    if (me_parse_double(number, &value) != ME_OK || value < 0 ||
        value * unit->bytes >= 0x1p63) {
        return false;
    }
    *bytes_out = (uint64_t)llround(value * unit->bytes);
    return true;
}

bool me_log_goes_on(const char *text, int decimals)
{
    text += strspn(text, " ");
    const size_t whole = strcspn(text, ". ,\t\r\n");
    const char *rest = text + whole;
    if (*rest == '.') {
        const size_t n = strspn(rest + 1, "0123456789");
        if (decimals > 0 && n >= (size_t)decimals) {
            return false;
        }
        rest += strcspn(rest, " ,\t\r\n");
    }
    return *rest == '\0';
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

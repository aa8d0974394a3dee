/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/oom_text.h"

#include <string.h>

int32_t me_report_device_index(const me_report *report, int32_t rank)
{
    return rank % report->config->device.gpus_per_node;
}

/** Where the device's number, which is 0, stands; NULL: there is none. */
static const char *find_number(const char *text)
{
    static const char start[] = "CUDA out of memory. ";
    static const char before[] = ". GPU ";
    const char *at = strstr(text, start);
    at = at == NULL ? NULL : strstr(at + sizeof start - 1, before);
    return at == NULL ? NULL : at + sizeof before - 1;
}

void me_oom_text_append(const char *message, int32_t index, me_str *text)
{
    const char *number = find_number(message);
    if (number == NULL) {
        me_str_append(text, message);
        return;
    }
    me_str_append_n(text, message, (size_t)(number - message));
    me_str_printf(text, "%d%s", (int)index, number + 1);
}

void me_oom_text_print(const char *json, int32_t index, FILE *stream)
{
    const char *number = find_number(json);
    if (number == NULL) {
        (void)fputs(json, stream);
        return;
    }
    (void)fwrite(json, 1, (size_t)(number - json), stream);
    (void)fprintf(stream, "%d%s", (int)index, number + 1);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/conf.h"

#include "base/input.h"

#include <string.h>

enum {
    SHOWN_BYTES = 60
};

/** The text of one line, without blanks at its ends, for a message. */
static const char *find_line(const char *text, int line, int *length_out)
{
    for (int i = 1; i < line && *text != '\0'; text++) {
        i += *text == '\n';
    }
    text += strspn(text, " \t");
    const size_t length = strcspn(text, "\r\n");
    *length_out = (int)(length > SHOWN_BYTES ? SHOWN_BYTES : length);
    return text;
}

me_status me_conf_parse(const char *where, const me_source *source,
                        me_diag *diag, config_t *conf)
{
    const char *text = me_str_text(&source->text);
    if (config_read_string(conf, text) == CONFIG_TRUE) {
        return ME_OK;
    }
    const int line = config_error_line(conf);
    int length = 0;
    const char *near = find_line(text, line, &length);
    return me_fail_at(diag, ME_ERR_SYNTAX, where, line, "%s %s '%.*s'",
                      config_error_text(conf),
                      *near == '\0' ? "at the end: is the file whole?"
                                    : "at or before",
                      length, near);
}

me_status me_conf_read(const char *where, const char *what, const char *text,
                       size_t length, me_diag *diag, config_t *conf)
{
    me_source source;
    me_status status = me_source_scan_lists(where, text, length, diag, &source);
    if (status == ME_OK && source.n_includes > 0) {
        status = me_fail_at(diag, ME_ERR_CONFIG, where, source.includes[0].line,
                            "@include: the file of %s stands for itself", what);
    }
    if (status == ME_OK) {
        status = me_conf_parse(where, &source, diag, conf);
    }
    me_source_fini(&source);
    return status;
}

me_status me_conf_load(const char *path, const char *what, me_diag *diag,
                       config_t *conf)
{
    me_str text = {0};
    me_status status = me_input_read(path, ME_INPUT_MAX_BYTES, diag, &text);
    if (status == ME_OK) {
        status = me_conf_read(path, what, me_str_text(&text), text.length, diag,
                              conf);
    }
    me_str_fini(&text);
    return status;
}

bool me_conf_number(const config_setting_t *setting, double *value_out)
{
    if (setting == NULL) {
        return false;
    }
    switch (config_setting_type(setting)) {
    case CONFIG_TYPE_INT:
    case CONFIG_TYPE_INT64:
        *value_out = (double)config_setting_get_int64(setting);
        return true;
    case CONFIG_TYPE_FLOAT:
        *value_out = config_setting_get_float(setting);
        return true;
    default: return false;
    }
}

int me_conf_line(const config_setting_t *setting)
{
    return setting == NULL ? 0 : (int)config_setting_source_line(setting);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/page.h"

#include "report/json.h"
#include "report/page_files.h"

#include <inttypes.h>
#include <string.h>

enum {
    SVG_ROWS_MAX = 3000 /* beyond it a picture is faster to show than marks */
};

bool me_page_is_available(void)
{
    return me_page_files[0].name != NULL;
}

static const me_page_file *find_file(const char *name)
{
    const me_page_file *file = me_page_files;
    while (file->name != NULL && strcmp(file->name, name) != 0) {
        file++;
    }
    return file->name == NULL ? NULL : file;
}

static void append_file(me_str *page, const me_page_file *file)
{
    if (file != NULL) {
        me_str_append_n(page, (const char *)file->bytes, file->size);
    }
}

static const char *entity(char c)
{
    switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    default: return NULL;
    }
}

/** What is no control character; bytes of UTF-8 are for the browser. */
static bool is_shown(char c)
{
    return (unsigned char)c >= ' ' && c != '\177';
}

void me_html_append(me_str *page, const char *text)
{
    for (; *text != '\0'; text++) {
        const char *escaped = entity(*text);
        if (escaped != NULL) {
            me_str_append(page, escaped);
        } else {
            const bool is_kept = is_shown(*text) || *text == '\n';
            me_str_append_n(page, is_kept ? text : "?", 1);
        }
    }
}

void me_page_begin(me_str *page, const char *title)
{
    me_str_append(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
        "'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, "
        "initial-scale=1\">\n<title>");
    me_html_append(page, title);
    me_str_append(page, "</title>\n<style>\n");
    append_file(page, find_file("page.css"));
    me_str_append(page, "</style>\n</head>\n<body>\n<h1>");
    me_html_append(page, title);
    me_str_append(page, "</h1>\n");
}

static void append_element(me_str *page, const char *begin, const char *text,
                           const char *end)
{
    me_str_append(page, begin);
    me_html_append(page, text);
    me_str_append(page, end);
}

void me_page_heading(me_str *page, const char *title)
{
    append_element(page, "<h2>", title, "</h2>\n");
}

void me_page_note(me_str *page, const char *text)
{
    append_element(page, "<p class=\"note\">", text, "</p>\n");
}

void me_page_lines(me_str *page, const char *lines)
{
    append_element(page, "<pre>", lines, "</pre>\n");
}

void me_page_details(me_str *page, const char *title, const char *lines)
{
    append_element(page, "<details><summary>", title, "</summary>\n");
    me_page_lines(page, lines);
    me_str_append(page, "</details>\n");
}

void me_page_part_begin(me_str *page, const char *value, bool is_shown)
{
    append_element(page, "<div data-of=\"", value,
                   is_shown ? "\">\n" : "\" hidden>\n");
}

void me_page_part_end(me_str *page)
{
    me_str_append(page, "</div>\n");
}

/** The modules that Vega comes in, each inside of a function. */
static void append_modules(me_str *page)
{
    for (const me_page_file *file = me_page_files; file->name != NULL; file++) {
        if (strncmp(file->name, "vega-", 5) == 0) {
            me_str_printf(page,
                          "define(\"%s\", function (exports, module, require) "
                          "{\n",
                          file->name);
            append_file(page, file);
            me_str_append(page, "\n});\n");
        }
    }
}

void me_page_end(me_str *page)
{
    me_str_append(page, "<!--\n");
    append_file(page, find_file("notice.txt"));
    me_str_append(page, "-->\n<script>\n");
    append_file(page, find_file("modules.js"));
    append_modules(page);
    me_str_append(page, "</script>\n<script>\n");
    append_file(page, find_file("page.js"));
    me_str_append(page, "</script>\n</body>\n</html>\n");
}

/** Set the value of one signal. */
static bool set_signal(json_t *spec, const char *name, json_t *value)
{
    size_t i = 0;
    json_t *signal = NULL;
    json_array_foreach(json_object_get(spec, "signals"), i, signal)
    {
        const char *its_name =
            json_string_value(json_object_get(signal, "name"));
        if (its_name != NULL && strcmp(its_name, name) == 0) {
            return json_object_set(signal, "value", value) == 0;
        }
    }
    return false;
}

/** The specification of a chart with its signals set; NULL on failure. */
static json_t *make_spec(const me_chart *chart)
{
    const me_page_file *file = find_file(chart->spec);
    json_t *spec = file == NULL ? NULL
                                : json_loadb((const char *)file->bytes,
                                             file->size, 0, NULL);
    const char *name = NULL;
    json_t *value = NULL;
    bool is_good = spec != NULL;
    json_object_foreach(chart->signals, name, value)
    {
        is_good = is_good && set_signal(spec, name, value);
    }
    if (!is_good) {
        json_decref(spec);
        return NULL;
    }
    return spec;
}

/** JSON inside of a script: only strings hold a "<", and there it has another
 *  name as well. */
static void append_json(me_str *page, const char *json)
{
    while (*json != '\0') {
        const size_t length = strcspn(json, "<");
        me_str_append_n(page, json, length);
        json += length;
        if (*json == '<') {
            me_str_append(page, "\\u003c");
            json++;
        }
    }
}

/** Texts are ours and need no escapes of JSON. */
static void append_choice(me_str *page, const me_chart_choice *choice)
{
    if (choice->column != NULL) {
        me_str_printf(page,
                      ",\n\"choice\":{\"column\":\"%s\",\"label\":\"%s\","
                      "\"first\":\"%s\"}",
                      choice->column, choice->label, choice->first);
    }
}

me_status me_page_chart(me_str *page, const me_chart *chart)
{
    json_t *spec = make_spec(chart);
    json_decref(chart->signals);
    if (spec == NULL) {
        return ME_ERR_INTERNAL;
    }
    me_str json = {0};
    const bool is_good = me_json_dump(spec, JSON_COMPACT, &json);
    json_decref(spec);
    me_str_append(page, "<div class=\"wide\"></div>\n"
                        "<script type=\"application/json\" class=\"chart\">");
    me_str_printf(page, "{\"renderer\":\"%s\",\"spec\":",
                  chart->rows->count > SVG_ROWS_MAX ? "canvas" : "svg");
    append_json(page, me_str_text(&json));
    append_choice(page, &chart->choice);
    me_str_printf(page, ",\n\"data\":{\"%s\":{\"columns\":[%s],\"rows\":[\n",
                  chart->data, chart->columns);
    append_json(page, me_str_text(&chart->rows->text));
    me_str_append(page, "]}}}</script>\n");
    me_status status = is_good ? me_str_status(&json) : ME_ERR_NOMEM;
    if (status == ME_OK) {
        status = me_str_status(&chart->rows->text);
    }
    me_str_fini(&json);
    return status == ME_OK ? me_str_status(page) : status;
}

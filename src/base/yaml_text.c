/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/yaml_text.h"

#include "base/clean.h"
#include "base/parse.h"
#include "base/str.h"
#include "base/yaml_number.h"

#include <stdio.h>
#include <string.h>
#include <yaml.h>

/** One walk over a document. */
typedef struct walk {
    const char *where;
    yaml_document_t *document;
    me_arena *arena;
    me_diag *diag;
    me_yaml yaml;
    size_t n_seen; /**< nodes, each as often as it is met */
    char path[ME_YAML_PATH];
    const char *line; /**< where the line that was looked at last begins; NULL:
                           there is no tab in the file */
    size_t n_lines;   /**< before it */
    const char *end;  /**< of the file, which no zero byte need follow */
} walk;

static me_status fail(const walk *w, const yaml_node_t *node, const char *what)
{
    return me_fail_at(w->diag, ME_ERR_SYNTAX, w->where,
                      node == NULL ? 0 : (int)node->start_mark.line + 1, "%s",
                      what);
}

static me_status fail_memory(const walk *w)
{
    return me_fail(w->diag, ME_ERR_NOMEM, "no memory for %s", w->where);
}

/** What cannot be printed in one line says nothing of a job. @return NULL:
 *  there is no memory for it */
static const char *copy_scalar(const walk *w, const yaml_node_t *node)
{
    const char *text = (const char *)node->data.scalar.value;
    return me_arena_strdup(w->arena, strlen(text) == node->data.scalar.length &&
                                             me_text_is_clean(text)
                                         ? text
                                         : "?");
}

/** … of a value, a number as PyYAML reads it. */
static const char *copy_value(const walk *w, const yaml_node_t *node)
{
    char number[ME_YAML_NUMBER];
    const char *text = (const char *)node->data.scalar.value;
    if (node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE) {
        return copy_scalar(w, node);
    }
    const char *other = me_yaml_not_finite(text);
    other = other == NULL && me_yaml_number(text, number) ? number : other;
    return other == NULL ? copy_scalar(w, node)
                         : me_arena_strdup(w->arena, other);
}

/** The character of a line at a column; the end of the line behind it. */
static const char *column_of(const walk *w, size_t column)
{
    const char *at = w->line;
    for (; column > 0 && at < w->end && *at != '\n'; column--) {
        at++;
        while (at < w->end && (*at & 0xC0) == 0x80) { // of the same character
            at++;
        }
    }
    return at;
}

/** Is there a tab among the spaces behind a word? */
static bool has_tab_after(const walk *w, const char *at)
{
    while (at < w->end && *at == ' ') {
        at++;
    }
    return at < w->end && *at == '\t';
}

/** PyYAML's scanner takes no tab between two tokens, which libyaml does. */
static me_status check_tabs(walk *w, const yaml_node_t *node)
{
    const size_t line = node->start_mark.line;
    if (w->line == NULL || line < w->n_lines ||
        node->start_mark.index == node->end_mark.index) {
        return ME_OK; // of an alias, or nothing
    }
    for (; w->n_lines < line; w->n_lines++) {
        const char *end = memchr(w->line, '\n', (size_t)(w->end - w->line));
        if (end == NULL) {
            return ME_OK;
        }
        w->line = end + 1;
    }
    bool has_tab = false;
    const char *at = column_of(w, node->start_mark.column);
    while (at > w->line && (at[-1] == ' ' || at[-1] == '\t')) {
        at--;
        has_tab = has_tab || *at == '\t';
    }
    if (node->type == YAML_SCALAR_NODE && node->end_mark.line == line) {
        has_tab =
            has_tab || has_tab_after(w, column_of(w, node->end_mark.column));
    }
    return has_tab ? fail(w, node, "a tab between words, which PyYAML refuses")
                   : ME_OK;
}

static me_status add_leaf(walk *w, const yaml_node_t *node,
                          const char *const *values, int n_values, bool is_list)
{
    const char *path = me_arena_strdup(w->arena, w->path);
    if (path == NULL) {
        return fail_memory(w);
    }
    if (w->yaml.count == ME_YAML_LEAVES_MAX) {
        return fail(w, node, "more values than a job has");
    }
    const char *dot = strrchr(path, '.');
    w->yaml.leaves[w->yaml.count++] = (me_yaml_leaf){
        .path = path,
        .key = dot == NULL ? path : dot + 1,
        .values = values,
        .n_values = n_values,
        .is_list = is_list,
        .is_plain = node->type != YAML_SCALAR_NODE ||
                    node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE,
        .where = w->where,
        .line = (int)node->start_mark.line + 1,
    };
    return ME_OK;
}

static yaml_node_t *node_of(const walk *w, int index)
{
    return yaml_document_get_node(w->document, index);
}

/** A list of nothing but scalars is one leaf. */
static bool has_scalars_only(const walk *w, const yaml_node_t *node)
{
    const yaml_node_item_t *item = node->data.sequence.items.start;
    for (; item < node->data.sequence.items.top; item++) {
        if (node_of(w, *item)->type != YAML_SCALAR_NODE) {
            return false;
        }
    }
    return true;
}

static me_status add_list(walk *w, const yaml_node_t *node)
{
    const yaml_node_item_t *first = node->data.sequence.items.start;
    const size_t n = (size_t)(node->data.sequence.items.top - first);
    if (n > ME_YAML_LEAVES_MAX - w->n_seen) {
        return fail(w, node, "more values than a job has");
    }
    w->n_seen += n;
    const char **values = me_arena_alloc(w->arena, n + 1, sizeof *values);
    if (values == NULL) {
        return fail_memory(w);
    }
    for (size_t i = 0; i < n; i++) {
        const me_status status = check_tabs(w, node_of(w, first[i]));
        if (status != ME_OK) {
            return status;
        }
        values[i] = copy_value(w, node_of(w, first[i]));
        if (values[i] == NULL) {
            return fail_memory(w);
        }
    }
    return add_leaf(w, node, values, (int)n, true);
}

static me_status visit(walk *w, int index, int depth);

/** A node below the key: `<<` has its keys in the place of its own. */
static me_status visit_below(walk *w, const char *key, int index, int depth)
{
    const size_t before = strlen(w->path);
    const size_t room = sizeof w->path - before;
    const char *dot = before == 0 ? "" : ".";
    if (strcmp(key, "<<") != 0 &&
        (size_t)snprintf(w->path + before, room, "%s%s", dot, key) >= room) {
        w->path[before] = '\0';
        return fail(w, node_of(w, index), "a path of keys that is too long");
    }
    const me_status status = visit(w, index, depth + 1);
    w->path[before] = '\0';
    return status;
}

static me_status visit_mapping(walk *w, const yaml_node_t *node, int depth)
{
    me_status status = ME_OK;
    const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
    for (; status == ME_OK && pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = node_of(w, pair->key);
        if (key->type != YAML_SCALAR_NODE) {
            return fail(w, key, "a key must be a word");
        }
        status = check_tabs(w, key);
        if (status != ME_OK) {
            return status;
        }
        const char *name = copy_scalar(w, key);
        status = name == NULL ? fail_memory(w)
                              : visit_below(w, name, pair->value, depth);
    }
    return status;
}

static me_status visit_sequence(walk *w, const yaml_node_t *node, int depth)
{
    if (has_scalars_only(w, node)) {
        return add_list(w, node);
    }
    const yaml_node_item_t *first = node->data.sequence.items.start;
    me_status status = ME_OK;
    for (const yaml_node_item_t *item = first;
         status == ME_OK && item < node->data.sequence.items.top; item++) {
        char name[24];
        (void)snprintf(name, sizeof name, "%td", item - first);
        status = visit_below(w, name, *item, depth);
    }
    return status;
}

// NOLINTNEXTLINE(misc-no-recursion): ME_YAML_DEPTH_MAX ends it
static me_status visit(walk *w, int index, int depth)
{
    const yaml_node_t *node = node_of(w, index);
    if (depth > ME_YAML_DEPTH_MAX || w->n_seen >= ME_YAML_LEAVES_MAX) {
        return fail(w, node,
                    depth > ME_YAML_DEPTH_MAX
                        ? "deeper than a job is, or an alias of what it is in"
                        : "more values than a job has");
    }
    w->n_seen++;
    const me_status status = check_tabs(w, node);
    if (status != ME_OK) {
        return status;
    }
    const char **value = NULL;
    switch (node->type) {
    case YAML_MAPPING_NODE: return visit_mapping(w, node, depth);
    case YAML_SEQUENCE_NODE: return visit_sequence(w, node, depth);
    case YAML_SCALAR_NODE:
        value = me_arena_alloc(w->arena, 1, sizeof *value);
        if (value == NULL || (*value = copy_value(w, node)) == NULL) {
            return fail_memory(w);
        }
        return add_leaf(w, node, value, 1, false);
    case YAML_NO_NODE: break;
    }
    return ME_OK;
}

static me_status fail_syntax(const char *where, const yaml_parser_t *parser,
                             me_diag *diag)
{
    if (parser->error == YAML_MEMORY_ERROR) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory for %s", where);
    }
    return me_fail_at(diag, ME_ERR_SYNTAX, where,
                      (int)parser->problem_mark.line + 1, "is no YAML: %s",
                      parser->problem == NULL ? "?" : parser->problem);
}

/** libyaml takes time with the square of what is open; the events tell it before
 *  a document is made of them. yaml.load() takes one document. */
static me_status check_events(const walk *w, const char *text, size_t length)
{
    yaml_parser_t parser;
    me_status status = ME_OK;
    int depth = 0;
    int n_documents = 0;
    bool is_end = false;
    if (yaml_parser_initialize(&parser) == 0) {
        return fail_memory(w);
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
    while (status == ME_OK && !is_end) {
        yaml_event_t event;
        if (yaml_parser_parse(&parser, &event) == 0) {
            status = fail_syntax(w->where, &parser, w->diag);
            break;
        }
        const int line = (int)event.start_mark.line + 1;
        const bool is_begin = event.type == YAML_SEQUENCE_START_EVENT ||
                              event.type == YAML_MAPPING_START_EVENT;
        depth += is_begin ? 1 : 0;
        depth -= event.type == YAML_SEQUENCE_END_EVENT ||
                         event.type == YAML_MAPPING_END_EVENT
                     ? 1
                     : 0;
        n_documents += event.type == YAML_DOCUMENT_START_EVENT ? 1 : 0;
        is_end = event.type == YAML_STREAM_END_EVENT;
        if (depth > ME_YAML_DEPTH_MAX + 1 || n_documents > 1) {
            status = me_fail_at(
                w->diag, ME_ERR_SYNTAX, w->where, line, "%s",
                n_documents > 1 ? "a second document, where PyYAML takes one"
                                : "deeper than a job is");
        }
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return status;
}

static me_status load(walk *w, const char *text, size_t length)
{
    yaml_parser_t parser;
    yaml_document_t document;
    me_status status = ME_OK;
    if (yaml_parser_initialize(&parser) == 0) {
        return fail_memory(w);
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
    if (yaml_parser_load(&parser, &document) == 0) {
        status = fail_syntax(w->where, &parser, w->diag);
    } else {
        w->document = &document;
        if (yaml_document_get_root_node(&document) != NULL) {
            status = visit(w, 1, 0);
        }
        yaml_document_delete(&document);
        w->document = NULL;
    }
    yaml_parser_delete(&parser);
    return status;
}

me_status me_yaml_parse(const char *where, const char *text, size_t length,
                        me_arena *arena, me_diag *diag, me_yaml *yaml_out)
{
    walk w = {.where = where, .arena = arena, .diag = diag};
    w.yaml.leaves =
        me_arena_alloc(arena, ME_YAML_LEAVES_MAX, sizeof *w.yaml.leaves);
    if (w.yaml.leaves == NULL) {
        return fail_memory(&w);
    }
    if (memchr(text, '\t', length) != NULL) {
        w.line = text;
        w.end = text + length;
    }
    me_status status = check_events(&w, text, length);
    if (status == ME_OK) {
        status = load(&w, text, length);
    }
    if (status == ME_OK) {
        *yaml_out = w.yaml;
    }
    return status;
}

/** Is the leaf one plain word of these? */
static bool is_word(const me_yaml_leaf *leaf, const char *const *words,
                    size_t n)
{
    return !leaf->is_list && leaf->is_plain &&
           me_is_one_of(leaf->values[0], strlen(leaf->values[0]), words, n);
}

bool me_yaml_is_null(const me_yaml_leaf *leaf)
{
    static const char *const words[] = {"",     "~",    "null",
                                        "Null", "NULL", "None"};
    return is_word(leaf, words, sizeof words / sizeof *words);
}

bool me_yaml_bool(const me_yaml_leaf *leaf, bool *value_out)
{
    static const char *const yes[] = {"true", "True", "TRUE", "yes", "Yes",
                                      "YES",  "on",   "On",   "ON"};
    static const char *const no[] = {"false", "False", "FALSE", "no", "No",
                                     "NO",    "off",   "Off",   "OFF"};
    *value_out = is_word(leaf, yes, sizeof yes / sizeof *yes);
    return *value_out || is_word(leaf, no, sizeof no / sizeof *no);
}

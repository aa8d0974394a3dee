/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/torchtitan/toml_private.h"

#include <string.h>

enum {
    VALUES_MAX = 4096,
    TABLES_MAX = 4096,
    PARTS_MAX = 16,
    INLINE_DEPTH_MAX = 8
};

me_status me_toml_fail(const me_toml_scanner *s, const char *what)
{
    return me_fail_at(s->diag, ME_ERR_SYNTAX, s->where, s->line, "%s", what);
}

me_status me_toml_fail_memory(const me_toml_scanner *s)
{
    return me_fail_at(s->diag, ME_ERR_NOMEM, s->where, 0,
                      "no memory to read it");
}

void me_toml_skip_blank(me_toml_scanner *s)
{
    s->at += strspn(s->at, " \t\r");
    if (*s->at == '#') {
        s->at += strcspn(s->at, "\n");
    }
}

void me_toml_skip_lines(me_toml_scanner *s)
{
    for (me_toml_skip_blank(s); *s->at == '\n'; me_toml_skip_blank(s)) {
        s->at++;
        s->line++;
    }
}

bool me_toml_is_bare(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/** The end of a line, or of the file. */
static me_status end_line(me_toml_scanner *s, const char *what)
{
    me_toml_skip_blank(s);
    if (*s->at != '\n' && *s->at != '\0') {
        return me_toml_fail(s, what);
    }
    return ME_OK;
}

/** The arena's copy of a text; NULL without memory. */
static const char *keep(const me_toml_scanner *s, const me_str *text)
{
    return me_str_status(text) != ME_OK
               ? NULL
               : me_arena_strdup(s->arena, me_str_text(text));
}

static me_toml_table *find_table(const me_toml *toml, const char *name)
{
    for (uint32_t i = 0; i < toml->n_tables; i++) {
        if (strcmp(toml->tables[i].name, name) == 0) {
            return &toml->tables[i];
        }
    }
    return NULL;
}

static me_status fail_stands(const me_toml_scanner *s, const char *name,
                             int line)
{
    return me_fail_at(s->diag, ME_ERR_SYNTAX, s->where, s->line,
                      "[%.60s] stands in line %d already", name, line);
}

/** A key with a value is no table. */
static me_status check_no_value(const me_toml_scanner *s, const char *name)
{
    const size_t length = strlen(name);
    for (uint32_t i = 0; i < s->toml->count; i++) {
        const me_toml_value *value = &s->toml->values[i];
        const size_t n = strlen(value->table);
        const char *key = name + n + (n > 0);
        if (n < length && strncmp(name, value->table, n) == 0 &&
            (n == 0 || name[n] == '.') && strcmp(key, value->key) == 0) {
            return me_fail_at(s->diag, ME_ERR_SYNTAX, s->where, s->line,
                              "[%.60s] is a key with a value in line %d", name,
                              value->line);
        }
    }
    return ME_OK;
}

/** May a table that stands already be what @p kind makes of it? */
static bool may_go_on(const me_toml_scanner *s, const me_toml_table *table,
                      me_toml_table_kind kind)
{
    switch (kind) {
    case ME_TOML_TABLE_WITHIN: return table->kind != ME_TOML_TABLE_INLINE;
    case ME_TOML_TABLE_DOTTED:
        return table->kind == ME_TOML_TABLE_WITHIN ||
               (table->kind == ME_TOML_TABLE_DOTTED &&
                table->section == s->section);
    case ME_TOML_TABLE_HEAD: return table->kind == ME_TOML_TABLE_WITHIN;
    case ME_TOML_TABLE_INLINE: break;
    }
    return false;
}

/** A table that the file names, in one way of @p kind. */
static me_status name_table(me_toml_scanner *s, const char *name,
                            me_toml_table_kind kind)
{
    me_toml *toml = s->toml;
    me_toml_table *table = find_table(toml, name);
    const me_status status = table == NULL ? check_no_value(s, name) : ME_OK;
    if (status != ME_OK) {
        return status;
    }
    if (table != NULL && !may_go_on(s, table, kind)) {
        return fail_stands(s, name, table->line);
    }
    if (table != NULL && kind == ME_TOML_TABLE_WITHIN) {
        return ME_OK;
    }
    if (table == NULL && toml->n_tables == TABLES_MAX) {
        return me_toml_fail(s, "over 4096 tables");
    }
    if (table == NULL) {
        table = &toml->tables[toml->n_tables++];
    }
    *table = (me_toml_table){
        .name = name, .kind = kind, .section = s->section, .line = s->line};
    return ME_OK;
}

/** A part of a name that has no dot in it, or could not be told from two parts. */
static me_status read_part(me_toml_scanner *s, me_str *part)
{
    me_toml_skip_blank(s);
    if (*s->at == '"' || *s->at == '\'') {
        if (s->at[1] == *s->at && s->at[2] == *s->at) {
            return me_toml_fail(s, "a name stands in one quote");
        }
        const me_status status = me_toml_read_quoted(s, part);
        const char *text = me_str_text(part);
        size_t length = 0;
        while (me_toml_is_bare(text[length])) {
            length++;
        }
        return status != ME_OK || (length > 0 && text[length] == '\0')
                   ? status
                   : me_toml_fail(s, "a name in quotes has letters, digits, _ "
                                     "and - as the others have");
    }
    const char *begin = s->at;
    while (me_toml_is_bare(*s->at)) {
        s->at++;
    }
    me_str_append_n(part, begin, (size_t)(s->at - begin));
    return ME_OK;
}

/** The parts of a dotted name: what stands before the last is a table within
 *  @p table, and named in the way of @p kind.
 *  @param table_out  what the last part stands in
 *  @param last_out   the last part; "": no name stands here */
static me_status read_name(me_toml_scanner *s, const char *table,
                           me_toml_table_kind kind, const char **table_out,
                           const char **last_out)
{
    *table_out = table;
    *last_out = "";
    me_status status = ME_OK;
    int n_parts = 0;
    for (bool is_last = false; status == ME_OK && !is_last;) {
        if (n_parts++ == PARTS_MAX) {
            return me_toml_fail(s, "a name has over 16 parts");
        }
        me_str part = {0};
        me_str whole = {0};
        status = read_part(s, &part);
        me_toml_skip_blank(s);
        is_last = *s->at != '.' || me_str_text(&part)[0] == '\0';
        me_str_printf(&whole, "%s%s%s", table, table[0] == '\0' ? "" : ".",
                      me_str_text(&part));
        const char *name = keep(s, is_last ? &part : &whole);
        me_str_fini(&part);
        me_str_fini(&whole);
        if (status == ME_OK && name == NULL) {
            return me_toml_fail_memory(s);
        }
        if (status == ME_OK && !is_last) {
            s->at++;
            status = name_table(s, name, kind);
            table = name;
            *table_out = table;
        } else if (status == ME_OK) {
            *last_out = name;
        }
    }
    return status;
}

/** @p last in @p table as one name; NULL without memory. */
static const char *join(const me_toml_scanner *s, const char *table,
                        const char *last)
{
    me_str whole = {0};
    me_str_printf(&whole, "%s%s%s", table, table[0] == '\0' ? "" : ".", last);
    const char *name = keep(s, &whole);
    me_str_fini(&whole);
    return name;
}

static me_status read_table(me_toml_scanner *s)
{
    s->at++;
    if (*s->at == '[') {
        return me_toml_fail(s, "[[…]], an array of tables, is not read: "
                               "torchtitan has no list of tables");
    }
    const char *table = NULL;
    const char *last = NULL;
    me_status status = read_name(s, "", ME_TOML_TABLE_WITHIN, &table, &last);
    if (status != ME_OK) {
        return status;
    }
    if (last[0] == '\0' || *s->at != ']') {
        return me_toml_fail(s, "a table is a name in brackets, as [training]");
    }
    s->at++;
    const char *name = join(s, table, last);
    if (name == NULL) {
        return me_toml_fail_memory(s);
    }
    s->table = name;
    s->section = ++s->n_sections;
    status = name_table(s, name, ME_TOML_TABLE_HEAD);
    return status != ME_OK
               ? status
               : end_line(s, "nothing may follow a table's name on its line");
}

/** A key has one value, and is no table. */
static me_status check_new(const me_toml_scanner *s, const char *table,
                           const char *key)
{
    for (uint32_t i = 0; i < s->toml->count; i++) {
        const me_toml_value *other = &s->toml->values[i];
        if (strcmp(other->key, key) == 0 && strcmp(other->table, table) == 0) {
            return me_fail_at(s->diag, ME_ERR_SYNTAX, s->where, s->line,
                              "%.60s of [%.60s] stands in line %d already", key,
                              table, other->line);
        }
    }
    const char *name = join(s, table, key);
    if (name == NULL) {
        return me_toml_fail_memory(s);
    }
    const me_toml_table *same = find_table(s->toml, name);
    if (same != NULL) {
        return fail_stands(s, name, same->line);
    }
    return s->toml->count == VALUES_MAX ? me_toml_fail(s, "over 4096 keys")
                                        : ME_OK;
}

static me_status read_plain(me_toml_scanner *s, me_toml_value *value)
{
    me_str text = {0};
    me_status status = me_toml_read_value(s, &value->type, &text);
    value->text = keep(s, &text);
    me_str_fini(&text);
    if (status == ME_OK && value->text == NULL) {
        status = me_toml_fail_memory(s);
    }
    if (status == ME_OK) {
        s->toml->values[s->toml->count++] = *value;
    }
    return status;
}

static me_status read_pair(me_toml_scanner *s);

/** `{a = 1, b = 2}`, on one line, without a comma at its end. */
// NOLINTNEXTLINE(misc-no-recursion): at most INLINE_DEPTH_MAX deep
static me_status read_pairs(me_toml_scanner *s)
{
    s->at++;
    s->at += strspn(s->at, " \t");
    if (*s->at == '}') {
        s->at++;
        return ME_OK;
    }
    for (;;) {
        s->at += strspn(s->at, " \t");
        const me_status status = read_pair(s);
        if (status != ME_OK) {
            return status;
        }
        s->at += strspn(s->at, " \t");
        if (*s->at == '}') {
            s->at++;
            return ME_OK;
        }
        if (*s->at != ',') {
            return me_toml_fail(s, "an inline table goes on with ',' or ends "
                                   "with '}', on its line");
        }
        s->at++;
    }
}

/** The pairs of @p name, whose keys stand in it as those behind its head would. */
// NOLINTNEXTLINE(misc-no-recursion): at most INLINE_DEPTH_MAX deep
static me_status read_inline(me_toml_scanner *s, const char *name)
{
    if (s->depth == INLINE_DEPTH_MAX) {
        return me_toml_fail(s, "inline tables are nested too deep");
    }
    const char *table = s->table;
    const int section = s->section;
    me_status status = name_table(s, name, ME_TOML_TABLE_INLINE);
    s->table = name;
    s->section = ++s->n_sections;
    s->depth++;
    if (status == ME_OK) {
        status = read_pairs(s);
    }
    s->depth--;
    s->table = table;
    s->section = section;
    return status;
}

/** `key = value`. */
// NOLINTNEXTLINE(misc-no-recursion): at most INLINE_DEPTH_MAX deep
static me_status read_pair(me_toml_scanner *s)
{
    me_toml_value value = {.line = s->line};
    me_status status =
        read_name(s, s->table, ME_TOML_TABLE_DOTTED, &value.table, &value.key);
    if (status != ME_OK) {
        return status;
    }
    if (value.key[0] == '\0' || *s->at != '=') {
        return me_toml_fail(s, "expected key = value, or a table in brackets");
    }
    s->at++;
    me_toml_skip_blank(s);
    status = check_new(s, value.table, value.key);
    if (status != ME_OK) {
        return status;
    }
    if (*s->at != '{') {
        return read_plain(s, &value);
    }
    const char *name = join(s, value.table, value.key);
    return name == NULL ? me_toml_fail_memory(s) : read_inline(s, name);
}

static me_status read_key(me_toml_scanner *s)
{
    const me_status status = read_pair(s);
    return status != ME_OK
               ? status
               : end_line(s, "nothing may follow a value on its line");
}

me_status me_toml_read(me_arena *arena, const char *where, const char *text,
                       size_t length, me_diag *diag, me_toml *toml_out)
{
    me_toml_scanner s = {.arena = arena,
                         .where = where,
                         .at = text,
                         .line = 1,
                         .table = "",
                         .toml = toml_out,
                         .diag = diag};
    *toml_out = (me_toml){0};
    toml_out->values =
        me_arena_alloc(arena, VALUES_MAX, sizeof *toml_out->values);
    toml_out->tables =
        me_arena_alloc(arena, TABLES_MAX, sizeof *toml_out->tables);
    if (toml_out->values == NULL || toml_out->tables == NULL) {
        return me_toml_fail_memory(&s);
    }
    if (strlen(text) != length) {
        return me_toml_fail(&s, "binary file: it has a NUL byte");
    }
    me_status status = ME_OK;
    me_toml_skip_lines(&s);
    while (status == ME_OK && *s.at != '\0') {
        status = *s.at == '[' ? read_table(&s) : read_key(&s);
        if (status == ME_OK) { // else it may stand behind the end
            me_toml_skip_lines(&s);
        }
    }
    return status;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/megatron/leaf_references.h"

#include "base/parse.h"
#include "base/size.h"
#include "base/str.h"
#include "config/megatron/leaf_arithmetic.h"
#include "config/megatron/leaf_variables.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    REFERENCES = 64, /**< of one to the next, and in one another */
    WHY_BYTES = 128
};

/** One leaf's reading. */
typedef struct references {
    const me_yaml *yaml;
    me_arena *arena;
    int n_read;       /**< references */
    me_status status; /**< ME_ERR_NOMEM or ME_OK */
    char
        why[WHY_BYTES]; /**< there is no value; empty: nothing is known of it */
} references;

/** NeMo registers multiply, its launcher the divide_… (launcher_scripts/main.py),
 * NeMo-Aligner int_div and subtract, SageMaker's recipes add. */
typedef uint64_t (*function)(uint64_t a, uint64_t b);

static uint64_t subtract(uint64_t a, uint64_t b)
{
    return a < b ? UINT64_MAX : a - b;
}

static uint64_t divide_floor(uint64_t a, uint64_t b)
{
    return b == 0 ? UINT64_MAX : a / b;
}

/** Where nothing is left: Python's quotient is no whole number then. */
static uint64_t divide(uint64_t a, uint64_t b)
{
    return b == 0 || a % b != 0 ? UINT64_MAX : a / b;
}

static const struct {
    const char *name;
    function make; /**< of two numbers; not valid (base/size.h): of none */
} functions[] = {
    {"multiply", me_size_mul},  {"add", me_size_add},
    {"subtract", subtract},     {"divide", divide},
    {"divide_ceil", me_div_up}, {"divide_floor", divide_floor},
    {"int_div", divide_floor},
};

/** The leaf at @p path; of those that are there twice the later. */
static const me_yaml_leaf *find_whole(const me_yaml *yaml, const char *path)
{
    const me_yaml_leaf *found = NULL;
    for (size_t i = 0; i < yaml->count; i++) {
        if (strcmp(yaml->leaves[i].path, path) == 0) {
            found = &yaml->leaves[i];
        }
    }
    return found;
}

/** Of `.key` one beside @p leaf, of each dot more one further up. */
static const me_yaml_leaf *
find_relative(const me_yaml *yaml, const me_yaml_leaf *leaf, const char *name)
{
    char path[2 * ME_YAML_PATH];
    size_t n = strlen(leaf->path);
    for (; *name == '.'; name++) {
        while (n > 0 && leaf->path[n - 1] != '.') {
            n--;
        }
        n -= n > 0 && name[1] == '.';
    }
    (void)snprintf(path, sizeof path, "%.*s%s", (int)n, leaf->path, name);
    return find_whole(yaml, path);
}

/** Of `${training.model.key}` in `training/job.yaml`: the launcher's files are
 *  put together under their groups, of which a file by itself has none. */
static const me_yaml_leaf *find_below_group(const me_yaml *yaml,
                                            const char *name)
{
    const size_t n = strcspn(name, ".");
    for (size_t i = 0; i < yaml->count; i++) {
        const char *path = yaml->leaves[i].path;
        if (strncmp(path, name, n) == 0 &&
            (path[n] == '.' || path[n] == '\0')) {
            return NULL; // a section of this file
        }
    }
    return name[n] == '.' ? find_whole(yaml, name + n + 1) : NULL;
}

/** The leaf that a name means: its whole path, the end of one, or a path below
 *  the group that the file lies in. */
static const me_yaml_leaf *find(const me_yaml *yaml, const me_yaml_leaf *leaf,
                                const char *name)
{
    if (name[0] == '.') {
        return find_relative(yaml, leaf, name);
    }
    const me_yaml_leaf *found = find_whole(yaml, name);
    for (size_t i = yaml->count; found == NULL && i-- > 0;) {
        if (me_leaf_ends(yaml->leaves[i].path, name)) {
            found = &yaml->leaves[i];
        }
    }
    return found != NULL ? found : find_below_group(yaml, name);
}

static const char *fail_memory(references *s)
{
    s->status = ME_ERR_NOMEM;
    return NULL;
}

/** Bytes of @p text before a byte of @p ends that stands in no braces. */
static size_t span(const char *text, const char *ends)
{
    size_t n = 0;
    for (int braces = 0; text[n] != '\0'; n++) {
        if (braces == 0 && strchr(ends, text[n]) != NULL) {
            return n;
        }
        braces += (text[n] == '{') - (text[n] == '}');
    }
    return n;
}

static const char *read_value(references *s, const me_yaml_leaf *leaf,
                              const char *value);

/** The whole number that an argument of a function stands for. */
static bool read_number(references *s, const me_yaml_leaf *leaf,
                        const char *argument, size_t length,
                        uint64_t *number_out)
{
    while (length > 0 && *argument == ' ') {
        argument++;
        length--;
    }
    while (length > 0 && argument[length - 1] == ' ') {
        length--;
    }
    char *text = me_arena_alloc(s->arena, length + 1, 1);
    if (text == NULL) {
        (void)fail_memory(s);
        return false;
    }
    memcpy(text, argument, length);
    const char *value = read_value(s, leaf, text);
    return value != NULL && me_parse_u64(value, number_out) == ME_OK;
}

/** What a function makes of its arguments, the first two before the third. */
static const char *call(references *s, const me_yaml_leaf *leaf,
                        const char *name, function make, const char *arguments)
{
    uint64_t result = 0;
    bool is_number = true;
    int n = 0;
    for (const char *at = arguments; is_number && at != NULL; n++) {
        uint64_t number = 0;
        const size_t length = span(at, ",");
        is_number = read_number(s, leaf, at, length, &number);
        result = n == 0 ? number : make(result, number);
        is_number = is_number && me_size_is_valid(result);
        at = at[length] == ',' ? at + length + 1 : NULL;
    }
    if (!is_number || n < 2) {
        if (s->why[0] == '\0') {
            (void)snprintf(s->why, sizeof s->why,
                           "${%.20s:...} makes no whole number of that", name);
        }
        return NULL;
    }
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, result);
    const char *copy = me_arena_strdup(s->arena, text);
    return copy != NULL ? copy : fail_memory(s);
}

/** What stands between quotes, if it does. */
static void unquote(char *text)
{
    const size_t n = strlen(text);
    if (n > 1 && (text[0] == '\'' || text[0] == '"') &&
        text[n - 1] == text[0]) {
        memmove(text, text + 1, n - 2);
        text[n - 2] = '\0';
    }
}

/** What Python's eval() makes of it, which NeMo's files register. */
static const char *evaluate(references *s, const me_yaml_leaf *leaf,
                            const char *argument)
{
    const char *value = read_value(s, leaf, argument);
    char *text = value == NULL ? NULL : me_arena_strdup(s->arena, value);
    me_str number = {0};
    if (text == NULL) {
        return value == NULL ? NULL : fail_memory(s);
    }
    unquote(text);
    const bool is_number = me_leaf_evaluate(text, &number);
    const char *copy = is_number && me_str_status(&number) == ME_OK
                           ? me_arena_strdup(s->arena, me_str_text(&number))
                           : NULL;
    if (!is_number) {
        (void)snprintf(s->why, sizeof s->why,
                       "${eval:%.60s} is no number that memest works out",
                       text);
    }
    me_str_fini(&number);
    return copy != NULL || !is_number ? copy : fail_memory(s);
}

/** A function's value, whose name ends at a colon. */
static const char *read_call(references *s, const me_yaml_leaf *leaf,
                             const char *inside)
{
    const size_t n = strcspn(inside, ":");
    if (strncmp(inside, "eval:", n + 1) == 0) {
        return evaluate(s, leaf, inside + n + 1);
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        const char *name = functions[i].name;
        if (strlen(name) == n && strncmp(inside, name, n) == 0) {
            return call(s, leaf, name, functions[i].make, inside + n + 1);
        }
    }
    (void)snprintf(s->why, sizeof s->why,
                   "${%.*s:...} is a function that memest does not know: give "
                   "what it makes",
                   (int)(n < 40 ? n : 40), inside);
    return NULL;
}

/** What stands between the braces. */
static const char *read_inside(references *s, const me_yaml_leaf *leaf,
                               char *inside)
{
    const char *other = NULL;
    const bool is_key = strchr(inside, ':') == NULL;
    const me_yaml_leaf *found = is_key ? find(s->yaml, leaf, inside) : NULL;
    if (found != NULL) {
        return found->n_values == 1 && !found->is_list
                   ? read_value(s, found, found->values[0])
                   : NULL;
    }
    if (me_leaf_names_variable(inside, &other)) {
        const char *variable = getenv(inside);
        const char *value = variable != NULL ? variable : other;
        return value == NULL ? NULL : read_value(s, leaf, value);
    }
    return is_key ? NULL : read_call(s, leaf, inside);
}

/** What `${…}` at @p text stands for. */
static const char *read_reference(references *s, const me_yaml_leaf *leaf,
                                  const char *text, size_t length)
{
    char *inside = me_arena_alloc(s->arena, length + 1, 1);
    if (inside == NULL) {
        return fail_memory(s);
    }
    memcpy(inside, text + 2, length);
    return read_inside(s, leaf, inside);
}

/** A text with references in it, put together. */
static const char *read_parts(references *s, const me_yaml_leaf *leaf,
                              const char *value)
{
    me_str text = {0};
    bool is_known = true;
    for (const char *at = value; is_known && *at != '\0';) {
        const char *next = strstr(at, "${");
        me_str_append_n(&text, at,
                        next == NULL ? strlen(at) : (size_t)(next - at));
        if (next == NULL) {
            break;
        }
        const size_t length = span(next + 2, "}");
        const char *part = next[2 + length] != '}' || s->n_read++ >= REFERENCES
                               ? NULL
                               : read_reference(s, leaf, next, length);
        is_known = part != NULL;
        me_str_append(&text, is_known ? part : "");
        at = next + 2 + length + (next[2 + length] == '}');
    }
    const char *copy = is_known && me_str_status(&text) == ME_OK
                           ? me_arena_strdup(s->arena, me_str_text(&text))
                           : NULL;
    me_str_fini(&text);
    return copy != NULL || !is_known ? copy : fail_memory(s);
}

/** @return NULL: it has no value, and s->why or s->status says more */
static const char *read_value(references *s, const me_yaml_leaf *leaf,
                              const char *value)
{
    const size_t length =
        strncmp(value, "${", 2) == 0 ? span(value + 2, "}") : 0;
    if (strstr(value, "${") == NULL) {
        return value;
    }
    if (length == 0 || value[2 + length] != '}' || value[3 + length] != '\0') {
        return read_parts(s, leaf, value);
    }
    return s->n_read++ >= REFERENCES ? NULL
                                     : read_reference(s, leaf, value, length);
}

me_status me_leaf_resolve(const me_yaml *yaml, const me_yaml_leaf *leaf,
                          bool is_text, me_arena *arena, const char **value_out,
                          me_diag *diag)
{
    references s = {.yaml = yaml, .arena = arena};
    const char *value = read_value(&s, leaf, leaf->values[0]);
    if (s.status != ME_OK) {
        return me_fail(diag, s.status, "no memory for a value");
    }
    if (value == NULL && !is_text) {
        return me_fail_at(
            diag, ME_ERR_CONFIG, leaf->where, leaf->line, "%.80s: %s",
            leaf->path,
            s.why[0] != '\0' ? s.why : "refers to nothing that is known here");
    }
    *value_out = value != NULL ? value : leaf->values[0];
    return ME_OK;
}

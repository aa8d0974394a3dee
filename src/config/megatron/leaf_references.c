/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/megatron/leaf_references.h"

#include "base/parse.h"
#include "base/size.h"
#include "config/megatron/leaf_flags.h"
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

/** The leaf that a name means: its whole path, or the end of one. */
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
    return found;
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

/** A function's value, whose name ends at a colon. */
static const char *read_call(references *s, const me_yaml_leaf *leaf,
                             const char *inside)
{
    const size_t n = strcspn(inside, ":");
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

/** @return NULL: it has no value, and s->why or s->status says more */
static const char *read_value(references *s, const me_yaml_leaf *leaf,
                              const char *value)
{
    if (strncmp(value, "${", 2) != 0) {
        return value;
    }
    const size_t length = span(value + 2, "}");
    if (s->n_read++ >= REFERENCES || value[2 + length] != '}' ||
        value[3 + length] != '\0') {
        return NULL;
    }
    char *inside = me_arena_alloc(s->arena, length + 1, 1);
    if (inside == NULL) {
        return fail_memory(s);
    }
    memcpy(inside, value + 2, length);
    return read_inside(s, leaf, inside);
}

me_status me_leaf_resolve(const me_yaml *yaml, const me_yaml_leaf *leaf,
                          me_arena *arena, const char **value_out,
                          me_diag *diag)
{
    references s = {.yaml = yaml, .arena = arena};
    const char *value = read_value(&s, leaf, leaf->values[0]);
    if (s.status != ME_OK) {
        return me_fail(diag, s.status, "no memory for a value");
    }
    if (value == NULL && !me_leaf_is_text(leaf)) {
        return me_fail_at(
            diag, ME_ERR_CONFIG, leaf->where, leaf->line, "%.80s: %s",
            leaf->path,
            s.why[0] != '\0' ? s.why : "refers to nothing that is known here");
    }
    *value_out = value != NULL ? value : leaf->values[0];
    return ME_OK;
}

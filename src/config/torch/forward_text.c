/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/torch/forward_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NAME_MAX_BYTES = 64,
    STATEMENTS_MAX = 32,
    DEPTH_MAX = 24,
    EXTENT_MAX = 1 << 28
};

/** A walk over the text. After the first failure every step does nothing. */
typedef struct parser {
    me_arena *arena;
    const me_forward_scope *scope;
    me_str *why;
    const char *at;
    int depth;
    me_status status;
    char variables[ME_FORWARD_VARIABLES][NAME_MAX_BYTES];
    uint32_t n_variables;
} parser;

/** The first failure speaks: what is wrong with @p word, and where. */
static void fail_at_word(parser *p, const char *what, const char *word)
{
    if (p->status == ME_OK) {
        me_str_printf(p->why, "%s%s at '%.30s'", what, word,
                      *p->at == '\0' ? "the end" : p->at);
        p->status = ME_ERR_CONFIG;
    }
}

static void fail(parser *p, const char *what)
{
    fail_at_word(p, what, "");
}

static void skip_blank(parser *p)
{
    p->at += strspn(p->at, " \t\r\n");
}

/** Is @p text next? Then it is read. */
static bool accept(parser *p, const char *text)
{
    skip_blank(p);
    const size_t length = strlen(text);
    if (p->status != ME_OK || strncmp(p->at, text, length) != 0) {
        return false;
    }
    p->at += length;
    return true;
}

static void expect(parser *p, const char *text)
{
    if (!accept(p, text)) {
        fail_at_word(p, "expected ", text);
    }
}

static bool is_name_byte(char c, bool is_first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (!is_first && c >= '0' && c <= '9');
}

/** A name, or nothing and false. `self.` before it is Python's habit. */
static bool read_name(parser *p, char *name_out)
{
    (void)accept(p, "self.");
    skip_blank(p);
    size_t n = 0;
    while (is_name_byte(p->at[n], n == 0)) {
        n++;
    }
    if (n == 0 || n >= NAME_MAX_BYTES || p->status != ME_OK) {
        return false;
    }
    memcpy(name_out, p->at, n);
    name_out[n] = '\0';
    p->at += n;
    return true;
}

static uint32_t read_number(parser *p)
{
    skip_blank(p);
    uint32_t value = 0;
    const char *begin = p->at;
    while (*p->at >= '0' && *p->at <= '9' && value < 100000) {
        value = value * 10 + (uint32_t)(*p->at - '0');
        p->at++;
    }
    if (p->at == begin) {
        fail(p, "expected a whole number");
    }
    return value;
}

static const me_expression *make(parser *p, me_expression expression)
{
    me_expression *e = me_arena_alloc(p->arena, 1, sizeof *e);
    if (e == NULL) {
        p->status = p->status == ME_OK ? ME_ERR_NOMEM : p->status;
        return NULL;
    }
    *e = expression;
    return e;
}

static int find_variable(const parser *p, const char *name)
{
    for (uint32_t i = 0; i < p->n_variables; i++) {
        if (strcmp(p->variables[i], name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static int find_child(const parser *p, const char *name)
{
    for (uint32_t i = 0; i < p->scope->n_children; i++) {
        if (strcmp(p->scope->children[i].name, name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static const me_expression *read_sum(parser *p);

/** `arange(x.size(1))`, behind the opening bracket. */
static const me_expression *read_arange(parser *p)
{
    char name[NAME_MAX_BYTES] = "";
    const int variable = read_name(p, name) ? find_variable(p, name) : -1;
    if (variable < 0) {
        fail(p, "expected a variable, as in arange(x.size(1))");
        return NULL;
    }
    const me_expression *x =
        make(p, (me_expression){.kind = ME_EXPRESSION_NAME,
                                .index = (uint32_t)variable});
    expect(p, ".size(");
    const uint32_t dim = read_number(p);
    expect(p, ")");
    expect(p, ")");
    return make(p, (me_expression){.kind = ME_EXPRESSION_ARANGE,
                                   .index = dim,
                                   .operands = {x}});
}

/** What can be called besides children and arange(). */
typedef struct function {
    const char *name;
    me_expression_kind kind;
    uint32_t n_operands;
    const char *number; /**< a last argument that is one; NULL: none */
} function;

static const function functions[] = {
    {"scaled_dot_product_attention", ME_EXPRESSION_ATTENTION, 3, "n_heads"},
    {"rotary_attention", ME_EXPRESSION_ROTARY_ATTENTION, 3, "head_dim"},
    {"grouped_rotary_attention", ME_EXPRESSION_GROUPED_ROTARY_ATTENTION, 3,
     "head_dim"},
    {"cross_entropy", ME_EXPRESSION_CROSS_ENTROPY, 2, NULL},
    {"relu", ME_EXPRESSION_RELU, 1, NULL},
};

/** `q, k, v, n_heads=12)` and the like, behind the bracket. */
static const me_expression *read_arguments(parser *p, const function *f)
{
    me_expression e = {.kind = f->kind};
    for (uint32_t i = 0; i < f->n_operands; i++) {
        if (i > 0) {
            expect(p, ",");
        }
        e.operands[i] = read_sum(p);
    }
    if (f->number != NULL) {
        expect(p, ",");
        expect(p, f->number);
        expect(p, "=");
        e.index = read_number(p);
        if (e.index == 0) {
            fail_at_word(p, "must be at least 1: ", f->number);
        }
    }
    expect(p, ")");
    return make(p, e);
}

static bool is_module(const me_layer_spec *layer)
{
    return layer->kind != ME_LAYER_PARAMETER && layer->kind != ME_LAYER_BUFFER;
}

/** A child; a function where no child has its name. */
static const me_expression *read_call(parser *p, const char *name)
{
    const int child = find_child(p, name);
    if (child >= 0 && is_module(&p->scope->children[child])) {
        const me_expression *argument = read_sum(p);
        expect(p, ")");
        return make(p, (me_expression){.kind = ME_EXPRESSION_CALL,
                                       .index = (uint32_t)child,
                                       .operands = {argument}});
    }
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        if (strcmp(functions[i].name, name) == 0) {
            return read_arguments(p, &functions[i]);
        }
    }
    if (strcmp(name, "arange") == 0) {
        return read_arange(p);
    }
    fail_at_word(p, "no module or function ", name);
    return NULL;
}

/** A variable, or a Parameter of the module. */
static const me_expression *read_variable(parser *p, const char *name)
{
    const int variable = find_variable(p, name);
    const int child = variable < 0 ? find_child(p, name) : -1;
    if (child >= 0 && p->scope->children[child].kind == ME_LAYER_PARAMETER) {
        return make(p, (me_expression){.kind = ME_EXPRESSION_PARAMETER,
                                       .index = (uint32_t)child});
    }
    if (variable < 0) {
        fail_at_word(p, "no variable ", name);
        return NULL;
    }
    return make(p, (me_expression){.kind = ME_EXPRESSION_NAME,
                                   .index = (uint32_t)variable});
}

static const me_expression *read_primary(parser *p)
{
    char name[NAME_MAX_BYTES] = "";
    if (accept(p, "(")) {
        const me_expression *inner = read_sum(p);
        expect(p, ")");
        return inner;
    }
    if (!read_name(p, name)) {
        fail(p, "expected a name");
        return NULL;
    }
    if (accept(p, "(")) {
        return read_call(p, name);
    }
    return read_variable(p, name);
}

/** Methods of a tensor. */
static const struct {
    const char *call;
    me_expression_kind kind;
    uint32_t index;
} methods[] = {
    {".float()", ME_EXPRESSION_CAST, ME_DTYPE_FLOAT32},
    {".bfloat16()", ME_EXPRESSION_CAST, ME_DTYPE_BFLOAT16},
    {".half()", ME_EXPRESSION_CAST, ME_DTYPE_FLOAT16},
    {".sum()", ME_EXPRESSION_SUM, 0},
    {".mean()", ME_EXPRESSION_MEAN, 0},
    {".mean(-1)", ME_EXPRESSION_MEAN_LAST, 0},
    {".rsqrt()", ME_EXPRESSION_RSQRT, 0},
};

/** `.type_as(x)`, behind the bracket. */
static const me_expression *read_type_as(parser *p, const me_expression *e)
{
    const me_expression *other = read_sum(p);
    expect(p, ")");
    return make(p, (me_expression){.kind = ME_EXPRESSION_TYPE_AS,
                                   .operands = {e, other}});
}

/** An extent, or -1 for what the others leave. */
static int64_t read_size(parser *p)
{
    skip_blank(p);
    char *end = NULL;
    const long long size = strtoll(p->at, &end, 10);
    if (end == p->at || size < -1 || size == 0 || size > EXTENT_MAX) {
        fail(p, "expected an extent from 1 to 268435456, or -1");
        return 1;
    }
    p->at = end;
    return size;
}

/** `.view(-1, 256)` and `.reshape(-1, 256)`, behind the bracket. */
static const me_expression *read_sizes(parser *p, me_expression_kind kind,
                                       const me_expression *e)
{
    me_expression view = {.kind = kind, .operands = {e}};
    bool has_rest = false;
    do {
        if (view.index == ME_EXPRESSION_SIZES) {
            fail(p, "more than 5 dimensions");
            return NULL;
        }
        const int64_t size = read_size(p);
        if (size < 0 && has_rest) {
            fail(p, "only one extent may be -1: another one");
        }
        has_rest = has_rest || size < 0;
        view.sizes[view.index++] = size;
    } while (accept(p, ","));
    expect(p, ")");
    return make(p, view);
}

/** One method of @p e, or NULL: none follows. */
static const me_expression *read_method(parser *p, const me_expression *e)
{
    if (accept(p, ".type_as(")) {
        return read_type_as(p, e);
    }
    if (accept(p, ".view(")) {
        return read_sizes(p, ME_EXPRESSION_VIEW, e);
    }
    if (accept(p, ".reshape(")) {
        return read_sizes(p, ME_EXPRESSION_RESHAPE, e);
    }
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        if (accept(p, methods[i].call)) {
            return make(p, (me_expression){.kind = methods[i].kind,
                                           .index = methods[i].index,
                                           .operands = {e}});
        }
    }
    return NULL;
}

static const me_expression *read_postfix(parser *p)
{
    const me_expression *e = read_primary(p);
    const me_expression *next = NULL;
    while ((next = read_method(p, e)) != NULL) {
        e = next;
    }
    if (p->status == ME_OK && *p->at == '.') {
        fail(p, "no such method (float, bfloat16, half, type_as, view, "
                "reshape, sum, mean, rsqrt)");
    }
    return e;
}

static const me_expression *read_power(parser *p)
{
    const me_expression *e = read_postfix(p);
    if (accept(p, "**")) {
        expect(p, "2");
        e = make(
            p, (me_expression){.kind = ME_EXPRESSION_SQUARE, .operands = {e}});
    }
    return e;
}

static const me_expression *read_product(parser *p)
{
    const me_expression *e = read_power(p);
    while (accept(p, "*")) {
        const me_expression *b = read_power(p);
        e = make(
            p, (me_expression){.kind = ME_EXPRESSION_MUL, .operands = {e, b}});
    }
    return e;
}

/** Digits, a point and an exponent: how large it is does not matter.
 *  @param is_floating_out  there is a point or an exponent */
static bool accept_number(parser *p, bool *is_floating_out)
{
    skip_blank(p);
    char *end = NULL;
    if (p->status != ME_OK || *p->at < '0' || *p->at > '9') {
        return false;
    }
    (void)strtod(p->at, &end);
    *is_floating_out = strcspn(p->at, ".eE") < (size_t)(end - p->at);
    p->at = end;
    return true;
}

// NOLINTNEXTLINE(misc-no-recursion): brackets nest, at most DEPTH_MAX deep
static const me_expression *read_sum(parser *p)
{
    if (++p->depth > DEPTH_MAX) {
        fail(p, "brackets are nested too deep");
    }
    const me_expression *e = p->status == ME_OK ? read_product(p) : NULL;
    while (p->status == ME_OK) {
        me_expression_kind kind = ME_EXPRESSION_ADD;
        bool is_floating = false;
        if (!accept(p, "+")) {
            if (!accept(p, "-")) {
                break;
            }
            kind = ME_EXPRESSION_SUB;
        } else if (accept_number(p, &is_floating)) {
            e = make(p, (me_expression){.kind = ME_EXPRESSION_ADD_NUMBER,
                                        .index = is_floating ? 1 : 0,
                                        .operands = {e}});
            continue;
        }
        const me_expression *b = read_product(p);
        e = make(p, (me_expression){.kind = kind, .operands = {e, b}});
    }
    p->depth--;
    return e;
}

static uint32_t add_variable(parser *p, const char *name)
{
    const int known = find_variable(p, name);
    if (known >= 0) {
        return (uint32_t)known;
    }
    if (p->n_variables == ME_FORWARD_VARIABLES) {
        fail(p, "more than 16 variables");
        return 0;
    }
    (void)snprintf(p->variables[p->n_variables], NAME_MAX_BYTES, "%s", name);
    return p->n_variables++;
}

/** `name = value`, or `return value`; of an expression a last `value` alone. */
static me_statement read_statement(parser *p)
{
    me_statement s = {.variable = ME_FORWARD_RETURNS};
    const char *begin = p->at;
    char name[NAME_MAX_BYTES] = "";
    const bool returns = accept(p, "return ");
    if (!returns && read_name(p, name) && accept(p, "=")) {
        s.value = read_sum(p);
        s.variable = add_variable(p, name);
        return s;
    }
    if (!returns && p->scope->must_return) {
        p->at = begin;
        fail(p, "without `return` a forward gives None: expected `name = …;` "
                "or `return …`");
        return s;
    }
    if (name[0] != '\0') {
        p->at = begin;
    }
    s.value = read_sum(p);
    return s;
}

me_status me_forward_parse(me_arena *arena, const char *text,
                           const me_forward_scope *scope, me_str *why,
                           me_forward *forward_out)
{
    parser p = {.arena = arena, .scope = scope, .why = why, .at = text};
    me_forward f = {.text = me_arena_strdup(arena, text)};
    f.statements = me_arena_alloc(arena, STATEMENTS_MAX, sizeof *f.statements);
    if (f.text == NULL || f.statements == NULL) {
        return ME_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < scope->n_parameters; i++) {
        (void)add_variable(&p, scope->parameters[i]);
    }
    bool has_returned = false;
    while (p.status == ME_OK && !has_returned) {
        if (f.n_statements == STATEMENTS_MAX) {
            fail(&p, "more than 32 statements");
            break;
        }
        me_statement s = read_statement(&p);
        has_returned = s.variable == ME_FORWARD_RETURNS;
        f.statements[f.n_statements++] = s;
        if (!accept(&p, ";") && !has_returned) {
            fail(&p, "the last statement must return a value: expected ';'");
        }
    }
    skip_blank(&p);
    if (*p.at != '\0') {
        fail(&p, "nothing may follow what is returned:");
    }
    f.n_variables = p.n_variables;
    *forward_out = f;
    return p.status;
}

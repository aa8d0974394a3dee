/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/layout.h"

#include "base/alloc.h"

#include <stdbool.h>
#include <string.h>

enum {
    SYMBOLS_MAX = 1 << 20 /**< of a layout with its repetitions written out */
};

/** A walk through a text. The first counts, the second fills in. */
typedef struct walk {
    const char *text;
    size_t at;
    me_diag *diag;
    int32_t n_symbols;
    int32_t n_bars;
    int32_t n_layers;
    int32_t n_embeddings;
    int32_t n_losses;
    int32_t n_mtp_layers;
    int32_t mtp_stage; /**< of all m */
    char first;        /**< of E, t, m and L; 0: none yet */
    char last;
    int32_t *first_layer; /**< NULL: count only */
} walk;

/** The character at the cursor, which steps over commas. */
static char peek(walk *w)
{
    while (w->text[w->at] == ',') {
        w->at++;
    }
    return w->text[w->at];
}

static int place(const walk *w)
{
    return (int)w->at + 1;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static me_status fail_symbol(walk *w, char c)
{
    switch (c) {
    case '*':
        return me_fail(w->diag, ME_ERR_CONFIG,
                       "pipeline layout: * at character %d has nothing to "
                       "repeat: write x*n or (...)*n",
                       place(w));
    case '(':
        return me_fail(w->diag, ME_ERR_CONFIG,
                       "pipeline layout: ( at character %d is inside of "
                       "another group: Megatron-LM's groups don't nest, write "
                       "one of them out",
                       place(w));
    case ')':
        return me_fail(w->diag, ME_ERR_CONFIG,
                       "pipeline layout: ) at character %d has no ( and "
                       "something to repeat before it",
                       place(w));
    default: break;
    }
    char shown[16] = {c, '\0'};
    if (c < ' ' || c > '~') {
        memcpy(shown, "a byte", sizeof "a byte");
    }
    return me_fail(w->diag, ME_ERR_CONFIG,
                   "pipeline layout: %s at character %d is not known: E, t, m, "
                   "L and | are, and x*n and (...)*n",
                   shown, place(w));
}

/** The number behind a `*`, which the cursor is at. */
static me_status read_count(walk *w, int32_t *count_out)
{
    w->at++;
    const int begin = place(w);
    int32_t count = 0;
    if (!is_digit(peek(w))) {
        return me_fail(w->diag, ME_ERR_CONFIG,
                       "pipeline layout: a number must follow the * at "
                       "character %d",
                       begin - 1);
    }
    while (is_digit(peek(w))) {
        count = count * 10 + (w->text[w->at] - '0');
        w->at++;
        if (count > SYMBOLS_MAX) {
            return me_fail(w->diag, ME_ERR_CONFIG,
                           "pipeline layout: the number at character %d is "
                           "over %d",
                           begin, SYMBOLS_MAX);
        }
    }
    if (peek(w) == '*') {
        return me_fail(w->diag, ME_ERR_CONFIG,
                       "pipeline layout: * at character %d repeats what is "
                       "repeated already",
                       place(w));
    }
    *count_out = count;
    return ME_OK;
}

static me_status add_symbols(walk *w, char symbol, int32_t count)
{
    if (count > SYMBOLS_MAX - w->n_symbols) {
        return me_fail(w->diag, ME_ERR_CONFIG,
                       "pipeline layout: more than %d layers and stages up to "
                       "character %d",
                       SYMBOLS_MAX, place(w) - 1);
    }
    w->n_symbols += count;
    if (symbol == '|') {
        for (int32_t i = 0; i < count && w->first_layer != NULL; i++) {
            w->first_layer[w->n_bars + 1 + i] = w->n_layers;
        }
        w->n_bars += count;
        return ME_OK;
    }
    if (symbol == 't' && count > 0 && w->n_mtp_layers > 0) {
        return me_fail(w->diag, ME_ERR_CONFIG,
                       "pipeline layout: t at character %d comes after m: "
                       "decoder layers must come first",
                       place(w) - 1);
    }
    if (symbol == 'm' && count > 0) {
        if (w->n_mtp_layers > 0 && w->mtp_stage != w->n_bars) {
            return me_fail(w->diag, ME_ERR_CONFIG,
                           "pipeline layout: m at character %d is in another "
                           "stage than the first m: one stage must have all",
                           place(w) - 1);
        }
        w->mtp_stage = w->n_bars;
    }
    w->n_mtp_layers += symbol == 'm' ? count : 0;
    w->n_layers += symbol == 't' ? count : 0;
    w->n_embeddings += symbol == 'E' ? count : 0;
    w->n_losses += symbol == 'L' ? count : 0;
    if (count > 0) {
        if (w->first == '\0') {
            w->first = symbol;
        }
        w->last = symbol;
    }
    return ME_OK;
}

/** `x` or `x*n`. */
static me_status read_item(walk *w)
{
    const char symbol = peek(w);
    if (symbol == '\0' || strchr("EtmL|", symbol) == NULL) {
        return fail_symbol(w, symbol);
    }
    w->at++;
    int32_t count = 1;
    if (peek(w) == '*') {
        const me_status status = read_count(w, &count);
        if (status != ME_OK) {
            return status;
        }
    }
    return add_symbols(w, symbol, count);
}

/** The items of a group, from @p begin up to its `)`. */
static me_status repeat(walk *w, size_t begin, int32_t times)
{
    const size_t after = w->at;
    me_status status = ME_OK;
    for (int32_t i = 0; status == ME_OK && i < times; i++) {
        const int32_t before = w->n_symbols;
        w->at = begin;
        while (status == ME_OK && peek(w) != ')') {
            status = read_item(w);
        }
        if (w->n_symbols == before) {
            break; // everything in it is repeated 0 times
        }
    }
    w->at = after;
    return status;
}

/** `(…)*n`. */
static me_status read_group(walk *w)
{
    const int opened = place(w);
    w->at++;
    const size_t begin = w->at;
    walk scan = *w; // what it counts is not kept
    scan.first_layer = NULL;
    scan.n_symbols = 0;
    while (peek(&scan) != ')') {
        if (peek(&scan) == '\0') {
            return me_fail(w->diag, ME_ERR_CONFIG,
                           "pipeline layout: ( at character %d is not closed",
                           opened);
        }
        const me_status status = read_item(&scan);
        if (status != ME_OK) {
            return status;
        }
    }
    const size_t end = scan.at;
    if (peek(w) == ')') {
        return fail_symbol(w, ')');
    }
    w->at = end + 1;
    if (peek(w) != '*') {
        return me_fail(w->diag, ME_ERR_CONFIG,
                       "pipeline layout: *n must follow the group that ends "
                       "at character %d",
                       (int)end + 1);
    }
    int32_t times = 0;
    const me_status status = read_count(w, &times);
    return status == ME_OK ? repeat(w, begin, times) : status;
}

static me_status read_all(walk *w)
{
    me_status status = ME_OK;
    while (status == ME_OK && peek(w) != '\0') {
        status = peek(w) == '(' ? read_group(w) : read_item(w);
    }
    return status;
}

static me_status check_ends(const walk *w)
{
    if (w->n_embeddings != 1 || w->n_losses != 1) {
        return me_fail(w->diag, ME_ERR_CONFIG,
                       "pipeline layout: %d E and %d L: the embedding and the "
                       "loss must be there once each",
                       w->n_embeddings, w->n_losses);
    }
    if (w->first != 'E' || w->last != 'L') {
        return me_fail(w->diag, ME_ERR_CONFIG,
                       "pipeline layout: begins with %c and ends with %c: E "
                       "must be first and L last",
                       w->first, w->last);
    }
    return ME_OK;
}

me_status me_layout_init(const char *text, me_diag *diag, me_layout *layout_out)
{
    *layout_out = (me_layout){.n_stages = 0};
    walk count = {.text = text, .diag = diag};
    me_status status = read_all(&count);
    if (status == ME_OK) {
        status = check_ends(&count);
    }
    if (status != ME_OK) {
        return status;
    }
    const int32_t n_stages = count.n_bars + 1;
    int32_t *first_layer =
        me_alloc((size_t)n_stages + 1, sizeof *first_layer, "layout.stages");
    if (first_layer == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for the layout");
    }
    walk fill = {.text = text, .diag = diag, .first_layer = first_layer};
    status = read_all(&fill);
    first_layer[n_stages] = fill.n_layers;
    *layout_out =
        (me_layout){.n_stages = n_stages,
                    .first_layer = first_layer,
                    .n_mtp_layers = fill.n_mtp_layers,
                    .mtp_stage = fill.n_mtp_layers > 0 ? fill.mtp_stage : -1};
    return status;
}

void me_layout_fini(me_layout *layout)
{
    me_free(layout->first_layer);
    *layout = (me_layout){.n_stages = 0};
}

int32_t me_layout_n_layers(const me_layout *layout)
{
    return layout->first_layer[layout->n_stages];
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/tokenizer/token_files.h"

#include "base/alloc.h"
#include "base/input.h"
#include "base/json_object.h"
#include "base/parse.h"

#include <inttypes.h>
#include <string.h>

void me_token_set_fini(me_token_set *set)
{
    me_free(set->bits);
    *set = (me_token_set){0};
}

uint64_t me_token_set_count(const me_token_set *set)
{
    uint64_t count = set->n_tokens;
    for (size_t i = 0; i < set->n_specials; i++) {
        count += !set->has_special[i];
    }
    return count;
}

/** One file that is being read. */
typedef struct reading {
    me_token_set *set;
    const char *path;
    me_json_reader *json; /**< NULL: it is none */
    uint64_t next;        /**< number of a list's next item */
} reading;

me_status me_token_set_add(me_token_set *set, const char *path, uint64_t id,
                           me_diag *diag)
{
    if (id >= ME_TOKEN_ID_MAX) {
        return me_fail(diag, ME_ERR_SYNTAX,
                       "%s: a token has the number %" PRIu64
                       ", must be below %d",
                       path, id, ME_TOKEN_ID_MAX);
    }
    const size_t word = (size_t)(id / 64);
    if (word >= set->n_words) {
        const size_t n_words = 2 * word + 1024;
        uint64_t *bits = me_realloc(set->bits, n_words, sizeof *bits, "tokens");
        if (bits == NULL) {
            return me_fail(diag, ME_ERR_NOMEM, "%s: no memory for its tokens",
                           path);
        }
        memset(bits + set->n_words, 0, (n_words - set->n_words) * sizeof *bits);
        set->bits = bits;
        set->n_words = n_words;
    }
    const uint64_t bit = UINT64_C(1) << (id % 64);
    set->n_tokens += (set->bits[word] & bit) == 0;
    set->bits[word] |= bit;
    return ME_OK;
}

void me_token_set_see(me_token_set *set, const char *text, size_t length)
{
    for (size_t i = 0; i < set->n_specials; i++) {
        set->has_special[i] |= strlen(set->specials[i]) == length &&
                               memcmp(set->specials[i], text, length) == 0;
    }
}

static me_status fail_json(const reading *r, me_diag *diag, const char *what)
{
    return me_fail(diag, ME_ERR_SYNTAX, "%s: %s: is this a tokenizer's file?",
                   r->path, what);
}

/** `{"token": 5, …}`, after its first token. */
static me_status read_numbers(reading *r, me_diag *diag)
{
    me_json_token token = {.kind = ME_JSON_NULL};
    me_status status = me_json_next(r->json, diag, &token);
    while (status == ME_OK && token.kind == ME_JSON_KEY) {
        uint64_t id = 0;
        me_token_set_see(r->set, token.text, strlen(token.text));
        status = me_json_next(r->json, diag, &token);
        if (status == ME_OK && !me_json_whole_number(&token, &id)) {
            return fail_json(r, diag, "a token has no whole number");
        }
        if (status == ME_OK) {
            status = me_token_set_add(r->set, r->path, id, diag);
        }
        if (status == ME_OK) {
            status = me_json_next(r->json, diag, &token);
        }
    }
    return status;
}

/** `["token", score]`, whose number is its place. */
static me_status read_scored(void *self, me_diag *diag,
                             const me_json_token *token)
{
    reading *r = self;
    me_status status = me_token_set_add(r->set, r->path, r->next++, diag);
    me_json_token text = {.kind = ME_JSON_NULL};
    if (status != ME_OK || token->kind != ME_JSON_ARRAY) {
        return status != ME_OK ? status : me_json_skip(r->json, diag, token);
    }
    status = me_json_next(r->json, diag, &text);
    if (status == ME_OK && text.kind == ME_JSON_STRING) {
        me_token_set_see(r->set, text.text, strlen(text.text));
    }
    while (status == ME_OK && text.kind != ME_JSON_ARRAY_END) {
        status = me_json_skip(r->json, diag, &text);
        if (status == ME_OK) {
            status = me_json_next(r->json, diag, &text);
        }
    }
    return status;
}

static me_status read_vocab(void *self, me_diag *diag,
                            const me_json_token *token)
{
    reading *r = self;
    if (token->kind == ME_JSON_OBJECT) {
        return read_numbers(r, diag);
    }
    if (token->kind == ME_JSON_ARRAY) {
        return me_json_read_list(r->json, diag, read_scored, r);
    }
    return fail_json(r, diag, "\"vocab\" is neither an object nor a list");
}

static me_status read_model(void *self, me_diag *diag,
                            const me_json_token *token)
{
    reading *r = self;
    me_json_field fields[] = {{.key = "vocab", .read = read_vocab}};
    if (token->kind != ME_JSON_OBJECT) {
        return fail_json(r, diag, "\"model\" is no object");
    }
    return me_json_read_object(r->json, diag, fields, 1, r);
}

static me_status read_content(void *self, me_diag *diag,
                              const me_json_token *token)
{
    reading *r = self;
    if (token->kind == ME_JSON_STRING) {
        me_token_set_see(r->set, token->text, strlen(token->text));
        return ME_OK;
    }
    return me_json_skip(r->json, diag, token);
}

static me_status read_added(void *self, me_diag *diag,
                            const me_json_token *token)
{
    reading *r = self;
    me_json_field fields[] = {{.key = "id"},
                              {.key = "content", .read = read_content}};
    if (token->kind != ME_JSON_OBJECT) {
        return fail_json(r, diag, "an added token is no object");
    }
    const me_status status = me_json_read_object(r->json, diag, fields, 2, r);
    if (status == ME_OK && !fields[0].is_number) {
        return fail_json(r, diag, "an added token has no \"id\"");
    }
    return status == ME_OK
               ? me_token_set_add(r->set, r->path, fields[0].number, diag)
               : status;
}

static me_status read_added_list(void *self, me_diag *diag,
                                 const me_json_token *token)
{
    reading *r = self;
    if (token->kind != ME_JSON_ARRAY) {
        return fail_json(r, diag, "\"added_tokens\" is no list");
    }
    return r->set->is_base ? me_json_skip(r->json, diag, token)
                           : me_json_read_list(r->json, diag, read_added, r);
}

/** `{"5": {"content": …}, …}` */
static me_status read_decoder(void *self, me_diag *diag,
                              const me_json_token *token)
{
    reading *r = self;
    me_json_token next = {.kind = ME_JSON_NULL};
    if (token->kind != ME_JSON_OBJECT) {
        return fail_json(r, diag, "\"added_tokens_decoder\" is no object");
    }
    me_status status = me_json_next(r->json, diag, &next);
    while (status == ME_OK && next.kind == ME_JSON_KEY) {
        uint64_t id = 0;
        me_json_field content = {.key = "content", .read = read_content};
        if (me_parse_u64(next.text, &id) != ME_OK) {
            return fail_json(r, diag,
                             "a key of \"added_tokens_decoder\" is no "
                             "number");
        }
        status = me_token_set_add(r->set, r->path, id, diag);
        if (status == ME_OK) {
            status = me_json_next(r->json, diag, &next);
        }
        if (status == ME_OK) {
            status = next.kind == ME_JSON_OBJECT
                         ? me_json_read_object(r->json, diag, &content, 1, r)
                         : me_json_skip(r->json, diag, &next);
        }
        if (status == ME_OK) {
            status = me_json_next(r->json, diag, &next);
        }
    }
    return status;
}

/** Open @p path as JSON whose first token is that of an object. */
static me_status read_json(me_token_set *set, const char *path, me_diag *diag,
                           me_status (*read)(reading *r, me_diag *diag))
{
    FILE *file = NULL;
    me_status status = me_input_open(path, diag, &file);
    if (status != ME_OK) {
        return status;
    }
    reading r = {.set = set,
                 .path = path,
                 .json = me_json_reader_create("", 0, file, path)};
    me_json_token token = {.kind = ME_JSON_NULL};
    status = r.json == NULL ? me_fail(diag, ME_ERR_NOMEM, "%s: no memory", path)
                            : me_json_next(r.json, diag, &token);
    if (status == ME_OK && token.kind != ME_JSON_OBJECT) {
        status = fail_json(&r, diag, "it is no object");
    }
    if (status == ME_OK) {
        status = read(&r, diag);
    }
    me_json_reader_destroy(r.json);
    (void)fclose(file);
    return status;
}

static me_status read_tokenizer(reading *r, me_diag *diag)
{
    me_json_field fields[] = {
        {.key = "added_tokens", .read = read_added_list},
        {.key = "model", .read = read_model},
    };
    const me_status status = me_json_read_object(r->json, diag, fields, 2, r);
    return status == ME_OK && !fields[1].is_there
               ? fail_json(r, diag, "it has no \"model\"")
               : status;
}

static me_status read_tokenizer_config(reading *r, me_diag *diag)
{
    me_json_field field = {.key = "added_tokens_decoder", .read = read_decoder};
    const me_status status = me_json_read_object(r->json, diag, &field, 1, r);
    r->set->is_bare &= !field.is_there;
    return status;
}

me_status me_tokens_of_tokenizer_json(me_token_set *set, const char *path,
                                      me_diag *diag)
{
    return read_json(set, path, diag, read_tokenizer);
}

me_status me_tokens_of_vocab_json(me_token_set *set, const char *path,
                                  me_diag *diag)
{
    return read_json(set, path, diag, read_numbers);
}

me_status me_tokens_of_tokenizer_config(me_token_set *set, const char *path,
                                        me_diag *diag)
{
    return read_json(set, path, diag, read_tokenizer_config);
}

me_status me_tokens_of_lines(me_token_set *set, const char *path, me_diag *diag)
{
    FILE *file = NULL;
    me_status status = me_input_open(path, diag, &file);
    if (status != ME_OK) {
        return status;
    }
    uint64_t id = 0;
    bool is_open = false; // a line without its end
    for (int c = getc(file); c != EOF && status == ME_OK; c = getc(file)) {
        is_open = c != '\n';
        if (!is_open) {
            status = me_token_set_add(set, path, id++, diag);
        }
    }
    if (status == ME_OK && is_open) {
        status = me_token_set_add(set, path, id, diag);
    }
    if (status == ME_OK && ferror(file) != 0) {
        status = me_fail(diag, ME_ERR_IO, "%s: cannot be read", path);
    }
    (void)fclose(file);
    return status;
}

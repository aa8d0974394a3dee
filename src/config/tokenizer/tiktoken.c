/* SPDX-License-Identifier: BSD-3-Clause */
/* What tiktoken reads, and Mistral's tekken on top of it. */
#include "base/input.h"
#include "base/json_object.h"
#include "base/parse.h"
#include "config/tokenizer/token_files.h"

#include <inttypes.h>
#include <string.h>

enum {
    LINE_BYTES = 4096
};

/** Vocabularies by their ranks, and how many special tokens are added to them:
 *  llama3/tokenizer.py, llama4/tokenizer.py of Meta's llama-models
 *  (num_reserved_special_tokens), tokenization_qwen.py of Qwen-7B
 *  (SPECIAL_TOKENS), tokenization_kimi.py of Kimi-K2. */
static const struct {
    uint64_t ranks;
    uint64_t specials;
} known[] = {
    {128000, 256},
    {200000, 2048},
    {151643, 208},
    {163584, 256},
};

/** `BASE64 RANK`. @return false: it is no such line */
static bool read_line(const char *line, uint64_t *rank_out)
{
    static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "abcdefghijklmnopqrstuvwxyz0123456789+/=";
    char digits[24];
    const size_t n = strspn(line, base64);
    const char *rank = line + n + 1;
    if (n == 0 || line[n] != ' ') {
        return false;
    }
    const size_t length = strcspn(rank, "\r\n");
    if (length >= sizeof digits) {
        return false;
    }
    memcpy(digits, rank, length);
    digits[length] = '\0';
    return me_parse_u64(digits, rank_out) == ME_OK;
}

static me_status read_lines(me_token_set *set, const char *path, FILE *file,
                            uint64_t *n_out, me_diag *diag)
{
    char line[LINE_BYTES];
    me_status status = ME_OK;
    int number = 0;
    while (status == ME_OK && fgets(line, sizeof line, file) != NULL) {
        uint64_t rank = 0;
        number++;
        if (line[strspn(line, "\r\n")] == '\0') {
            continue;
        }
        if (!read_line(line, &rank)) {
            return me_fail_at(diag, ME_ERR_SYNTAX, path, number,
                              "no line of tiktoken's, which has a token in "
                              "base64 and its rank");
        }
        status = me_token_set_add(set, path, rank, diag);
        (*n_out)++;
    }
    return status == ME_OK && ferror(file) != 0
               ? me_fail(diag, ME_ERR_IO, "%s: cannot be read", path)
               : status;
}

me_status me_tokens_of_ranks(me_token_set *set, const char *path, me_diag *diag)
{
    FILE *file = NULL;
    uint64_t ranks = 0;
    uint64_t specials = 0;
    me_status status = me_input_open(path, diag, &file);
    if (status != ME_OK) {
        return status;
    }
    status = read_lines(set, path, file, &ranks, diag);
    (void)fclose(file);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        specials = known[i].ranks == ranks ? known[i].specials : specials;
    }
    set->is_bare = specials == 0;
    for (uint64_t i = 0; status == ME_OK && i < specials; i++) {
        status = me_token_set_add(set, path, ranks + i, diag);
    }
    return status;
}

/** Does the file begin with a line of tiktoken's? */
static me_status look(const char *path, me_diag *diag, bool *is_ranks_out)
{
    FILE *file = NULL;
    char line[LINE_BYTES];
    uint64_t rank = 0;
    const me_status status = me_input_open(path, diag, &file);
    if (status != ME_OK) {
        return status;
    }
    *is_ranks_out =
        fgets(line, sizeof line, file) != NULL && read_line(line, &rank);
    (void)fclose(file);
    return ME_OK;
}

me_status me_tokens_of_model(me_token_set *set, const char *path, me_diag *diag)
{
    bool is_ranks = false;
    const me_status status = look(path, diag, &is_ranks);
    return status != ME_OK ? status
           : is_ranks      ? me_tokens_of_ranks(set, path, diag)
                           : me_tokens_of_sentencepiece(set, path, diag);
}

/** A tekken file that is being read. */
typedef struct tekken {
    me_json_reader *json;
    uint64_t tokens;
} tekken;

static me_status read_config(void *self, me_diag *diag,
                             const me_json_token *token)
{
    tekken *t = self;
    me_json_field field = {.key = "default_vocab_size"};
    if (token->kind != ME_JSON_OBJECT) {
        return me_json_skip(t->json, diag, token);
    }
    const me_status status =
        me_json_read_object(t->json, diag, &field, 1, NULL);
    t->tokens = field.is_number ? field.number : 0;
    return status;
}

me_status me_tokens_of_tekken(me_token_set *set, const char *path,
                              me_diag *diag)
{
    FILE *file = NULL;
    tekken t = {.tokens = 0};
    me_json_token token = {.kind = ME_JSON_NULL};
    me_json_field field = {.key = "config", .read = read_config};
    me_status status = me_input_open(path, diag, &file);
    if (status != ME_OK) {
        return status;
    }
    t.json = me_json_reader_create("", 0, file, path);
    status = t.json == NULL ? me_fail(diag, ME_ERR_NOMEM, "%s: no memory", path)
                            : me_json_next(t.json, diag, &token);
    if (status == ME_OK && token.kind == ME_JSON_OBJECT) {
        status = me_json_read_object(t.json, diag, &field, 1, &t);
    }
    me_json_reader_destroy(t.json);
    (void)fclose(file);
    if (status == ME_OK && (t.tokens == 0 || t.tokens > ME_TOKEN_ID_MAX)) {
        return me_fail(diag, ME_ERR_SYNTAX,
                       "%s: its config has no default_vocab_size: is this "
                       "tekken's file?",
                       path);
    }
    for (uint64_t i = 0; status == ME_OK && i < t.tokens; i++) {
        status = me_token_set_add(set, path, i, diag);
    }
    return status;
}

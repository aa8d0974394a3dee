/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/argument_files.h"

#include "base/input.h"
#include "config/config_private.h"

#include <string.h>

enum {
    WORDS_MAX = 20000,
    DEPTH_MAX = 16
};

static const char blanks[] = " \t\r";

/** The words so far. */
typedef struct expansion {
    me_config *config;
    me_diag *diag;
    const char **words;
    int count;
    int depth; /* of files that name files */
} expansion;

static me_status fail_memory(const expansion *e)
{
    return me_fail(e->diag, ME_ERR_NOMEM, "no memory for arguments");
}

static me_status add(expansion *e, const char *word)
{
    if (e->count == WORDS_MAX) {
        return me_fail(e->diag, ME_ERR_CONFIG,
                       "arguments of more than %d words", WORDS_MAX);
    }
    e->words[e->count++] = word;
    return word != NULL ? ME_OK : fail_memory(e);
}

static me_status add_file(expansion *e, const char *path);

/** A line's word, which may name a file as the command's own may. */
// NOLINTNEXTLINE(misc-no-recursion): files name files, up to a depth
static me_status add_word(expansion *e, const char *word)
{
    return word[0] == '@' && word[1] != '\0' ? add_file(e, word + 1)
                                             : add(e, word);
}

/** The next word of a line; @p line goes behind it. A quote ends where it began. */
static char *take_word(char **line)
{
    char *at = *line + strspn(*line, blanks);
    char *word = at;
    char *to = at;
    char quote = '\0';
    for (; *at != '\0' && (quote != '\0' || strchr(blanks, *at) == NULL);
         at++) {
        if (quote == '\0' && (*at == '"' || *at == '\'')) {
            quote = *at;
        } else if (*at == quote) {
            quote = '\0';
        } else {
            *to++ = *at;
        }
    }
    *line = *at == '\0' ? at : at + 1;
    *to = '\0';
    return word;
}

// NOLINTNEXTLINE(misc-no-recursion): files name files, up to a depth
static me_status add_line(expansion *e, char *line)
{
    me_status status = ME_OK;
    line += strspn(line, blanks);
    if (line[0] == '\0' || line[0] == '#') {
        return ME_OK;
    }
    if (line[0] != '-') {
        for (size_t n = strlen(line); strchr(blanks, line[n - 1]) != NULL;
             n--) {
            line[n - 1] = '\0';
        }
        return add_word(e, line);
    }
    // a comment may stand behind a flag's words
    for (line += strspn(line, blanks);
         status == ME_OK && line[0] != '\0' && line[0] != '#';
         line += strspn(line, blanks)) {
        status = add(e, take_word(&line));
    }
    return status;
}

// NOLINTNEXTLINE(misc-no-recursion): files name files, up to a depth
static me_status add_file(expansion *e, const char *path)
{
    me_str bytes = {0};
    if (e->depth == DEPTH_MAX) {
        return me_fail(e->diag, ME_ERR_CONFIG,
                       "@%.200s: files of arguments that name each other, more "
                       "than %d deep",
                       path, DEPTH_MAX);
    }
    e->depth++;
    me_status status = me_input_read(path, ME_INPUT_MAX_BYTES, e->diag, &bytes);
    char *text = status == ME_OK ? me_arena_strdup(e->config->own->text,
                                                   me_str_text(&bytes))
                                 : NULL;
    me_str_fini(&bytes);
    if (status == ME_OK && text == NULL) {
        status = fail_memory(e);
    }
    while (status == ME_OK && text != NULL && *text != '\0') {
        char *end = text + strcspn(text, "\n");
        const bool is_last = *end == '\0';
        *end = '\0';
        status = add_line(e, text);
        text = is_last ? end : end + 1;
    }
    e->depth--;
    return status != ME_OK
               ? status
               : me_config_assume(e->config, e->diag,
                                  "@%.120s stands for the words of that file, "
                                  "which Megatron-LM's own parser would not "
                                  "read",
                                  path);
}

/** Is a word a file's? Behind a flag it may be its value, as a name of somebody
 *  is, unless there is such a file. */
static bool names_file(const me_argument_words *words, int i)
{
    const char *word = words->argv[i];
    return word[0] == '@' && word[1] != '\0' &&
           (i == 0 || words->argv[i - 1][0] != '-' ||
            me_input_is_file(word + 1));
}

me_status me_argument_files_expand(me_config *config, me_argument_words *words,
                                   me_diag *diag)
{
    expansion e = {.config = config, .diag = diag};
    bool is_needed = false;
    me_status status = ME_OK;
    for (int i = 0; i < words->argc; i++) {
        is_needed |= names_file(words, i);
    }
    if (!is_needed) {
        return ME_OK;
    }
    e.words = me_arena_alloc(config->own->text, WORDS_MAX, sizeof *e.words);
    if (e.words == NULL) {
        return fail_memory(&e);
    }
    for (int i = 0; status == ME_OK && i < words->argc; i++) {
        status = names_file(words, i) ? add_file(&e, words->argv[i] + 1)
                                      : add(&e, words->argv[i]);
    }
    if (status == ME_OK) {
        *words = (me_argument_words){.argc = e.count, .argv = e.words};
    }
    return status;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/said_vocabulary.h"

#include "config/config_private.h"

#include <inttypes.h>
#include <string.h>

enum {
    N_PARTS = 4 /**< tokens, source, type, from */
};

/** Words of sources, in the order of me_vocabulary_source. */
static const char *const sources[] = {
    [ME_VOCABULARY_COUNTED] = "counted", [ME_VOCABULARY_BARE] = "bare",
    [ME_VOCABULARY_KNOWN] = "known",     [ME_VOCABULARY_ROWS] = "rows",
    [ME_VOCABULARY_TAKEN] = "taken",
};

bool me_said_vocabulary_holds(const me_config *config)
{
    const me_vocabulary_said *said = &config->own->vocabulary;
    return said->tokens != 0 && config->model.vocab_size == said->tokens &&
           (said->is_decided ||
            !me_option_is_set(me_option_find("model.vocab_size"), config));
}

void me_said_vocabulary_dump(const me_config *config, me_str *text)
{
    const me_vocabulary_said *said = &config->own->vocabulary;
    if (!me_said_vocabulary_holds(config)) {
        return;
    }
    me_str_printf(text, "    vocabulary = { tokens = %" PRIu64 "; source = ",
                  said->tokens);
    me_option_append_quoted(sources[said->source], text);
    me_str_append(text, "; type = ");
    me_option_append_quoted(said->type, text);
    me_str_append(text, "; from = ");
    me_option_append_quoted(said->from, text);
    me_str_append(text, "; };\n");
}

/** @return false: it is no word of a source */
static bool find_source(const char *word, me_vocabulary_source *source_out)
{
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        if (strcmp(sources[i], word) == 0) {
            *source_out = (me_vocabulary_source)i;
            return true;
        }
    }
    return false;
}

me_status me_said_vocabulary_read(me_config *config,
                                  const config_setting_t *group,
                                  const char *where, me_diag *diag)
{
    double tokens = 0;
    const char *source = NULL;
    const char *type = NULL;
    const char *from = NULL;
    me_vocabulary_said said = {.is_decided = true};
    const bool is_good =
        config_setting_is_group(group) == CONFIG_TRUE &&
        config_setting_length(group) == N_PARTS &&
        me_conf_number(config_setting_get_member(group, "tokens"), &tokens) &&
        config_setting_lookup_string(group, "source", &source) == CONFIG_TRUE &&
        config_setting_lookup_string(group, "type", &type) == CONFIG_TRUE &&
        config_setting_lookup_string(group, "from", &from) == CONFIG_TRUE &&
        tokens >= 1 && tokens < 0x1p53 && find_source(source, &said.source);
    if (!is_good) {
        return me_fail_at(diag, ME_ERR_CONFIG, where, me_conf_line(group),
                          "launch.vocabulary is { tokens = N; source = "
                          "\"known\"; type = \"…\"; from = \"…\"; }");
    }
    said.tokens = (uint64_t)tokens;
    said.type = me_arena_strdup(config->own->text, type);
    said.from = me_arena_strdup(config->own->text, from);
    if (said.type == NULL || said.from == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory for %.80s", where);
    }
    config->own->vocabulary = said;
    return ME_OK;
}

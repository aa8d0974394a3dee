/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/script_line.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    SHOWN_MAX = 72 /**< bytes of a line that are shown */
};

/** Part of a text. */
typedef struct part {
    const char *at;
    size_t length;
} part;

static part line_at(const char *text, const char *at)
{
    while (at > text && at[-1] != '\n') {
        at--;
    }
    at += strspn(at, " \t");
    return (part){at, strcspn(at, "\n")};
}

static unsigned number_of(const char *text, const char *at)
{
    unsigned number = 1;
    for (; text < at; text++) {
        number += *text == '\n';
    }
    return number;
}

/** A flag among words: behind a blank, a quote or a bracket, with no more of a name
 *  behind it, in no comment. NULL: no more of them */
static const char *find_flag(const char *text, const char *from, part flag)
{
    for (const char *at = from; *at != '\0'; at++) {
        const bool begins = at == text || strchr(" \t\n\"'(=", at[-1]) != NULL;
        if (begins && strncmp(at, flag.at, flag.length) == 0 &&
            strchr(" \t\n=\"')\\", at[flag.length]) != NULL &&
            line_at(text, at).at[0] != '#') {
            return at;
        }
    }
    return NULL;
}

/** Does a text end with what opens or closes a quotation or a list that began
 *  before it, or with a blank or a line's continuation? */
static bool has_loose_end(part text)
{
    const char end = text.at[text.length - 1];
    size_t closing = 0;
    size_t opening = 0;
    for (size_t i = 0; i < text.length; i++) {
        closing += text.at[i] == end;
        opening += text.at[i] == '(';
    }
    return end == ')'                  ? closing > opening
           : end == '"' || end == '\'' ? closing % 2 == 1
                                       : strchr(" \t\\\r", end) != NULL;
}

/** From a flag on, up to the next one, a comment, or the end of its line. */
static part use_of(const char *at)
{
    part use = {at, strcspn(at, "\n")};
    for (size_t i = 1; i < use.length; i++) {
        if (strncmp(at + i, " --", 3) == 0 || strncmp(at + i, " #", 2) == 0) {
            use.length = i;
        }
    }
    while (use.length > 0 && has_loose_end(use)) {
        use.length--;
    }
    return use;
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (c >= '0' && c <= '9');
}

/** The name of the first variable that is used; of no length: none. */
static part variable_of(part use)
{
    const char *dollar = memchr(use.at, '$', use.length);
    part name = {dollar, 0};
    if (dollar != NULL) {
        name.at = dollar + 1 + (dollar[1] == '{');
        while (is_name(name.at[name.length])) {
            name.length++;
        }
    }
    return name;
}

/** The line that sets a variable last before @p use, or else first; of no length:
 *  none */
static part setting_of(const char *text, part name, const char *use)
{
    part found = {NULL, 0};
    for (const char *at = text; *at != '\0'; at++) {
        const bool begins = at == text || strchr(" \t\n;", at[-1]) != NULL;
        if (begins && strncmp(at, name.at, name.length) == 0 &&
            at[name.length] == '=' && line_at(text, at).at[0] != '#' &&
            (found.length == 0 || at < use)) {
            found = (part){at, strcspn(at, "\n")};
        }
    }
    return found;
}

/** Is @p name a word of those bytes, which a `<` would give another input? */
static bool reads_name(part command, part name)
{
    if (memchr(command.at, '<', command.length) != NULL) {
        return false;
    }
    for (size_t i = 1; i + name.length <= command.length; i++) {
        const bool ends = i + name.length == command.length ||
                          !is_name(command.at[i + name.length]);
        if (command.at[i - 1] == ' ' && ends &&
            strncmp(command.at + i, name.at, name.length) == 0) {
            return true;
        }
    }
    return false;
}

/** The shell's `read`, not of a loop, that takes a variable from the script's
 *  input; of no length: none. */
static part reading_of(const char *text, part name)
{
    for (const char *at = strstr(text, "read "); at != NULL;
         at = strstr(at + 1, "read ")) {
        const part line = line_at(text, at);
        const char *first = line.at + strspn(line.at, " \t");
        const bool begins = at == first || (at >= text + 2 && at[-2] == ';');
        const part command = {at, strcspn(at, ";\n")};
        if (begins && reads_name(command, name)) {
            return command;
        }
    }
    return (part){NULL, 0};
}

static void append_part(me_str *line, part shown)
{
    while (shown.length > 0 && strchr(" \t\r", shown.at[shown.length - 1])) {
        shown.length--;
    }
    const bool is_cut = shown.length > SHOWN_MAX;
    me_str_append_clean(line, shown.at, is_cut ? SHOWN_MAX : shown.length);
    me_str_append(line, is_cut ? "…" : "");
}

void me_script_line_append(const char *name, const char *text, const char *flag,
                           me_str *line)
{
    const part wanted = {flag, strcspn(flag, " :,=")};
    const char *at = find_flag(text, text, wanted);
    part use = {at, 0};
    part variable = {NULL, 0};
    for (const char *next = at; next != NULL && variable.length == 0;
         next = find_flag(text, next + 1, wanted)) {
        use = use_of(next);
        variable = variable_of(use);
    }
    if (at == NULL) {
        return;
    }
    if (variable.length == 0) {
        use = use_of(at);
    }
    me_str_printf(line, "%.200s:%u: ", name, number_of(text, use.at));
    append_part(line, use);
    const part setting = variable.length == 0
                             ? (part){NULL, 0}
                             : setting_of(text, variable, use.at);
    const part reading = variable.length == 0 || setting.length > 0
                             ? (part){NULL, 0}
                             : reading_of(text, variable);
    const part from = setting.length > 0 ? setting : reading;
    if (from.length > 0) {
        me_str_printf(line, "; line %u: ", number_of(text, from.at));
        append_part(line, from);
    }
    if (reading.length > 0) {
        me_str_append(line, "; the input of a script is empty here");
    }
}

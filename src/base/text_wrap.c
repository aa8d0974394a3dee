/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/text_wrap.h"

#include <string.h>

#define BOLD  "\033[1m"
#define PLAIN "\033[0m"

enum {
    FURTHER_IN = 4,
    UNDER_NAME = 6,  /* of an entry, what it is */
    LEAST_WIDTH = 40 /* narrower ones do their own wrapping */
};

/** Bytes of the escape sequence that begins here; 0: none does. */
static size_t escape_length(const char *at)
{
    if (at[0] != '\033' || at[1] != '[') {
        return 0;
    }
    const size_t middle = strspn(at + 2, "0123456789;");
    return middle + 2 + (at[middle + 2] == '\0' ? 0 : 1);
}

/** Is this byte the first of a character? */
static bool begins_character(char c)
{
    return ((unsigned char)c & 0xc0U) != 0x80U;
}

/** Where the line has to end so that it is at most @p width wide. */
static size_t fitting_length(const char *line, size_t length, size_t indent,
                             unsigned width)
{
    size_t columns = 0;
    size_t blank = 0;
    for (size_t i = 0; i < length;) {
        const size_t skipped = escape_length(line + i);
        if (skipped > 0) {
            i += skipped;
            continue;
        }
        if (line[i] == ' ' && i > indent) {
            blank = i;
        }
        columns += begins_character(line[i]) ? 1 : 0;
        if (columns > width && blank > 0) {
            return blank;
        }
        i++;
    }
    return length;
}

static void append_spaces(size_t n, me_str *text)
{
    for (; n > 0; n--) {
        me_str_append(text, " ");
    }
}

/** Blanks that a line begins with; 0 of one that has no more. */
static size_t indent_of(const char *line, size_t length)
{
    const size_t blanks = strspn(line, " ");
    return blanks < length ? blanks : 0;
}

/** Without the blanks at its end where the line goes on. */
static void append_trimmed(const char *line, size_t length, bool goes_on,
                           me_str *text)
{
    while (goes_on && length > 0 && line[length - 1] == ' ') {
        length--;
    }
    me_str_append_n(text, line, length);
}

/** A line without its end, over as many as it needs. */
static void wrap_line(const char *line, size_t length, unsigned width,
                      size_t further, me_str *text)
{
    const size_t indent = indent_of(line, length);
    further = further < width / 2 ? further : width / 2;
    size_t n = fitting_length(line, length, indent, width);
    append_trimmed(line, n, n < length, text);
    while (n < length) {
        line += n;
        length -= n;
        const size_t blanks = strspn(line, " ");
        line += blanks < length ? blanks : length;
        length -= blanks < length ? blanks : length;
        if (length == 0) {
            return;
        }
        me_str_append(text, "\n");
        append_spaces(further, text);
        n = fitting_length(line, length, 0, width - (unsigned)further);
        append_trimmed(line, n, n < length, text);
    }
}

static bool is_wrapped(unsigned columns, size_t further)
{
    return columns >= LEAST_WIDTH && further < columns;
}

void me_text_wrap_line(const char *line, size_t length, size_t further,
                       me_str *text)
{
    if (is_wrapped(text->columns, further)) {
        wrap_line(line, length, text->columns, further, text);
    } else {
        me_str_append_n(text, line, length);
    }
    me_str_append(text, "\n");
}

void me_text_wrap_shell(const char *line, size_t length, size_t further,
                        me_str *text)
{
    static const char goes_on[] = " \\";
    me_str lines = {0};
    if (is_wrapped(text->columns, further) && length > text->columns) {
        wrap_line(line, length, text->columns - (unsigned)sizeof goes_on + 1,
                  further, &lines);
    } else {
        me_str_append_n(&lines, line, length);
    }
    me_str_append(&lines, "\n");
    for (const char *at = me_str_text(&lines); *at != '\0';) {
        const size_t n = strcspn(at, "\n");
        me_str_append_n(text, at, n);
        me_str_append(text, at[n + 1] == '\0' ? "\n" : goes_on);
        me_str_append(text, at[n + 1] == '\0' ? "" : "\n");
        at += n + 1;
    }
    me_str_fini_piece(&lines, text);
}

static size_t columns_of(const char *line)
{
    size_t columns = 0;
    for (; *line != '\0'; line++) {
        columns += begins_character(*line) ? 1 : 0;
    }
    return columns;
}

void me_text_entry(const char *name, size_t at, const char *what, me_str *text)
{
    const size_t used = columns_of(name);
    const bool is_narrow = text->columns > 0 && at > text->columns / 2;
    const bool is_long = text->columns > 0 && used + 2 > at;
    me_str line = {0};
    if (is_narrow || is_long) {
        size_t length = strlen(name);
        for (; length > 0 && name[length - 1] == ' '; length--) {
        }
        me_text_wrap_line(name, length, UNDER_NAME, text);
        append_spaces(is_narrow ? UNDER_NAME : at, &line);
    } else {
        me_str_append(&line, name);
        append_spaces(used < at ? at - used : 1, &line);
    }
    me_str_append(&line, what);
    me_text_wrap_line(me_str_text(&line), line.length,
                      is_narrow ? UNDER_NAME : at, text);
    me_str_fini_piece(&line, text);
}

size_t me_text_lines(const char *lines, unsigned width)
{
    const me_terminal terminal = {.width = width};
    me_str text = {0};
    me_text_wrap(lines, &terminal, &text);
    size_t n = 0;
    for (const char *at = strchr(me_str_text(&text), '\n'); at != NULL;
         at = strchr(at + 1, '\n')) {
        n++;
    }
    me_str_fini(&text);
    return n;
}

/** Titles stand at the margin after an empty line, what is worst has a star. */
static bool is_bold(const char *line, bool is_after_empty)
{
    return (is_after_empty && *line != ' ' && *line != '\n') ||
           strncmp(line, "  *  ", strlen("  *  ")) == 0;
}

void me_text_wrap(const char *lines, const me_terminal *terminal, me_str *text)
{
    const bool wraps = terminal->width >= LEAST_WIDTH;
    bool is_after_empty = true;
    while (*lines != '\0') {
        const size_t length = strcspn(lines, "\n");
        const bool bold =
            terminal->is_colored && is_bold(lines, is_after_empty);
        me_str_append(text, bold ? BOLD : "");
        if (wraps) {
            wrap_line(lines, length, terminal->width,
                      indent_of(lines, length) + FURTHER_IN, text);
        } else {
            me_str_append_n(text, lines, length);
        }
        me_str_append(text, bold ? PLAIN : "");
        me_str_append(text, lines[length] == '\n' ? "\n" : "");
        is_after_empty = length == 0;
        lines += length + (lines[length] == '\n' ? 1 : 0);
    }
}

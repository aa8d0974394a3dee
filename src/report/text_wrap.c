/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/text_wrap.h"

#include <string.h>

#define BOLD  "\033[1m"
#define PLAIN "\033[0m"

enum {
    FURTHER_IN = 4,
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

/** A line without its end, over as many as it needs. */
static void wrap_line(const char *line, size_t length, unsigned width,
                      me_str *text)
{
    const size_t indent = strspn(line, " ") < length ? strspn(line, " ") : 0;
    const size_t further = indent + FURTHER_IN;
    size_t n = fitting_length(line, length, indent, width);
    me_str_append_n(text, line, n);
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
        me_str_append_n(text, line, n);
    }
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
            wrap_line(lines, length, terminal->width, text);
        } else {
            me_str_append_n(text, lines, length);
        }
        me_str_append(text, bold ? PLAIN : "");
        me_str_append(text, lines[length] == '\n' ? "\n" : "");
        is_after_empty = length == 0;
        lines += length + (lines[length] == '\n' ? 1 : 0);
    }
}

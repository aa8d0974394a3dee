/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/text_screen.h"

#include "base/text_wrap.h"

#include <string.h>

size_t me_screen_count(const me_str *text)
{
    return me_text_lines(me_str_text(text), text->columns);
}

size_t me_screen_room(size_t n)
{
    return n < ME_SCREEN_LINES ? ME_SCREEN_LINES - n : 0;
}

/** How many lines the first of @p lines is, with its end up to @p end. */
static size_t lines_of_first(const char *lines, const char *end, me_str *text)
{
    me_str first = {.columns = text->columns};
    me_str_append_n(&first, lines, (size_t)(end - lines));
    const size_t n = me_screen_count(&first);
    me_str_fini_piece(&first, text);
    return n;
}

void me_screen_append(const char *lines, size_t room, const char *flags,
                      me_str *text)
{
    const size_t all = me_text_lines(lines, text->columns);
    size_t left = all <= room ? all : room > 0 ? room - 1 : 0;
    size_t missing = all;
    while (*lines != '\0') {
        const char *end = strchr(lines, '\n') + 1;
        const size_t n = lines_of_first(lines, end, text);
        if (n > left) {
            break;
        }
        me_str_append_n(text, lines, (size_t)(end - lines));
        left -= n;
        missing -= n;
        lines = end;
    }
    if (missing > 0) {
        me_str_printf(text, "  and %zu lines more with %s\n", missing, flags);
    }
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/clean.h"

static bool is_control(unsigned char byte)
{
    return byte < 0x20 || byte == 0x7f;
}

/** Bytes of the sequence that this one begins, 0: it begins none. */
static size_t sequence_bytes(unsigned char byte)
{
    if (byte < 0x80) {
        return 1;
    }
    if (byte < 0xc2 || byte > 0xf4) {
        return 0;
    }
    return byte < 0xe0 ? 2 : (byte < 0xf0 ? 3 : 4);
}

/** Second bytes that would make an overlong form, a surrogate, a number beyond
 * Unicode or a control character. */
static bool is_second(unsigned char first, unsigned char second)
{
    switch (first) {
    case 0xc2:
    case 0xe0: return second >= 0xa0;
    case 0xed: return second < 0xa0;
    case 0xf0: return second >= 0x90;
    case 0xf4: return second < 0x90;
    default: return true;
    }
}

/** Bytes of the printable character at the front; 0: there is none. */
static size_t character_bytes(const char *text)
{
    const unsigned char first = (unsigned char)text[0];
    const size_t n = is_control(first) ? 0 : sequence_bytes(first);
    for (size_t i = 1; i < n; i++) {
        const unsigned char byte = (unsigned char)text[i];
        if ((byte & 0xc0) != 0x80 || (i == 1 && !is_second(first, byte))) {
            return 0;
        }
    }
    return n;
}

bool me_text_is_clean(const char *text)
{
    while (*text != '\0') {
        const size_t n = character_bytes(text);
        if (n == 0) {
            return false;
        }
        text += n;
    }
    return true;
}

void me_text_clean(char *text)
{
    while (*text != '\0') {
        const size_t n = character_bytes(text);
        if (n == 0) {
            *text = is_control((unsigned char)*text) ? ' ' : '?';
        }
        text += n == 0 ? 1 : n;
    }
}

void me_text_clean_n(char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\0') {
            text[i] = ' ';
        }
    }
    me_text_clean(text);
}

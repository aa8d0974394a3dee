/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/pci_text.h"

#include <stddef.h>

/** Up to @p max_digits hexadecimal digits, at least one. */
static bool read_hex(me_xml_span *span, size_t max_digits, uint32_t *value_out)
{
    uint32_t value = 0;
    size_t n = 0;
    if (span->length == 0) { // of an attribute that is not there
        return false;
    }
    for (; n < span->length && n < max_digits; n++) {
        const char c = span->text[n];
        const bool is_digit = c >= '0' && c <= '9';
        const char letter = (char)(c | ' ');
        if (!is_digit && (letter < 'a' || letter > 'f')) {
            break;
        }
        value = value * 16 + (uint32_t)(is_digit ? c - '0' : letter - 'a' + 10);
    }
    span->text += n;
    span->length -= n;
    *value_out = value;
    return n > 0;
}

static bool skip(me_xml_span *span, char c)
{
    if (span->length == 0 || *span->text != c) {
        return false;
    }
    span->text++;
    span->length--;
    return true;
}

bool me_pci_address_read(me_xml_span span, uint64_t *address_out)
{
    uint32_t part[4] = {0};
    const bool is_one = read_hex(&span, 8, &part[0]) && skip(&span, ':') &&
                        read_hex(&span, 2, &part[1]) && skip(&span, ':') &&
                        read_hex(&span, 2, &part[2]) && skip(&span, '.') &&
                        read_hex(&span, 1, &part[3]) && span.length == 0;
    *address_out = (uint64_t)part[0] << 20 | (uint64_t)part[1] << 12 |
                   (uint64_t)part[2] << 4 | part[3];
    return is_one;
}

bool me_pci_class_read(me_xml_span span, uint32_t *class_out,
                       uint32_t *vendor_out)
{
    return read_hex(&span, 4, class_out) && skip(&span, ' ') &&
           skip(&span, '[') && read_hex(&span, 4, vendor_out) &&
           skip(&span, ':');
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "script/order.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** By proc(5), which may show another table of processes than this one's. */
uint32_t me_order_parent(uint32_t process)
{
    char path[64];
    char text[512] = "";
    (void)snprintf(path, sizeof path, "/proc/%u/stat", process);
    const int fd = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0) {
        (void)close(fd);
    }
    // The name, in parentheses, may hold anything; a letter stands behind it.
    const char *end = n <= 0 ? NULL : strrchr(text, ')');
    return end == NULL || strlen(end) < 4
               ? 0
               : (uint32_t)strtoul(end + 3, NULL, 10);
}

void me_order_append(me_str *text)
{
    uint32_t up[ME_ORDER_DEPTH_MAX] = {(uint32_t)getpid()};
    uint32_t depth = 1;
    while (depth < ME_ORDER_DEPTH_MAX) {
        const uint32_t parent =
            depth == 1 ? (uint32_t)getppid() : me_order_parent(up[depth - 1]);
        if (parent <= 1) {
            break;
        }
        up[depth++] = parent;
    }
    while (depth > 0) {
        depth--;
        me_str_printf(text, depth == 0 ? "%u" : "%u.", up[depth]);
    }
}

me_order me_order_read(const char *text)
{
    me_order order = {.depth = 0};
    while (order.depth < ME_ORDER_DEPTH_MAX && *text >= '0' && *text <= '9') {
        char *end = NULL;
        order.numbers[order.depth++] = (uint32_t)strtoul(text, &end, 10);
        text = *end == '.' ? end + 1 : end;
    }
    return order;
}

int me_order_compare(const me_order *a, const me_order *b)
{
    for (uint32_t i = 0; i < a->depth && i < b->depth; i++) {
        if (a->numbers[i] != b->numbers[i]) {
            return a->numbers[i] < b->numbers[i] ? -1 : 1;
        }
    }
    return 0; // one has started the other, or they are one
}

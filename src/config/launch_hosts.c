/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/launch_hosts.h"

#include "base/input.h"
#include "base/parse.h"

#include <stdio.h>
#include <string.h>

static const char blanks[] = " \t\r";

static bool is_number(const char *text, size_t length, uint64_t *number_out)
{
    char digits[24];
    if (length == 0 || length >= sizeof digits) {
        return false;
    }
    (void)snprintf(digits, sizeof digits, "%.*s", (int)length, text);
    return me_parse_u64(digits, number_out) == ME_OK &&
           *number_out <= ME_HOST_SLOTS_MOST;
}

me_host *me_host_pool_find(const me_host_pool *pool, const char *name,
                           size_t length)
{
    for (uint32_t i = 0; i < pool->count; i++) {
        if (pool->hosts[i].length == length &&
            strncmp(pool->hosts[i].name, name, length) == 0) {
            return &pool->hosts[i];
        }
    }
    return NULL;
}

me_host *me_host_pool_take(me_host_pool *pool, const char *name, size_t length)
{
    me_host *found = me_host_pool_find(pool, name, length);
    if (found == NULL && pool->count == pool->capacity &&
        pool->capacity < ME_HOSTS_MOST) {
        const uint32_t capacity = pool->capacity == 0 ? 64 : pool->capacity * 4;
        me_host *hosts = me_arena_alloc(pool->arena, capacity, sizeof *hosts);
        if (hosts == NULL) {
            return NULL;
        }
        if (pool->count > 0) {
            memcpy(hosts, pool->hosts, pool->count * sizeof *hosts);
        }
        pool->hosts = hosts;
        pool->capacity = capacity;
    }
    if (found == NULL && pool->count < pool->capacity) {
        found = &pool->hosts[pool->count++];
        *found = (me_host){.name = name, .length = length};
    }
    if (found != NULL) {
        found->mentions++;
    }
    return found;
}

uint64_t me_host_pool_slots(const me_host_pool *pool)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < pool->count; i++) {
        sum += pool->hosts[i].slots;
        if (sum > ME_HOST_SLOTS_MOST) {
            return ME_HOST_SLOTS_MOST + 1;
        }
    }
    return sum;
}

uint64_t me_lsf_slots_each(const char *value)
{
    uint64_t each = 0;
    bool is_one = true;
    for (const char *at = value + strspn(value, " "); is_one && *at != '\0';) {
        at += strcspn(at, " ");
        at += strspn(at, " ");
        char number[16];
        uint64_t slots = 0;
        const size_t length = strcspn(at, " ");
        (void)snprintf(number, sizeof number, "%.*s",
                       length < sizeof number ? (int)length : 0, at);
        is_one = me_parse_u64(number, &slots) == ME_OK && slots > 0 &&
                 (each == 0 || each == slots);
        each = slots;
        at += length;
        at += strspn(at, " ");
    }
    return is_one ? each : 0;
}

uint64_t me_host_pool_slots_each(const me_host_pool *pool)
{
    for (uint32_t i = 1; i < pool->count; i++) {
        if (pool->hosts[i].slots != pool->hosts[0].slots) {
            return 0;
        }
    }
    return pool->count == 0 ? 0 : pool->hosts[0].slots;
}

static me_status add(me_host_pool *pool, const char *name, size_t length,
                     bool has_number, uint64_t slots, me_diag *diag)
{
    me_host *h = me_host_pool_take(pool, name, length);
    if (h == NULL) {
        return me_fail(
            diag, pool->count == ME_HOSTS_MOST ? ME_ERR_CONFIG : ME_ERR_NOMEM,
            "no room for more than %u hosts", pool->count);
    }
    h->has_number = has_number || h->has_number;
    h->slots += has_number ? slots : 1;
    return ME_OK;
}

/** The value of `slots=`, between blanks. NULL: there is none */
static const char *find_slots(const char *text)
{
    static const char key[] = "slots";
    while (text[strspn(text, blanks)] != '\0') {
        text += strspn(text, blanks);
        if (strncmp(text, key, sizeof key - 1) == 0) {
            const char *at = text + sizeof key - 1;
            at += strspn(at, blanks); // Open MPI takes blanks around `=`
            if (*at == '=') {
                return at + 1 + strspn(at + 1, blanks);
            }
        }
        text += strcspn(text, blanks);
    }
    return NULL;
}

static me_status add_line(me_host_pool *pool, const char *path, int number,
                          const char *line, me_diag *diag)
{
    const char *name = line + strspn(line, blanks);
    const size_t word = strcspn(name, blanks);
    const size_t length = strcspn(name, " \t\r:");
    const char *slots = find_slots(name + word);
    uint64_t count = 0;
    if (slots == NULL && length < word) {
        slots = name + length + 1; // Hydra's `NAME:N`
    }
    if (length == 0 || (slots != NULL &&
                        !is_number(slots, strcspn(slots, " \t\r:"), &count))) {
        return me_fail_at(diag, ME_ERR_CONFIG, path, number,
                          "'%.80s' is no host with its slots: must be "
                          "'NAME slots=N'",
                          name);
    }
    return add(pool, name, length, slots != NULL, count, diag);
}

me_status me_host_pool_read(me_host_pool *pool, const char *path, me_diag *diag)
{
    me_str bytes = {0};
    me_status status = me_input_read(path, ME_INPUT_MAX_BYTES, diag, &bytes);
    char *text = status == ME_OK
                     ? me_arena_strdup(pool->arena, me_str_text(&bytes))
                     : NULL;
    me_str_fini(&bytes);
    if (status == ME_OK && text == NULL) {
        status = me_fail(diag, ME_ERR_NOMEM, "no memory for hosts");
    }
    const uint32_t before = pool->count;
    for (int line = 1; status == ME_OK && text != NULL && *text != '\0';
         line++) {
        char *end = text + strcspn(text, "\n");
        char *next = *end == '\0' ? end : end + 1;
        *end = '\0';
        text[strcspn(text, "#")] = '\0';
        if (text[strspn(text, blanks)] != '\0') {
            status = add_line(pool, path, line, text, diag);
        }
        text = next;
    }
    return status == ME_OK && pool->count == before
               ? me_fail_at(diag, ME_ERR_CONFIG, path, 0, "names no host")
               : status;
}

me_status me_host_pool_add_list(me_host_pool *pool, const char *list,
                                me_diag *diag)
{
    me_status status = ME_OK;
    while (status == ME_OK && *list != '\0') {
        const size_t length = strcspn(list, ":,");
        const char *slots = list + length + (list[length] == ':' ? 1 : 0);
        const bool has_number = list[length] == ':';
        const size_t end = strcspn(slots, ",");
        uint64_t count = 0;
        status = has_number && (!is_number(slots, end, &count) || count == 0)
                     ? me_fail(diag, ME_ERR_CONFIG,
                               "'%.80s' has no number of slots", list)
                     : add(pool, list, length, has_number, count, diag);
        list = slots + (has_number ? end : 0);
        list += *list == ',';
    }
    return status;
}

/** Hosts of `[1-3,7]`, behind its bracket. @return behind its end; NULL: it is
 *  none */
static const char *count_range(const char *at, uint64_t *count_out)
{
    *count_out = 0;
    for (;;) {
        uint64_t first = 0;
        uint64_t last = 0;
        const size_t n = strcspn(at, "-,]");
        bool is_fine = is_number(at, n, &first);
        last = first;
        at += n;
        if (is_fine && *at == '-') {
            const size_t m = strcspn(at + 1, "-,]");
            is_fine = is_number(at + 1, m, &last) && last >= first;
            at += m + 1;
        }
        if (!is_fine || (*at != ',' && *at != ']')) {
            return NULL;
        }
        *count_out += last - first + 1;
        at++;
        if (at[-1] == ']') {
            return at;
        }
    }
}

uint64_t me_host_list_count(const char *list)
{
    uint64_t count = 0;
    while (*list != '\0') {
        const size_t name = strcspn(list, ",[");
        uint64_t of_entry = 1;
        list += name;
        while (list != NULL && *list == '[') {
            uint64_t of_range = 0;
            list = count_range(list + 1, &of_range);
            of_entry =
                of_entry > ME_HOST_SLOTS_MOST ? of_entry : of_entry * of_range;
            list = list == NULL ? NULL : list + strcspn(list, ",[");
        }
        if (list == NULL || of_entry + count > ME_HOST_SLOTS_MOST) {
            return 0;
        }
        count += of_entry;
        list += *list == ',';
    }
    return count;
}

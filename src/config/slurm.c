/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/slurm.h"

#include "base/data_files.h"
#include "base/parse.h"
#include "base/size.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static bool read_number(const char *text, size_t length, uint64_t *number_out)
{
    char digits[24];
    if (length == 0 || length >= sizeof digits) {
        return false;
    }
    (void)snprintf(digits, sizeof digits, "%.*s", (int)length, text);
    return me_parse_u64(digits, number_out) == ME_OK;
}

bool me_slurm_memory_read(const char *text, uint64_t *bytes_out)
{
    static const char units[] = "KMGT";
    const size_t length = strspn(text, "0123456789");
    const int suffix =
        text[length] == '\0' ? 'M' : toupper((unsigned char)text[length]);
    const char *unit = strchr(units, suffix);
    uint64_t number = 0;
    if (!read_number(text, length, &number) || unit == NULL ||
        (text[length] != '\0' && text[length + 1] != '\0')) {
        return false;
    }
    const unsigned shift = 10 * ((unsigned)(unit - units) + 1);
    if (number > UINT64_MAX >> shift) {
        return false;
    }
    *bytes_out = number << shift;
    return true;
}

/** `:`, or `=` as newer versions write it; NULL: there is none. */
static const char *find_separator(const char *text, size_t length)
{
    const char *colon = memchr(text, ':', length);
    return colon == NULL ? memchr(text, '=', length) : colon;
}

/** One entry of a list, up to its comma or the sockets behind it. */
static bool read_entry(const char *text, size_t length, bool needs_gpu,
                       me_slurm_gpus *gpus_out)
{
    me_slurm_gpus gpus = {.count = 1};
    const bool is_gpu = length >= 3 && strncmp(text, "gpu", 3) == 0 &&
                        (length == 3 || text[3] == ':' || text[3] == '=');
    if (needs_gpu && !is_gpu) {
        return false;
    }
    const size_t skip = !is_gpu ? 0 : length == 3 ? 3 : 4;
    text += skip;
    length -= skip;
    const char *colon = find_separator(text, length);
    const size_t first = colon == NULL ? length : (size_t)(colon - text);
    if (length > 0 && !read_number(text, first, &gpus.count)) {
        if (first >= sizeof gpus.type ||
            (colon != NULL &&
             !read_number(colon + 1, length - first - 1, &gpus.count))) {
            return false;
        }
        memcpy(gpus.type, text, first);
    }
    *gpus_out = gpus;
    return true;
}

bool me_slurm_gpus_read(const char *text, bool needs_gpu,
                        me_slurm_gpus *gpus_out)
{
    bool is_there = false;
    me_slurm_gpus all = {.count = 0};
    while (*text != '\0') {
        me_slurm_gpus one = {.count = 0};
        const size_t length = strcspn(text, ",(");
        if (read_entry(text, length, needs_gpu, &one)) {
            const bool is_other = is_there && strcmp(one.type, all.type) != 0;
            if (is_other && one.type[0] != '\0' && all.type[0] != '\0') {
                memcpy(all.other, one.type, sizeof all.other);
            } else if (is_other && one.type[0] != '\0') {
                memcpy(all.type, one.type, sizeof all.type);
            }
            const uint64_t sum = all.count + one.count;
            one.count = sum < one.count ? UINT64_MAX : sum;
            all = is_there ? all : one;
            all.count = one.count;
            is_there = true;
        }
        text += strcspn(text, ",");
        text += *text == ',';
    }
    if (is_there) {
        *gpus_out = all;
    }
    return is_there;
}

const char *me_slurm_tres_gpus(const char *text)
{
    static const char gres[] = "gres/";
    const char *gpus = strstr(text, "gres/gpu");
    return gpus == NULL ? NULL : gpus + sizeof gres - 1;
}

/** Letters and digits of a type, small, without what says nothing of the
 *  model: `nvidia_h100_80gb_hbm3` is `h100`, of 80 GB. */
typedef struct model {
    char name[ME_SLURM_TYPE];
    uint64_t gigabytes; /**< 0: not said */
} model;

static bool is_filler(const char *word)
{
    static const char *const fillers[] = {
        "nvidia", "tesla", "geforce", "gpu",  "pcie",  "sxm",  "sxm2", "sxm3",
        "sxm4",   "sxm5",  "nvl",     "hbm2", "hbm2e", "hbm3", "hbm3e"};
    return me_is_one_of(word, strlen(word), fillers,
                        sizeof fillers / sizeof *fillers);
}

static model read_model(const char *type)
{
    model m = {.gigabytes = 0};
    while (*type != '\0') {
        char word[ME_SLURM_TYPE];
        size_t n = 0;
        for (; isalnum((unsigned char)*type) != 0; type++) {
            if (n < sizeof word - 1) {
                word[n++] = (char)tolower((unsigned char)*type);
            }
        }
        word[n] = '\0';
        type += *type != '\0';
        const size_t digits = strspn(word, "0123456789");
        const bool is_memory = digits > 0 && digits < n &&
                               (strcmp(word + digits, "gb") == 0 ||
                                strcmp(word + digits, "g") == 0);
        if (is_memory) {
            (void)read_number(word, digits, &m.gigabytes);
        } else if (!is_filler(word) && strlen(m.name) + n < sizeof m.name - 1) {
            memcpy(m.name + strlen(m.name), word, n + 1);
        }
    }
    return m;
}

/** A search for the one card of a model. */
typedef struct search {
    model wanted;
    int n_found;
    char name[ME_SLURM_TYPE]; /**< of the first */
} search;

static bool compare(void *self, const char *name, const char *path)
{
    (void)path;
    search *s = self;
    const model found = read_model(name);
    if (strcmp(found.name, s->wanted.name) == 0 &&
        (s->wanted.gigabytes == 0 || s->wanted.gigabytes == found.gigabytes) &&
        strcmp(s->name, name) != 0) { // not seen elsewhere
        s->n_found++;
        if (s->n_found == 1) {
            (void)snprintf(s->name, sizeof s->name, "%s", name);
        }
    }
    return false;
}

/** @return cards that the type may be; @p name_out: the one, or the type */
static int find_cards(const char *type, me_str *name_out)
{
    bool is_done = false;
    search s = {.wanted = read_model(type)};
    const me_status status =
        me_data_visit(&me_data_cards, compare, &s, &is_done);
    if (status != ME_OK && name_out->status == ME_OK) {
        name_out->status = status;
    }
    me_str_append(name_out, s.n_found == 1 ? s.name : type);
    return s.n_found;
}

bool me_slurm_card_find(const char *type, me_str *name_out)
{
    return find_cards(type, name_out) == 1;
}

/** Take a feature that is the name of a card, or of several, which have to be told
 *  apart then. @param first  name of the card that was the first; "": none was */
static me_status take_feature(const char *feature, char first[ME_SLURM_TYPE],
                              char type[ME_SLURM_TYPE])
{
    me_str name = {0};
    const bool is_card = find_cards(feature, &name) > 0;
    const me_status status = me_str_status(&name);
    const size_t length = strlen(type);
    if (is_card && status == ME_OK && length == 0) {
        (void)snprintf(first, ME_SLURM_TYPE, "%s", me_str_text(&name));
        memcpy(type, feature, strlen(feature) + 1);
    } else if (is_card && status == ME_OK &&
               strcmp(first, me_str_text(&name)) != 0) {
        (void)snprintf(type + length, ME_SLURM_TYPE - length, "%c%s",
                       ME_SLURM_EITHER, feature);
    }
    me_str_fini(&name);
    return status;
}

me_status me_slurm_constraint_read(const char *text,
                                   char type_out[ME_SLURM_TYPE])
{
    static const char between[] = "&|,()[]*: ";
    char first[ME_SLURM_TYPE] = "";
    me_status status = ME_OK;
    type_out[0] = '\0';
    text += strspn(text, between);
    while (*text != '\0' && status == ME_OK) {
        char feature[ME_SLURM_TYPE];
        const size_t length = strcspn(text, between);
        (void)snprintf(feature, sizeof feature, "%.*s",
                       length < sizeof feature ? (int)length : 0, text);
        status = take_feature(feature, first, type_out);
        text += length;
        text += strspn(text, between);
    }
    return status;
}

uint64_t me_slurm_memory_of_node(const me_slurm_memory *said, uint64_t gpus,
                                 uint64_t cpus)
{
    const struct {
        const char *size;
        uint64_t times;
    } ways[] = {
        {said->of_node, 1},
        {said->of_gpu, gpus},
        {said->of_cpu, cpus},
    };

    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        uint64_t bytes = 0;
        if (ways[i].size != NULL) {
            return me_slurm_memory_read(ways[i].size, &bytes)
                       ? me_size_mul(bytes, ways[i].times)
                       : 0;
        }
    }
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "base/clean.h"
#include "base/input.h"
#include "base/pickle.h"
#include "diff/profile_read.h"

#include <string.h>

enum {
    HEAD_BYTES = 1 << 16,
    LINE_BYTES = 1 << 16
};

const char *me_quantity_key(me_quantity quantity)
{
    static const char *const keys[] = {
#define QUANTITY_KEY(constant, key, text) [constant] = (key),
        ME_QUANTITY_LIST(QUANTITY_KEY)
#undef QUANTITY_KEY
    };
    return keys[quantity];
}

const char *me_quantity_text(me_quantity quantity)
{
    static const char *const texts[] = {
#define QUANTITY_TEXT(constant, key, text) [constant] = (text),
        ME_QUANTITY_LIST(QUANTITY_TEXT)
#undef QUANTITY_TEXT
    };
    return texts[quantity];
}

const char *me_division_key(me_division division)
{
    static const char *const keys[] = {
#define DIVISION_KEY(constant, key, text) [constant] = (key),
        ME_DIVISION_LIST(DIVISION_KEY)
#undef DIVISION_KEY
    };
    return keys[division];
}

const char *me_division_text(me_division division)
{
    static const char *const texts[] = {
#define DIVISION_TEXT(constant, key, text) [constant] = (text),
        ME_DIVISION_LIST(DIVISION_TEXT)
#undef DIVISION_TEXT
    };
    return texts[division];
}

static void fini_rank(me_profile_rank *r)
{
    for (int d = 0; d < ME_DIVISION_COUNT; d++) {
        me_part_list *list = &r->divisions[d];
        for (uint32_t i = 0; i < list->count; i++) {
            me_free(list->parts[i].name);
        }
        me_free(list->parts);
        me_places_fini(&list->places);
    }
}

void me_profile_destroy(me_profile *profile)
{
    if (profile == NULL) {
        return;
    }
    for (uint32_t i = 0; i < profile->n_ranks; i++) {
        fini_rank(&profile->ranks[i]);
    }
    for (uint32_t i = 0; i < profile->n_options; i++) {
        me_free(profile->options[i].name);
        me_free(profile->options[i].value);
    }
    me_free(profile->ranks);
    me_places_fini(&profile->places);
    me_free(profile->options);
    me_free(profile->calls.bytes);
    me_free(profile->calls.iteration);
    me_free(profile);
}

uint32_t me_profile_iterations(const char *number)
{
    uint32_t last = 0;
    if (*number < '0' || *number > '9') {
        return 0;
    }
    while (*number >= '0' && *number <= '9' && last < 100000000) {
        last = last * 10 + (uint32_t)(*number - '0');
        number++;
    }
    return last + 1;
}

static bool is_rank(const void *list, uint32_t place, const void *key)
{
    return ((const me_profile_rank *)list)[place].rank == *(const int32_t *)key;
}

static int64_t find_rank(const me_profile *profile, int32_t rank)
{
    return me_places_find(&profile->places, me_place_of_number((uint32_t)rank),
                          is_rank, profile->ranks, &rank);
}

const me_profile_rank *me_profile_rank_find(const me_profile *profile,
                                            int32_t rank)
{
    const int64_t place = find_rank(profile, rank);
    return place == ME_PLACE_NONE ? NULL : &profile->ranks[place];
}

me_profile_rank *me_profile_rank_add(me_profile *profile, int32_t rank)
{
    const int64_t place = find_rank(profile, rank);
    if (place != ME_PLACE_NONE) {
        return &profile->ranks[place];
    }
    me_profile_rank *grown =
        me_grow(profile->ranks, profile->n_ranks, &profile->rank_capacity,
                sizeof *grown, "diff.ranks");
    if (grown == NULL) {
        return NULL;
    }
    profile->ranks = grown;
    if (me_places_add(&profile->places, me_place_of_number((uint32_t)rank)) !=
        ME_OK) {
        return NULL;
    }
    grown[profile->n_ranks] = (me_profile_rank){.rank = rank};
    return &grown[profile->n_ranks++];
}

void me_profile_raise(me_profile_rank *rank, me_quantity quantity,
                      uint64_t bytes)
{
    if (!rank->has[quantity] || bytes > rank->bytes[quantity]) {
        me_profile_set(rank, quantity, bytes);
    }
}

void me_profile_set(me_profile_rank *rank, me_quantity quantity, uint64_t bytes)
{
    rank->has[quantity] = true;
    rank->bytes[quantity] = bytes;
}

/** What a part is known by. */
typedef struct part_name {
    const char *name;
    uint64_t key;
} part_name;

static uint64_t hash_part(part_name part)
{
    return part.key != 0 ? me_place_of_number(part.key)
                         : me_place_of_text(part.name);
}

static bool is_part(const void *list, uint32_t place, const void *key)
{
    const me_part *a = &((const me_part *)list)[place];
    const part_name *b = key;
    return a->key == b->key && (a->key != 0 || strcmp(a->name, b->name) == 0);
}

static int64_t find_part(const me_part_list *list, part_name part)
{
    return me_places_find(&list->places, hash_part(part), is_part, list->parts,
                          &part);
}

const me_part *me_part_find(const me_part_list *list, const me_part *like)
{
    const int64_t place = find_part(list, (part_name){like->name, like->key});
    return place == ME_PLACE_NONE ? NULL : &list->parts[place];
}

/** A name of a file's own, which may be foreign. */
static char *keep_clean(const char *text, const char *what)
{
    char *kept = me_strdup(text, what);
    if (kept != NULL) {
        me_text_clean(kept);
    }
    return kept;
}

static me_status add_part(me_part_list *list, const char *name, uint64_t key,
                          uint64_t bytes, uint64_t count)
{
    const part_name named = {name, key};
    const int64_t place = find_part(list, named);
    me_part *part = place == ME_PLACE_NONE ? NULL : &list->parts[place];
    if (part == NULL) {
        me_part *grown = me_grow(list->parts, list->count, &list->capacity,
                                 sizeof *grown, "diff.parts");
        if (grown == NULL) {
            return ME_ERR_NOMEM;
        }
        list->parts = grown;
        part = &grown[list->count];
        *part = (me_part){.name = me_strdup(name, "diff.parts"), .key = key};
        if (part->name == NULL ||
            me_places_add(&list->places, hash_part(named)) != ME_OK) {
            me_free(part->name);
            return ME_ERR_NOMEM;
        }
        list->count++;
    }
    part->bytes += bytes;
    part->count += count;
    return ME_OK;
}

me_status me_part_add(me_part_list *list, const char *name, uint64_t key,
                      uint64_t bytes, uint64_t count)
{
    if (me_text_is_clean(name)) {
        return add_part(list, name, key, bytes, count);
    }
    char *clean = keep_clean(name, "diff.parts");
    const me_status status =
        clean == NULL ? ME_ERR_NOMEM : add_part(list, clean, key, bytes, count);
    me_free(clean);
    return status;
}

me_status me_profile_option_add(me_profile *profile, const char *name,
                                const char *value)
{
    me_profile_option *grown =
        me_grow(profile->options, profile->n_options, &profile->option_capacity,
                sizeof *grown, "diff.options");
    if (grown == NULL) {
        return ME_ERR_NOMEM;
    }
    profile->options = grown;
    me_profile_option *o = &grown[profile->n_options++];
    *o = (me_profile_option){.name = keep_clean(name, "diff.options"),
                             .value = keep_clean(value, "diff.options")};
    return o->name == NULL || o->value == NULL ? ME_ERR_NOMEM : ME_OK;
}

/** Does @p text stand at the beginning of those bytes? */
static bool begins_with(const char *head, size_t length, const char *text)
{
    size_t i = 0;
    while (*text != '\0' && i < length) {
        const size_t escape = me_escape_bytes(head + i, length - i);
        if (escape == 0 && head[i] != *text) {
            return false;
        }
        text += escape == 0 ? 1 : 0;
        i += escape == 0 ? 1 : escape;
    }
    return *text == '\0';
}

bool me_head_has(const char *head, size_t length, const char *text)
{
    const char *at = memchr(head, text[0], length);
    const char *end = head + length;
    while (at != NULL && !begins_with(at, (size_t)(end - at), text)) {
        at = memchr(at + 1, text[0], (size_t)(end - at) - 1);
    }
    return at != NULL;
}

static void remove_escapes(char *text)
{
    char *to = text;
    size_t left = strlen(text);
    while (left > 0) {
        const size_t n = me_escape_bytes(text, left);
        if (n == 0) {
            *to++ = *text;
        }
        text += n == 0 ? 1 : n;
        left -= n == 0 ? 1 : n;
    }
    *to = '\0';
}

/** What stands in a line between carriage returns, one after the other. */
static me_status read_parts(me_profile *profile, char *buffer, int number,
                            me_status (*line)(me_profile *profile, char *text,
                                              int number, me_diag *diag),
                            me_diag *diag)
{
    me_status status = ME_OK;
    for (char *at = buffer; status == ME_OK && at != NULL;) {
        char *end = at + strcspn(at, "\r\n");
        char *next = *end == '\r' ? end + 1 : NULL;
        profile->is_cut = *end == '\0';
        *end = '\0';
        remove_escapes(at);
        status = line(profile, at, number, diag);
        at = next;
    }
    return status;
}

me_status me_profile_lines(me_profile *profile, FILE *file,
                           me_status (*line)(me_profile *profile, char *text,
                                             int number, me_diag *diag),
                           me_diag *diag)
{
    char *buffer = me_alloc(LINE_BYTES, 1, "diff.line");
    me_status status = ME_OK;
    int number = 0;
    bool is_rest = false; // of a line that is too long to be of any use
    if (buffer == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory to read %s",
                       profile->name);
    }
    while (status == ME_OK && fgets(buffer, LINE_BYTES, file) != NULL) {
        const bool is_whole = strchr(buffer, '\n') != NULL;
        number += is_rest ? 0 : 1;
        if (!is_rest) {
            status = read_parts(profile, buffer, number, line, diag);
        }
        is_rest = !is_whole;
    }
    if (status == ME_OK && ferror(file)) {
        status =
            me_fail_at(diag, ME_ERR_IO, profile->name, 0, "cannot be read");
    }
    me_free(buffer);
    return status;
}

static const me_profile_reader *const readers[] = {
    &me_pickle_reader_of_snapshots, &me_report_reader,
    &me_json_reader_of_snapshots,   &me_nvidia_smi_reader,
    &me_nvidia_smi_nameless_reader, &me_nvidia_smi_monitor_reader,
    &me_megatron_log_reader,        &me_torchtitan_log_reader,
};

enum {
    N_READERS = sizeof readers / sizeof readers[0],
    FIRST_LOG = 6, /* of those: what tells it may stand anywhere */
    OVERLAP = 256  /* of pieces, so that none cuts it */
};

/** Whose the bytes are. @return N_READERS: nobody's */
static int find_by_head(const char *head, size_t length, int first)
{
    int i = first;
    while (i < N_READERS && !readers[i]->is_one(head, length)) {
        i++;
    }
    return i;
}

/** A log is looked through to its end. */
static me_status find_reader(FILE *file, const char *path, me_diag *diag,
                             const me_profile_reader **reader_out)
{
    char *head = me_alloc(HEAD_BYTES, 1, "diff.head");
    size_t kept = 0;
    size_t n = 0;
    int found = N_READERS;
    int first = 0;
    if (head == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory to read %s", path);
    }
    me_status status = ME_OK;
    while (status == ME_OK && found == N_READERS &&
           (n = fread(head + kept, 1, HEAD_BYTES - kept, file)) > 0) {
        const size_t length = kept + n;
        if (first == 0) {
            status = me_pickle_refuse_old(head, length, path, diag);
        }
        found = find_by_head(head, length, first);
        first = FIRST_LOG;
        kept = length < OVERLAP ? length : OVERLAP;
        memmove(head, head + length - kept, kept);
    }
    me_free(head);
    *reader_out = status == ME_OK && found < N_READERS ? readers[found] : NULL;
    return status != ME_OK || found < N_READERS
               ? status
               : me_fail_at(diag, ME_ERR_SYNTAX, path, 0,
                            "is no memest report (--format json), memory "
                            "snapshot of PyTorch's, log with Megatron-LM's or "
                            "torchtitan's lines on memory, or samples of "
                            "nvidia-smi (--query-gpu=index,memory.used "
                            "--format=csv, dmon or pmon -s m)");
}

/** Go to the file's beginning, behind a byte order mark: what saves a log or a
 *  table on Windows writes one. */
static me_status go_back(FILE *file, const char *path, me_diag *diag)
{
    char head[4];
    rewind(file);
    const size_t n = fread(head, 1, sizeof head, file);
    const size_t mark = me_input_mark_bytes(head, n);
    return fseek(file, (long)mark, SEEK_SET) == 0
               ? ME_OK
               : me_fail_at(diag, ME_ERR_IO, path, 0, "cannot be read");
}

/** What the file is, and what stands in it. */
static me_status read_file(me_profile *p, FILE *file, me_diag *diag)
{
    const me_profile_reader *reader = NULL;
    me_status status = go_back(file, p->name, diag);
    if (status == ME_OK) {
        status = find_reader(file, p->name, diag, &reader);
    }
    if (reader == NULL) {
        return status;
    }
    status = go_back(file, p->name, diag);
    if (status != ME_OK) {
        return status;
    }
    p->source = reader->source;
    status = reader->read(p, file, diag);
    return status == ME_OK && p->n_ranks == 0
               ? me_fail_at(diag, ME_ERR_SYNTAX, p->name, 0,
                            "%s, but no rank's memory stands in it%s",
                            p->source,
                            p->is_cut ? ": its last line has no end, and its "
                                        "number may go on"
                                      : "")
               : status;
}

me_status me_profile_read(const char *path, me_progress_part *part,
                          me_diag *diag, me_profile **profile_out)
{
    FILE *file = NULL;
    me_status status = me_input_open(path, diag, &file);
    if (status != ME_OK) {
        return status == ME_ERR_IO ? ME_ERR_CONFIG : status;
    }
    me_profile *p = me_alloc(1, sizeof *p, "diff.profile");
    if (p == NULL) {
        status = me_fail(diag, ME_ERR_NOMEM, "no memory to read %s", path);
    } else {
        p->name = path;
        p->part = part;
        status = read_file(p, file, diag);
        p->part = NULL;
    }
    (void)fclose(file);
    if (status != ME_OK) {
        me_profile_destroy(p);
        return status;
    }
    *profile_out = p;
    return ME_OK;
}

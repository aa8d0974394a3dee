/* SPDX-License-Identifier: BSD-3-Clause */
/* Samples of nvidia-smi: CSV of --query-gpu, with its header and with units or
 * without, and the tables of `nvidia-smi dmon` and `pmon`. */
#include "base/alloc.h"
#include "diff/profile_read.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

static const me_log_unit field_mib = {1048576.0, "MiB", ","};
static const me_log_unit word_mib = {1048576.0, "", " \t,"};

enum {
    MAX_COLUMNS = 64,
    MAX_GPUS = 1024,
    LINE_BYTES = 1024
};

static bool is_csv(const char *head, size_t length)
{
    const char *end = memchr(head, '\n', length);
    const size_t line = end == NULL ? length : (size_t)(end - head);
    return me_head_has(head, line, "memory.used [MiB]");
}

/** Without its end. @return false: it is empty, or longer than any of theirs */
static bool copy_first_line(const char *head, size_t length,
                            char line_out[LINE_BYTES])
{
    const char *end = memchr(head, '\n', length);
    const size_t n = end == NULL ? length : (size_t)(end - head);
    if (n >= LINE_BYTES || n == 0) {
        return false;
    }
    memcpy(line_out, head, n);
    line_out[n] = '\0';
    line_out[strcspn(line_out, "\r")] = '\0';
    return true;
}

/** Where a field of a line of CSV begins; NULL: it has fewer. */
static const char *find_field(const char *line, int column)
{
    const char *at = line;
    for (int i = 0; i < column && at != NULL; i++) {
        at = strchr(at, ',');
        at = at == NULL ? NULL : at + 1;
    }
    return at == NULL ? NULL : at + strspn(at, " ");
}

/** Which column is called so; -1: none. */
static int find_column(const char *header, const char *name)
{
    const size_t length = strlen(name);
    for (int i = 0; i < MAX_COLUMNS; i++) {
        const char *field = find_field(header, i);
        if (field == NULL) {
            return -1;
        }
        if (strncmp(field, name, length) == 0 &&
            strchr(",\r\n", field[length]) != NULL) {
            return i;
        }
    }
    return -1;
}

/** What the head says. */
typedef struct smi_head {
    int used;
    int gpu;         /**< what tells GPUs apart; -1: nothing does */
    bool has_number; /**< that is their index */
    int count;
} smi_head;

/** The names of GPUs that have no index, in the order of nvidia-smi's samples,
 *  which is that of the indices. */
typedef struct smi_gpus {
    char *names[MAX_GPUS];
    int32_t count;
} smi_gpus;

/** Columns of which each GPU has a value of its own, by choice; those of a graphics
 *  card with several of them are not among them. */
static int find_gpu(const char *line)
{
    static const char *const columns[] = {"index", "uuid", "pci.bus_id"};
    int column = -1;
    for (size_t i = 0; column < 0 && i < sizeof columns / sizeof *columns;
         i++) {
        column = find_column(line, columns[i]);
    }
    return column;
}

/** A GPU's number by its name, which is kept when it is new; -1: no memory, or
 *  more of them than there is room for. */
static int32_t number_of(smi_gpus *gpus, const char *name, size_t length)
{
    for (int32_t i = 0; i < gpus->count; i++) {
        if (strncmp(gpus->names[i], name, length) == 0 &&
            gpus->names[i][length] == '\0') {
            return i;
        }
    }
    char *copy =
        gpus->count == MAX_GPUS ? NULL : me_alloc(length + 1, 1, "diff.gpu");
    if (copy == NULL) {
        return -1;
    }
    memcpy(copy, name, length);
    copy[length] = '\0';
    gpus->names[gpus->count] = copy;
    return gpus->count++;
}

static void forget(smi_gpus *gpus)
{
    for (int32_t i = 0; i < gpus->count; i++) {
        me_free(gpus->names[i]);
    }
}

/** @return false: it is none. Samples that a loop takes one by one have it again
 *  and again. */
static bool read_head(const char *line, smi_head *out)
{
    smi_head head = {.used = find_column(line, "memory.used [MiB]"),
                     .gpu = find_gpu(line),
                     .has_number = find_column(line, "index") >= 0};
    if (head.used < 0) {
        return false;
    }
    while (find_field(line, head.count) != NULL) {
        head.count++;
    }
    *out = head;
    return true;
}

/** The number of a sample's GPU, which is taken for the rank; -1: it has none. */
static me_status read_gpu(const me_profile *profile, const char *line,
                          const smi_head *head, smi_gpus *gpus,
                          int32_t *gpu_out, me_diag *diag)
{
    const char *at = head->gpu < 0 ? NULL : find_field(line, head->gpu);
    *gpu_out = -1;
    if (at == NULL) {
        return ME_OK;
    }
    if (head->has_number) {
        *gpu_out = me_log_number(at, "", -1);
        return ME_OK;
    }
    *gpu_out = number_of(gpus, at, strcspn(at, ", \r\n"));
    return *gpu_out >= 0 ? ME_OK
           : gpus->count == MAX_GPUS
               ? me_fail_at(diag, ME_ERR_SYNTAX, profile->name, 0,
                            "samples of over %d GPUs", MAX_GPUS)
               : me_log_no_memory(profile, diag);
}

/** A sample of a GPU. */
static me_status add_sample(me_profile *profile, const char *line,
                            const smi_head *head, smi_gpus *gpus, int number,
                            me_diag *diag)
{
    const char *at = find_field(line, head->used);
    uint64_t bytes = 0;
    if (find_field(line, head->count) != NULL) {
        return me_fail_at(diag, ME_ERR_SYNTAX, profile->name, number,
                          "more fields than the head's %d", head->count);
    }
    if (at == NULL || !me_log_bytes(at, &field_mib, &bytes)) {
        return me_fail_at(diag, ME_ERR_SYNTAX, profile->name, number,
                          "no number of MiB in the column memory.used");
    }
    int32_t gpu = -1;
    const me_status status = read_gpu(profile, line, head, gpus, &gpu, diag);
    if (status != ME_OK) {
        return status;
    }
    me_profile_rank *rank = me_profile_rank_add(profile, gpu);
    if (rank == NULL) {
        return me_log_no_memory(profile, diag);
    }
    me_profile_raise(rank, ME_QUANTITY_DEVICE_PEAK, bytes);
    return ME_OK;
}

/** Is it what a run that was stopped wrote last, without the bytes or the GPU, or
 *  with a part of them? */
static bool is_cut(const me_profile *profile, const char *line,
                   const smi_head *head)
{
    const char *used = find_field(line, head->used);
    const char *gpu = head->gpu < 0 ? used : find_field(line, head->gpu);
    uint64_t bytes = 0;
    return profile->is_cut &&
           (used == NULL || gpu == NULL || me_log_goes_on(used, 0) ||
            me_log_goes_on(gpu, 0) || !me_log_bytes(used, &field_mib, &bytes));
}

static me_status read_csv(me_profile *profile, FILE *file, me_diag *diag)
{
    char line[LINE_BYTES];
    me_status status = ME_OK;
    profile->rounding = (uint64_t)field_mib.bytes;
    smi_head head;
    smi_gpus gpus = {.count = 0};
    if (fgets(line, sizeof line, file) == NULL || !read_head(line, &head)) {
        return ME_OK;
    }
    if (head.gpu < 0) {
        profile->source = "samples of nvidia-smi, the largest of GPUs that "
                          "they do not tell apart";
    }
    for (int number = 2;
         status == ME_OK && fgets(line, sizeof line, file) != NULL; number++) {
        profile->is_cut = strchr(line, '\n') == NULL && feof(file) != 0;
        if (line[strspn(line, " \r\n")] != '\0' && !read_head(line, &head) &&
            !is_cut(profile, line, &head)) {
            status = add_sample(profile, line, &head, &gpus, number, diag);
        }
    }
    forget(&gpus);
    return status;
}

const me_profile_reader me_nvidia_smi_reader = {"samples of nvidia-smi", is_csv,
                                                read_csv};

/** Is the field a number with or without a unit, a time, or what there is none
 *  of? Names have letters. */
static bool is_value(const char *field, size_t length)
{
    static const char *const units[] = {"", " MiB", " %", " W", " MHz", " C"};
    const size_t digits = strspn(field, "0123456789./:- ");
    size_t number = digits < length ? digits : length;
    while (number > 0 && field[number - 1] == ' ') {
        number--;
    }
    for (size_t i = 0; number > 0 && i < sizeof units / sizeof *units; i++) {
        if (strlen(units[i]) == length - number &&
            strncmp(field + number, units[i], length - number) == 0) {
            return true;
        }
    }
    return length == 5 && strncmp(field, "[N/A]", 5) == 0;
}

/** Lines of values as `noheader` leaves them: which one is memory.used they do
 *  not say. */
static bool is_nameless(const char *head, size_t length)
{
    char line[LINE_BYTES];
    if (!copy_first_line(head, length, line)) {
        return false;
    }
    bool has_whole = false;
    int n_fields = 0;
    for (const char *at = line; at != NULL; at = find_field(at, 1)) {
        const size_t field = strcspn(at, ",");
        if (!is_value(at, field)) {
            return false;
        }
        has_whole = has_whole || isdigit((unsigned char)*at) != 0;
        n_fields++;
    }
    return has_whole && (n_fields > 1 || strstr(line, " MiB") != NULL);
}

static me_status refuse_nameless(me_profile *profile, FILE *file, me_diag *diag)
{
    (void)file;
    return me_fail_at(diag, ME_ERR_SYNTAX, profile->name, 1,
                      "samples of nvidia-smi without names of columns: leave "
                      "noheader out, or put the line that it left out before "
                      "them, such as 'index, memory.used [MiB]'");
}

const me_profile_reader me_nvidia_smi_nameless_reader = {
    "samples of nvidia-smi", is_nameless, refuse_nameless};

/** Columns of a table of `dmon` or `pmon`; -1: not known. */
typedef struct monitor {
    int gpu;
    int used;
} monitor;

/** The next word of a line whose words are apart by blanks, or by commas
 *  (--format csv). @return its length; 0: none is left */
static size_t next_word(const char **at)
{
    *at += strspn(*at, " ,\t");
    return strcspn(*at, " ,\t\r\n");
}

static const char *word_at(const char *line, int column)
{
    const char *at = line;
    for (int i = 0;; i++) {
        const size_t length = next_word(&at);
        if (length == 0) {
            return NULL;
        }
        if (i == column) {
            return at;
        }
        at += length;
    }
}

/** `# gpu   fb  bar1`, which comes again and again, above a line of units. */
static bool read_names(const char *line, monitor *m)
{
    const char *at = line + strspn(line, "# ");
    monitor found = {-1, -1};
    size_t length = next_word(&at);
    for (int i = 0; length > 0; i++) {
        if (length == 3 && strncmp(at, "gpu", 3) == 0) {
            found.gpu = i;
        } else if (length == 2 && strncmp(at, "fb", 2) == 0) {
            found.used = i;
        }
        at += length;
        length = next_word(&at);
    }
    if (found.gpu >= 0) {
        *m = found;
    }
    return found.gpu >= 0;
}

static bool is_monitor(const char *head, size_t length)
{
    char line[LINE_BYTES];
    monitor m;
    return copy_first_line(head, length, line) && line[0] == '#' &&
           read_names(line, &m);
}

/** A row; of a GPU that has none of it, "-". Of processes of one GPU that of
 *  the largest counts, since all others are not the job's. */
static me_status read_row(me_profile *profile, const monitor *m,
                          const char *line, int number, me_diag *diag)
{
    const char *gpu = word_at(line, m->gpu);
    const char *used = word_at(line, m->used);
    uint64_t bytes = 0;
    if (gpu == NULL || used == NULL ||
        (profile->is_cut &&
         (me_log_goes_on(gpu, 0) || me_log_goes_on(used, 0)))) {
        return ME_OK; // the last line of a run that was stopped
    }
    if (*used == '-') {
        return ME_OK;
    }
    const int32_t index = me_log_number(gpu, "", -1);
    if (index < 0 || !me_log_bytes(used, &word_mib, &bytes)) {
        return me_fail_at(diag, ME_ERR_SYNTAX, profile->name, number,
                          "no GPU and number of MB in the columns gpu and fb");
    }
    me_profile_rank *rank = me_profile_rank_add(profile, index);
    if (rank == NULL) {
        return me_log_no_memory(profile, diag);
    }
    me_profile_raise(rank, ME_QUANTITY_DEVICE_PEAK, bytes);
    return ME_OK;
}

static me_status read_monitor(me_profile *profile, FILE *file, me_diag *diag)
{
    char line[LINE_BYTES];
    monitor m = {-1, -1};
    me_status status = ME_OK;
    profile->rounding = (uint64_t)field_mib.bytes;
    for (int number = 1;
         status == ME_OK && fgets(line, sizeof line, file) != NULL; number++) {
        profile->is_cut = strchr(line, '\n') == NULL && feof(file) != 0;
        if (line[0] == '#') {
            (void)read_names(line, &m);
        } else if (m.used < 0) {
            return me_fail_at(diag, ME_ERR_SYNTAX, profile->name, number,
                              "a table of nvidia-smi without the column fb: "
                              "-s m gives it");
        } else {
            status = read_row(profile, &m, line, number, diag);
        }
    }
    return status;
}

const me_profile_reader me_nvidia_smi_monitor_reader = {
    "samples of nvidia-smi dmon or pmon", is_monitor, read_monitor};

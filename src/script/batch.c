/* SPDX-License-Identifier: BSD-3-Clause */
#include "script/batch.h"

#include "base/parse.h"
#include "base/str.h"
#include "config/flags.h"
#include "config/slurm.h"
#include "config/slurm_options.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    FILE_BYTES = 1 << 16, /**< that are looked at */
    MOST = 1 << 20        /**< nodes or tasks */
};

/** How an option's value is taken. */
typedef enum use {
    NUMBER, /**< into a uint32_t */
    TEXT,   /**< into a text */
    SWITCH  /**< has no value */
} use;

typedef struct option {
    const char *names; /**< without dashes, bars between them */
    use use;
    size_t offset;
    size_t size;
} option;

#define NUMBER_OF(names, member)                                               \
    {                                                                          \
        names, NUMBER, offsetof(me_batch, member), 0                           \
    }
#define TEXT_OF(names, member)                                                 \
    {                                                                          \
        names, TEXT, offsetof(me_batch, member), sizeof((me_batch *)0)->member \
    }

/** Those that say something here, of config/slurm_options.h. */
static const option options[] = {
    NUMBER_OF("nodes", nodes),
    NUMBER_OF("ntasks", tasks),
    NUMBER_OF("ntasks-per-node|tasks-per-node", tasks_per_node),
    NUMBER_OF("ntasks-per-gpu|ntasks-per-tres", tasks_per_gpu),
    NUMBER_OF("cpus-per-task", cpus_per_task),
    NUMBER_OF("array", first_of_array),
    TEXT_OF("gres", gres),
    TEXT_OF("gpus", gpus),
    TEXT_OF("constraint", constraint),
    TEXT_OF("gpus-per-node", gpus_per_node),
    TEXT_OF("gpus-per-task", gpus_per_task),
    TEXT_OF("tres-per-task", tres_per_task),
    TEXT_OF("mem", mem),
    TEXT_OF("mem-per-gpu", mem_per_gpu),
    TEXT_OF("mem-per-cpu", mem_per_cpu),
    TEXT_OF("job-name", name),
    TEXT_OF("nodelist", node_list),
    TEXT_OF("partition", partition),
    TEXT_OF("account", account),
    TEXT_OF("chdir", folder),
    TEXT_OF("export", exported),
    TEXT_OF("wrap", wrapped),
    {"parsable", SWITCH, offsetof(me_batch, is_parsable), 0},
};

static const option *find_option(const char *name)
{
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (me_words_have(options[i].names, strlen(options[i].names), name)) {
            return &options[i];
        }
    }
    return NULL;
}

static void fail(me_batch *batch, const char *word, const char *why)
{
    if (batch->wrong[0] == '\0') {
        (void)snprintf(batch->wrong, sizeof batch->wrong, "%.80s: %s", word,
                       why);
    }
}

static void take(me_batch *batch, const option *o, const char *name,
                 const char *value)
{
    char *at = (char *)batch + o->offset;
    char digits[24];
    char word[128];
    uint64_t number = 0;
    if (o->use == SWITCH) {
        *(bool *)(void *)at = true;
        return;
    }
    if (o->use == TEXT) {
        (void)snprintf(at, o->size, "%s", value);
        return;
    }
    const size_t length = strspn(value, "0123456789");
    (void)snprintf(digits, sizeof digits, "%.*s", (int)length, value);
    const bool is_array = o->offset == offsetof(me_batch, first_of_array);
    // -N2-2 is a range of one number
    const bool is_range = o->offset == offsetof(me_batch, nodes) &&
                          value[length] == '-' &&
                          strcmp(value + length + 1, digits) == 0;
    batch->is_array = batch->is_array || is_array;
    if (is_array) {
        (void)snprintf(batch->array, sizeof batch->array, "%s", value);
    }
    if (me_parse_u64(digits, &number) == ME_OK && number <= MOST &&
        (number > 0 || is_array) &&
        (value[length] == '\0' || is_array || is_range)) {
        *(uint32_t *)(void *)at = (uint32_t)number;
        return;
    }
    (void)snprintf(word, sizeof word, "--%s %.60s", name, value);
    fail(batch, word,
         value[length] == '\0' && length > 0 && number == 0
             ? "must be above 0"
             : "must be a whole number: of a range the one that will run");
}

int me_batch_read_words(me_batch *batch, int argc, const char *const *argv)
{
    me_slurm_words words = {
        .program = ME_SLURM_SBATCH, .argc = argc, .argv = argv};
    while (words.at < argc) {
        char why[ME_SLURM_WHY];
        const char *word = argv[words.at];
        const me_slurm_read read = me_slurm_words_next(&words);
        if (read == ME_SLURM_END) {
            break;
        }
        const option *o =
            read == ME_SLURM_OPTION ? find_option(words.name) : NULL;
        if (o != NULL) {
            take(batch, o, words.name, words.value == NULL ? "" : words.value);
        } else if (read != ME_SLURM_OPTION) {
            if (me_slurm_words_explain(&words, read, word, why)) {
                fail(batch, word, why);
            }
            words.at += read == ME_SLURM_FOREIGN ? 0 : 1;
            words.letter = 0;
        }
    }
    return words.at;
}

void me_batch_take(me_batch *batch, const char *name, const char *value)
{
    const option *o = find_option(name);
    if (o != NULL) {
        take(batch, o, name, value);
    }
}

/** sbatch(1), "input environment variables". */
static const struct {
    const char *name;
    const char *option;
} inputs[] = {
    {"SBATCH_ACCOUNT", "account"},
    {"SBATCH_ARRAY_INX", "array"},
    {"SBATCH_CONSTRAINT", "constraint"},
    {"SBATCH_EXPORT", "export"},
    {"SBATCH_GPUS", "gpus"},
    {"SBATCH_GPUS_PER_NODE", "gpus-per-node"},
    {"SBATCH_GPUS_PER_TASK", "gpus-per-task"},
    {"SBATCH_GRES", "gres"},
    {"SBATCH_JOB_NAME", "job-name"},
    {"SBATCH_MEM_PER_CPU", "mem-per-cpu"},
    {"SBATCH_MEM_PER_GPU", "mem-per-gpu"},
    {"SBATCH_MEM_PER_NODE", "mem"},
    {"SBATCH_PARTITION", "partition"},
};

void me_batch_read_environment(me_batch *batch)
{
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        const char *name = inputs[i].option;
        const char *value = getenv(inputs[i].name);
        if (value != NULL) {
            take(batch, find_option(name), name, value);
        }
    }
}

/** The words of one line, as sbatch splits it: quotes hold blanks, `#` ends
 *  it. */
static void take_line(me_batch *batch, char *line)
{
    enum {
        WORDS = 64
    };

    const char *words[WORDS];
    int n = 0;
    char *to = line;
    for (const char *at = line; n < WORDS && *at != '\0' && *at != '#';) {
        at += strspn(at, " \t");
        if (*at == '\0' || *at == '#') {
            break;
        }
        words[n++] = to;
        char quote = '\0';
        while (*at != '\0' && (quote != '\0' || (*at != ' ' && *at != '\t'))) {
            if (quote == '\0' && (*at == '"' || *at == '\'')) {
                quote = *at;
            } else if (*at == quote) {
                quote = '\0';
            } else {
                *to++ = *at;
            }
            at++;
        }
        at += *at != '\0';
        *to++ = '\0';
    }
    for (int at = 0; at < n; at++) {
        at += me_batch_read_words(batch, n - at, words + at);
    }
}

/** The beginning of a file, in lines. */
static bool read_beginning(const char *path, char text[FILE_BYTES])
{
    const int fd = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, FILE_BYTES - 1);
    if (fd >= 0) {
        (void)close(fd);
    }
    text[n < 0 ? 0 : n] = '\0';
    return n > 0;
}

/** `hetjob`: what follows asks for another part of a heterogeneous job; a step
 *  runs on the first, unless srun's --het-group says another. */
static bool is_next_part(const char *line)
{
    static const char *const words[] = {"hetjob", "packjob"};
    line += strspn(line, " \t");
    return me_is_one_of(line, strcspn(line, " \t#"), words, 2);
}

/** `#SBATCH` lines count up to the first line that is neither empty nor a
 *  comment. @p batch may be NULL. @return whether there is one */
static bool take_lines(me_batch *batch, char *text)
{
    static const char mark[] = "#SBATCH";
    bool has_one = false;
    while (*text != '\0') {
        const size_t length = strcspn(text, "\n");
        char *next = text + length + (text[length] == '\n');
        text[length] = '\0';
        text[strcspn(text, "\r")] = '\0';
        const size_t blanks = strspn(text, " \t");
        if (text[blanks] != '\0' && text[blanks] != '#') {
            break;
        }
        if (strncmp(text, mark, sizeof mark - 1) == 0) {
            has_one = true;
            if (is_next_part(text + sizeof mark - 1)) {
                break;
            }
            if (batch != NULL) {
                take_line(batch, text + sizeof mark - 1);
            }
        }
        text = next;
    }
    return has_one;
}

/** Behind a byte order mark, which sbatch refuses and people do not see. */
static char *skip_mark(char *text)
{
    static const char mark[] = "\xef\xbb\xbf";
    return text + (strncmp(text, mark, sizeof mark - 1) == 0 ? 3 : 0);
}

bool me_batch_is_file(const char *path)
{
    char text[FILE_BYTES];
    return read_beginning(path, text) && take_lines(NULL, skip_mark(text));
}

const char *me_batch_file_refusal(const char *path)
{
    char text[FILE_BYTES];
    if (!read_beginning(path, text) || strncmp(text, "#!", 2) != 0) {
        return "no batch script: its first line must begin with #! and an "
               "interpreter";
    }
    return strstr(text, "\r\n") != NULL
               ? "sbatch refuses its line ends, which are those of Windows: "
                 "dos2unix mends it"
               : NULL;
}

void me_batch_read_file(me_batch *batch, const char *path)
{
    char text[FILE_BYTES];
    if (read_beginning(path, text)) {
        (void)take_lines(batch, text);
    }
}

static void set_number(const char *name, uint64_t number)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, number);
    (void)setenv(name, text, 1);
}

static void set_text(const char *name, const char *text)
{
    if (text[0] != '\0') {
        (void)setenv(name, text, 1);
    } else {
        (void)unsetenv(name);
    }
}

/** In MiB. */
static void set_memory(const char *name, const char *said)
{
    uint64_t bytes = 0;
    (void)unsetenv(name);
    if (me_slurm_memory_read(said, &bytes)) {
        set_number(name, bytes >> 20);
    }
}

static void set_gpus(const me_batch *batch, const me_batch_job *job)
{
    const uint64_t count = job->gpus_per_node;
    me_str list = {0};
    set_text("SLURM_GPUS_PER_NODE", batch->gpus_per_node);
    set_text("SLURM_GPUS", batch->gpus);
    set_text("SLURM_GPUS_PER_TASK", job->gpus_per_task);
    set_text("SLURM_TRES_PER_TASK", batch->tres_per_task);
    set_text("MEMEST_GRES", batch->gpus_per_node[0] == '\0' ? batch->gres : "");
    set_text("MEMEST_CONSTRAINT", batch->constraint);
    if (count == 0 || count > 64) {
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        me_str_printf(&list, "%s%" PRIu64, i == 0 ? "" : ",", i);
    }
    set_number("SLURM_GPUS_ON_NODE", count);
    set_text("SLURM_JOB_GPUS", me_str_text(&list));
    set_text("CUDA_VISIBLE_DEVICES", me_str_text(&list));
    me_str_fini(&list);
}

void me_batch_node_list(uint32_t nodes, char text[ME_BATCH_LIST])
{
    (void)snprintf(text, ME_BATCH_LIST,
                   nodes == 1 ? "node1" : "node[1-%" PRIu32 "]", nodes);
}

/** `8(x2)`, or `8`: so many nodes have so many. */
static void add_nodes(char text[ME_BATCH_LIST], uint64_t each, uint64_t nodes)
{
    const size_t length = strlen(text);
    const char *comma = length == 0 ? "" : ",";
    if (nodes == 1) {
        (void)snprintf(text + length, ME_BATCH_LIST - length, "%s%" PRIu64,
                       comma, each);
    } else if (nodes > 1) {
        (void)snprintf(text + length, ME_BATCH_LIST - length,
                       "%s%" PRIu64 "(x%" PRIu64 ")", comma, each, nodes);
    }
}

void me_batch_per_node(const me_batch_job *job, uint64_t times,
                       char text[ME_BATCH_LIST])
{
    const uint64_t each = job->tasks / job->nodes;
    const uint64_t rest = job->tasks % job->nodes;
    text[0] = '\0';
    add_nodes(text, (each + 1) * times, rest);
    add_nodes(text, each * times, job->nodes - rest);
}

static void set_cpus(const me_batch *batch, const me_batch_job *job)
{
    char text[ME_BATCH_LIST];
    const uint64_t each = batch->cpus_per_task > 0 ? batch->cpus_per_task : 1;
    const uint64_t tasks = (job->tasks + job->nodes - 1) / job->nodes;
    (void)unsetenv("SLURM_CPUS_PER_TASK");
    if (batch->cpus_per_task > 0) {
        set_number("SLURM_CPUS_PER_TASK", batch->cpus_per_task);
    }
    set_number("SLURM_CPUS_ON_NODE", each * tasks);
    me_batch_per_node(job, each, text);
    set_text("SLURM_JOB_CPUS_PER_NODE", text);
}

static void set_tasks(const me_batch *batch, const me_batch_job *job)
{
    char text[ME_BATCH_LIST];
    const uint32_t nodes = job->nodes;
    set_number("SLURM_NNODES", nodes);
    set_number("SLURM_JOB_NUM_NODES", nodes);
    (void)unsetenv("SLURM_NTASKS");
    (void)unsetenv("SLURM_NPROCS");
    (void)unsetenv("SLURM_STEP_NUM_TASKS"); // of a step that sbatch stands in
    if (job->has_tasks) {
        set_number("SLURM_NTASKS", job->tasks);
        set_number("SLURM_NPROCS", job->tasks);
    }
    if (job->is_nodes_guess) {
        set_number("MEMEST_ASSUMED_NODES", nodes);
    }
    (void)unsetenv("SLURM_NTASKS_PER_NODE");
    if (batch->tasks_per_node > 0) {
        set_number("SLURM_NTASKS_PER_NODE", batch->tasks_per_node);
    }
    me_batch_per_node(job, 1, text);
    set_text("SLURM_TASKS_PER_NODE", text);
    me_batch_node_list(nodes, text);
    set_text("SLURM_JOB_NODELIST", text);
    set_text("SLURM_NODELIST", text);
}

/** `2-5%2`, `0,4-10:3`: how many tasks, and which are the first and the last
 *  (slurm_parse_array_tok()). */
static void set_array(const me_batch *batch)
{
    uint64_t count = 0;
    unsigned long last = 0;
    unsigned long least = ULONG_MAX;
    unsigned long step = 1;
    for (const char *at = batch->array; *at != '\0' && *at != '%';) {
        char *end = NULL;
        const unsigned long from = strtoul(at, &end, 10);
        const unsigned long to =
            *end == '-' ? strtoul(end + 1, &end, 10) : from;
        step = *end == ':' ? strtoul(end + 1, &end, 10) : 1;
        if (to < from || to - from > MOST || step == 0) {
            break;
        }
        count += (to - from) / step + 1;
        least = from < least ? from : least;
        last = from + (to - from) / step * step;
        at = end + strcspn(end, ",%");
        at += *at == ',';
    }
    set_text("SLURM_ARRAY_JOB_ID", "1");
    set_number("SLURM_ARRAY_TASK_ID", batch->first_of_array);
    if (count > 0) {
        set_number("SLURM_ARRAY_TASK_COUNT", count);
        set_number("SLURM_ARRAY_TASK_MIN", least);
        set_number("SLURM_ARRAY_TASK_MAX", last);
        set_number("SLURM_ARRAY_TASK_STEP", step);
    }
}

const char *me_batch_partition(const me_batch *batch)
{
    return batch->partition[0] == '\0' ? ME_SLURM_NO_PARTITION
                                       : batch->partition;
}

void me_batch_set_variables(const me_batch *batch, const me_batch_job *job)
{
    static const char *const zeros[] = {"SLURM_PROCID", "SLURM_NODEID",
                                        "SLURM_LOCALID", "SLURM_GTIDS"};
    set_tasks(batch, job);
    set_cpus(batch, job);
    set_gpus(batch, job);
    set_memory("SLURM_MEM_PER_NODE", batch->mem);
    set_memory("SLURM_MEM_PER_GPU", batch->mem_per_gpu);
    set_memory("SLURM_MEM_PER_CPU", batch->mem_per_cpu);
    set_text("SLURM_JOB_ID", "1");
    set_text("SLURM_JOBID", "1");
    set_text("SLURM_JOB_NAME", batch->name[0] == '\0' ? "job" : batch->name);
    set_text("SLURM_JOB_PARTITION", me_batch_partition(batch));
    set_text("SLURM_JOB_ACCOUNT", batch->account);
    set_text("SLURM_CLUSTER_NAME", "cluster");
    set_text("SLURMD_NODENAME", "node1");
    for (size_t i = 0; i < sizeof zeros / sizeof *zeros; i++) {
        set_text(zeros[i], "0");
    }
    if (batch->is_array) {
        set_array(batch);
    }
}

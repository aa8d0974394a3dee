/* SPDX-License-Identifier: BSD-3-Clause */
#include "script/batch.h"

#include "base/parse.h"
#include "base/str.h"
#include "config/slurm.h"

#include <fcntl.h>
#include <inttypes.h>
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
    SWITCH, /**< has no value, says nothing here */
    OTHER
} use;

typedef struct option {
    const char *names; /**< blanks around each */
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

/** clang-format off */
static const option options[] = {
    NUMBER_OF(" -N --nodes ", nodes),
    NUMBER_OF(" -n --ntasks ", tasks),
    NUMBER_OF(" --ntasks-per-node ", tasks_per_node),
    NUMBER_OF(" --ntasks-per-gpu ", tasks_per_gpu),
    NUMBER_OF(" -c --cpus-per-task ", cpus_per_task),
    NUMBER_OF(" -a --array ", first_of_array),
    TEXT_OF(" --gres ", gres),
    TEXT_OF(" -G --gpus ", gpus),
    TEXT_OF(" -C --constraint ", constraint),
    TEXT_OF(" --gpus-per-node ", gpus_per_node),
    TEXT_OF(" --gpus-per-task ", gpus_per_task),
    TEXT_OF(" -J --job-name ", name),
    TEXT_OF(" -p --partition ", partition),
    TEXT_OF(" -A --account ", account),
    TEXT_OF(" -D --chdir ", folder),
    TEXT_OF(" --export ", exported),
    TEXT_OF(" --wrap ", wrapped),
    {" --parsable ", SWITCH, offsetof(me_batch, is_parsable), 0},
    {" --exclusive -W --wait -H --hold --requeue --no-requeue -O --overcommit -s "
     "--oversubscribe --contiguous --test-only -v --verbose -Q --quiet "
     "--spread-job --use-min-nodes -k --no-kill --reboot --ignore-pbs --help "
     "-V --version -h --usage -I --immediate --get-user-env ",
     SWITCH, SIZE_MAX, 0},
};

/* clang-format on */

static const option *find_option(const char *word, size_t length)
{
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        const char *names = options[i].names;
        for (const char *at = strchr(names, ' '); at[1] != '\0';
             at = strchr(at + 1, ' ')) {
            if (strncmp(at + 1, word, length) == 0 && at[1 + length] == ' ') {
                return &options[i];
            }
        }
    }
    return NULL;
}

static void take(me_batch *batch, const option *o, const char *word,
                 const char *value)
{
    char *at = (char *)batch + o->offset;
    char digits[24];
    uint64_t number = 0;
    if (o->use == TEXT) {
        (void)snprintf(at, o->size, "%s", value);
        return;
    }
    const size_t length = strspn(value, "0123456789");
    (void)snprintf(digits, sizeof digits, "%.*s", (int)length, value);
    const bool is_array = o->offset == offsetof(me_batch, first_of_array);
    batch->is_array = batch->is_array || is_array;
    if (me_parse_u64(digits, &number) == ME_OK && number <= MOST &&
        (value[length] == '\0' || is_array)) {
        *(uint32_t *)(void *)at = (uint32_t)number;
    } else {
        (void)snprintf(batch->wrong, sizeof batch->wrong, "%.*s %.60s",
                       (int)strcspn(word, "="), word, value);
    }
}

/** One option. @return words that it took; 0: it is none */
static int take_option(me_batch *batch, int left, const char *const *words)
{
    const char *word = words[0];
    const bool is_long = word[0] == '-' && word[1] == '-';
    if (word[0] != '-' || word[1] == '\0') {
        return 0;
    }
    const size_t length = is_long ? strcspn(word, "=") : 2;
    const option *o = find_option(word, length);
    const bool is_attached = word[length] != '\0';
    if (o != NULL && o->use == SWITCH) {
        batch->is_parsable = batch->is_parsable || o->offset != SIZE_MAX;
        return 1;
    }
    if (!is_attached && left < 2) {
        return 1;
    }
    if (o != NULL) {
        take(batch, o, word,
             !is_attached ? words[1]
             : is_long    ? word + length + 1
                          : word + length + (word[length] == '='));
    }
    return is_attached ? 1 : 2;
}

int me_batch_read_words(me_batch *batch, int argc, const char *const *argv)
{
    int at = 0;
    while (at < argc) {
        const int n = take_option(batch, argc - at, argv + at);
        if (n == 0) {
            break;
        }
        at += n;
    }
    return at < argc ? at : argc;
}

/** sbatch(1), "input environment variables". */
static const struct {
    const char *name;
    const char *option;
} inputs[] = {
    {"SBATCH_ACCOUNT", "--account"},
    {"SBATCH_ARRAY_INX", "--array"},
    {"SBATCH_CONSTRAINT", "--constraint"},
    {"SBATCH_EXPORT", "--export"},
    {"SBATCH_GPUS", "--gpus"},
    {"SBATCH_GPUS_PER_NODE", "--gpus-per-node"},
    {"SBATCH_GPUS_PER_TASK", "--gpus-per-task"},
    {"SBATCH_GRES", "--gres"},
    {"SBATCH_JOB_NAME", "--job-name"},
    {"SBATCH_PARTITION", "--partition"},
};

void me_batch_read_environment(me_batch *batch)
{
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        const char *name = inputs[i].option;
        const char *value = getenv(inputs[i].name);
        if (value != NULL) {
            take(batch, find_option(name, strlen(name)), name, value);
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
    for (int at = 0; at < n;) {
        const int taken = take_option(batch, n - at, words + at);
        at += taken == 0 ? 1 : taken;
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
            if (batch != NULL) {
                take_line(batch, text + sizeof mark - 1);
            }
        }
        text = next;
    }
    return has_one;
}

bool me_batch_is_file(const char *path)
{
    char text[FILE_BYTES];
    return read_beginning(path, text) && take_lines(NULL, text);
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

/** GPUs of a node by whatever option says it; 0: none does. */
static uint64_t gpus_of_node(const me_batch *batch, uint32_t nodes)
{
    me_slurm_gpus gpus = {.count = 0};
    if (me_slurm_gpus_read(batch->gpus_per_node, false, &gpus) ||
        me_slurm_gpus_read(batch->gres, true, &gpus)) {
        return gpus.count;
    }
    if (me_slurm_gpus_read(batch->gpus, false, &gpus)) {
        return gpus.count / nodes;
    }
    return me_slurm_gpus_read(batch->gpus_per_task, false, &gpus)
               ? gpus.count * batch->tasks_per_node
               : 0;
}

static void set_gpus(const me_batch *batch, uint32_t nodes)
{
    const uint64_t count = gpus_of_node(batch, nodes);
    me_str list = {0};
    set_text("SLURM_GPUS_PER_NODE", batch->gpus_per_node);
    set_text("SLURM_GPUS", batch->gpus);
    set_text("SLURM_GPUS_PER_TASK", batch->gpus_per_task);
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

static void set_tasks(const me_batch *batch, uint32_t nodes, uint32_t tasks)
{
    char text[64];
    const uint32_t each = (tasks + nodes - 1) / nodes;
    set_number("SLURM_NNODES", nodes);
    set_number("SLURM_JOB_NUM_NODES", nodes);
    set_number("SLURM_NTASKS", tasks);
    set_number("SLURM_NPROCS", tasks);
    (void)unsetenv("SLURM_NTASKS_PER_NODE");
    if (batch->tasks_per_node > 0) {
        set_number("SLURM_NTASKS_PER_NODE", batch->tasks_per_node);
    }
    (void)snprintf(text, sizeof text,
                   nodes == 1 ? "%" PRIu32 : "%" PRIu32 "(x%" PRIu32 ")", each,
                   nodes);
    set_text("SLURM_TASKS_PER_NODE", text);
    (void)snprintf(text, sizeof text,
                   nodes == 1 ? "node1" : "node[1-%" PRIu32 "]", nodes);
    set_text("SLURM_JOB_NODELIST", text);
    set_text("SLURM_NODELIST", text);
    if (batch->cpus_per_task > 0) {
        set_number("SLURM_CPUS_PER_TASK", batch->cpus_per_task);
        set_number("SLURM_CPUS_ON_NODE", (uint64_t)batch->cpus_per_task * each);
    }
}

/** sbatch(1): --ntasks, --ntasks-per-node, or what --ntasks-per-gpu makes of the
 *  GPUs of all nodes. */
static uint32_t tasks_of(const me_batch *batch, uint32_t nodes)
{
    me_slurm_gpus gpus = {.count = 0};
    if (batch->tasks > 0) {
        return batch->tasks;
    }
    if (batch->tasks_per_node > 0 || batch->tasks_per_gpu == 0) {
        return nodes * (batch->tasks_per_node > 0 ? batch->tasks_per_node : 1);
    }
    const uint64_t all = me_slurm_gpus_read(batch->gpus, false, &gpus)
                             ? gpus.count
                             : gpus_of_node(batch, nodes) * nodes;
    const uint64_t tasks = all <= MOST ? all * batch->tasks_per_gpu : 0;
    return tasks > 0 && tasks <= MOST ? (uint32_t)tasks : nodes;
}

void me_batch_set_variables(const me_batch *batch)
{
    static const char *const zeros[] = {"SLURM_PROCID", "SLURM_NODEID",
                                        "SLURM_LOCALID", "SLURM_GTIDS"};
    const uint32_t asked = batch->nodes == 0 ? 1 : batch->nodes;
    const uint32_t tasks = tasks_of(batch, asked);
    const uint32_t nodes =
        batch->nodes == 0 && batch->tasks_per_node > 0
            ? (tasks + batch->tasks_per_node - 1) / batch->tasks_per_node
            : asked;
    set_tasks(batch, nodes, tasks);
    set_gpus(batch, nodes);
    set_text("SLURM_JOB_ID", "1");
    set_text("SLURM_JOBID", "1");
    set_text("SLURM_JOB_NAME", batch->name[0] == '\0' ? "job" : batch->name);
    set_text("SLURM_JOB_PARTITION", batch->partition[0] == '\0'
                                        ? ME_SLURM_NO_PARTITION
                                        : batch->partition);
    set_text("SLURM_JOB_ACCOUNT", batch->account);
    set_text("SLURM_CLUSTER_NAME", "cluster");
    set_text("SLURMD_NODENAME", "node1");
    for (size_t i = 0; i < sizeof zeros / sizeof *zeros; i++) {
        set_text(zeros[i], "0");
    }
    if (batch->is_array) {
        set_text("SLURM_ARRAY_JOB_ID", "1");
        set_number("SLURM_ARRAY_TASK_ID", batch->first_of_array);
    }
}

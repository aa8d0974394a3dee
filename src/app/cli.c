/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/cli_flag.h"

#include <stddef.h>
#include <string.h>

#define AT(member) offsetof(me_cli, member)

static const me_cli_flag flags[] = {
    {"--model", "-m", "FILE|NAME", FLAG_NAME, AT(model),
     "job or model: a .cfg file, a Hugging Face config.json, a .toml of "
     "torchtitan, or a name of configs/models"},
    {"--set", NULL, "KEY=VALUE", FLAG_SET, AT(sets),
     "set one option; wins over file and launch command (memest options)"},
    {"--schedule", NULL, "NAME[:CHUNKS]", FLAG_SCHEDULE, AT(schedules),
     "a schedule for compare; may be repeated"},
    {"--variant", NULL, "[NAME:]KEY=VALUE,…", FLAG_VARIANT, AT(variants),
     "options for compare to set beside the job's; may be repeated"},
    {"--world-size", NULL, "N", FLAG_COUNT, AT(world_size),
     "training ranks to simulate"},
    {"--memory-limit", NULL, "SIZE", FLAG_TEXT, AT(memory_limit),
     "what PyTorch's allocator may reserve on a rank, such as 70GiB"},
    {"--alloc-conf", NULL, "CONF", FLAG_TEXT, AT(alloc_conf),
     "as PYTORCH_CUDA_ALLOC_CONF"},
    {"--device", NULL, "NAME|FILE|auto", FLAG_NAME, AT(device),
     "the card: a name of configs/cards, a file of one, or the machine's"},
    {"--device-index", NULL, "N", FLAG_NUMBER, AT(device_index),
     "whose trace of a snapshot replay takes, where several have one"},
    {"--machine", NULL, "NAME|FILE", FLAG_NAME, AT(machine),
     "what joins GPUs: a name of configs/machines, a file, lstopo's XML"},
    {"--format", NULL, "text|json|csv|html", FLAG_NAME, AT(format),
     "of the report; text if not given"},
    {"--json-ranks", NULL, "all|classes", FLAG_NAME, AT(json_ranks),
     "a record of JSON for every rank (the default) or for equal ones together"},
    {"--output", "-o", "FILE", FLAG_NAME, AT(output),
     "write the report to a file, whole or not at all"},
    {"--events", NULL, "FILE", FLAG_NAME, AT(events),
     "write every allocation and free of one iteration of one rank"},
    {"--rank", NULL, "R", FLAG_NUMBER, AT(rank),
     "whose events, program or modules, or of track; 0"},
    {"--iteration", NULL, "N", FLAG_NUMBER, AT(iteration),
     "of --events, or of track's modules; 1"},
    {"--course", NULL, NULL, FLAG_SWITCH, AT(course),
     "put the memory over the course of iteration 1 into the JSON"},
    {"--dump", NULL, "STAGE", FLAG_NAME, AT(dump),
     "print config, plan, program or modules and stop"},
    {"--pp", NULL, "N", FLAG_COUNT, AT(pp), "pipeline ranks of schedule"},
    {"--microbatches", NULL, "N", FLAG_COUNT, AT(microbatches),
     "micro-batches of schedule"},
    {"--chunks", NULL, "N", FLAG_COUNT, AT(chunks),
     "stages of each rank of schedule"},
    {"--group-size", NULL, "N", FLAG_COUNT, AT(group_size),
     "micro-batches that a chunk runs in a row, of schedule interleaved"},
    {"--in-flight", NULL, "N", FLAG_COUNT, AT(in_flight),
     "chunk micro-batches that a rank may hold, of schedule zb_auto, v_auto"},
    {"--durations", NULL, "F=1,I=1,…", FLAG_NAME, AT(durations),
     "ticks of F, I, W, B, FB and comm, of schedule; of compare in place of "
     "predicted times"},
    {"--comms", NULL, NULL, FLAG_SWITCH, AT(comms),
     "sends and receives as well, of schedule"},
    {"--blocking", NULL, NULL, FLAG_SWITCH, AT(blocking),
     "transfers are waited for, of schedule 1f1b and interleaved"},
    {"--legacy-b", NULL, NULL, FLAG_SWITCH, AT(legacy_b),
     "B of the file is the input's gradient and BW both, of schedule"},
    {"--tool", NULL, "mem|fsdp2|mod|memory|runtime|sac|ilp|comm", FLAG_NAME,
     AT(tool),
     "which of PyTorch's tools track is: MemTracker (the default), "
     "FSDPMemTracker, ModTracker, MemoryTracker, RuntimeEstimator, "
     "SACEstimator, what to checkpoint selectively, or a list of collectives"},
    {"--budget", NULL, "N", FLAG_TEXT, AT(budget),
     "GiB that a rank may take, of track --tool ilp; the part of its memory that a "
     "module may keep, of --tool sac"},
    {"--shards", NULL, "N", FLAG_COUNT, AT(shards),
     "ranks that parameters and gradients are spread over, of track --tool ilp; 1"},
    {"--top", NULL, "N", FLAG_COUNT, AT(top),
     "operations of the summary of track --tool memory; 20"},
    {"--load", NULL, "FILE", FLAG_NAME, AT(load),
     "a series that track --tool memory --format json wrote"},
    {"--as-memtracker", NULL, NULL, FLAG_SWITCH, AT(as_memtracker),
     "what PyTorch's own tool would say, of track"},
    {"--input-inside", NULL, NULL, FLAG_SWITCH, AT(input_inside),
     "the batch is made while the tool listens: an activation, of track"},
    {"--depth", NULL, "N", FLAG_COUNT, AT(depth),
     "names of a module's path at most, of track; 2"},
    {"--units", NULL, "B|KiB|MiB|GiB", FLAG_NAME, AT(units),
     "of the text of track; B"},
    {"--tabulate", NULL, NULL, FLAG_SWITCH, AT(tabulate),
     "tables in the text of track"},
    {"--launch", NULL, "N", FLAG_COUNT, AT(launch),
     "which of the jobs that a script launches"},
    {"--trust", NULL, NULL, FLAG_SWITCH, AT(trust),
     "run a script even where the machine cannot keep it from doing harm"},
    {"--strict", NULL, NULL, FLAG_SWITCH, AT(strict),
     "what is not modelled is an error"},
    {"--no-fold", NULL, NULL, FLAG_SWITCH, AT(no_fold),
     "simulate every rank, equal ones too"},
    {"--threads", NULL, "N", FLAG_COUNT, AT(threads),
     "host threads of each process; as many as it has CPUs"},
    {"--require-fit", NULL, NULL, FLAG_SWITCH, AT(require_fit),
     "exit 3 if the job does not fit, 4 if nobody can say"},
    {"--log-level", NULL, "LEVEL", FLAG_NAME, AT(log_level),
     "error, warn, info, debug or trace (also MEMEST_LOG)"},
    {"--log-file", NULL, "FILE", FLAG_NAME, AT(log_file),
     "where messages go instead of stderr"},
    {"--help", "-h", NULL, FLAG_SWITCH, AT(help), "this text"},
    {"--version", NULL, NULL, FLAG_SWITCH, AT(version), "memest's version"},
};

enum {
    N_FLAGS = sizeof flags / sizeof flags[0]
};

_Static_assert(N_FLAGS <= 64, "me_cli.given has a bit for each flag");

/** Flags of `schedule` that no job has; a new one is written here too. */
#define SCHEDULE_FLAGS                                                         \
    " --pp --microbatches --chunks --group-size --in-flight --durations "      \
    "--comms --blocking --legacy-b "

/** Flags of `track` that no other command has. */
#define TRACK_FLAGS                                                            \
    " --tool --as-memtracker --input-inside --depth --units --tabulate "       \
    "--top --load --budget --shards "

static const me_cli_command commands[] = {
    {"estimate", NULL, NULL, "how much memory every rank takes (the default)"},
    {"check", NULL, NULL, "the verdict alone: exit 0 if it fits, 3 if not"},
    {"compare", NULL,
     " --model --set --schedule --variant --durations --world-size "
     "--memory-limit --alloc-conf --device --machine --format --output "
     "--course --launch --trust --strict --no-fold --threads --require-fit "
     "-- ",
     "schedules and settings of one job in one table"},
    {"replay", "FILE|-",
     " --memory-limit --alloc-conf --device --device-index --format --output "
     "--require-fit ",
     "feed a recorded stream through the allocator"},
    {"schedule", "NAME|FILE.csv|list", SCHEDULE_FLAGS "--format --output ",
     "draw a pipeline's order, count it, convert it"},
    {"track", NULL,
     TRACK_FLAGS "--model --set --world-size --device --rank --iteration "
                 "--format --output --launch --trust --strict -- ",
     "what PyTorch's own memory tools say of a rank"},
    {"options", NULL, " --format --output ",
     "every option with its type, default and meaning"},
};

static const char every_command[] = " --log-level --log-file --help --version ";

/** Flags that only a command has that lists them. */
static const char not_of_jobs[] =
    SCHEDULE_FLAGS TRACK_FLAGS "--schedule --variant --device-index ";

/** A flag that changes nothing without one of others, or beside them; of
 *  commands that take those. */
static const struct {
    const char *flag;
    const char *needs;    /**< one of these, a space around each; or NULL */
    const char *not_with; /**< none of these; or NULL */
} conditions[] = {
    {"--rank", " --events --dump ", NULL},
    {"--iteration", " --events ", NULL},
    {"--events", NULL, " --dump "},
    {"--course", NULL, " --dump "},
    {"--json-ranks", NULL, " --dump "},
    {"--require-fit", NULL, " --dump "},
    {"--no-fold", NULL, " --dump "},
    {"--load", NULL,
     " --model --set --world-size --device --rank --iteration --strict "
     "--as-memtracker --input-inside "},
};

enum {
    N_CONDITIONS = sizeof conditions / sizeof conditions[0],
    N_COMMANDS = sizeof commands / sizeof commands[0]
};

static bool is_name(const char *name, const char *word, size_t length)
{
    return name != NULL && strlen(name) == length &&
           strncmp(name, word, length) == 0;
}

static const me_cli_flag *find_flag(const char *word, size_t length)
{
    for (int i = 0; i < N_FLAGS; i++) {
        if (is_name(flags[i].name, word, length) ||
            is_name(flags[i].short_name, word, length)) {
            return &flags[i];
        }
    }
    return NULL;
}

static bool may_repeat(const me_cli_flag *f)
{
    return f->kind == FLAG_SWITCH || f->kind == FLAG_SET ||
           f->kind == FLAG_SCHEDULE || f->kind == FLAG_VARIANT;
}

/** One flag and its value. @return words that it took; 0 on failure */
static int read_flag(me_cli *cli, int left, char **words, me_diag *diag)
{
    const char *equals = strchr(words[0], '=');
    const size_t length =
        equals == NULL ? strlen(words[0]) : (size_t)(equals - words[0]);
    const me_cli_flag *f = find_flag(words[0], length);
    if (f == NULL) {
        (void)me_fail(diag, ME_ERR_CONFIG,
                      "%s: no such flag; memest --help lists them, and a "
                      "launch command goes after --",
                      words[0]);
        return 0;
    }
    const uint64_t bit = UINT64_C(1) << (unsigned)(f - flags);
    if ((cli->given & bit) != 0 && !may_repeat(f)) {
        (void)me_fail(diag, ME_ERR_CONFIG, "%s is given twice", f->name);
        return 0;
    }
    cli->given |= bit;
    if (f->kind == FLAG_SWITCH) {
        if (equals != NULL) {
            (void)me_fail(diag, ME_ERR_CONFIG, "%s takes no value", f->name);
            return 0;
        }
        return me_cli_store(cli, f, NULL, diag) == ME_OK ? 1 : 0;
    }
    if (equals == NULL && left < 2) {
        (void)me_fail(diag, ME_ERR_CONFIG, "%s needs a value: %s", f->name,
                      f->value);
        return 0;
    }
    const char *value = equals == NULL ? words[1] : equals + 1;
    if (me_cli_store(cli, f, value, diag) != ME_OK) {
        return 0;
    }
    return equals == NULL ? 2 : 1;
}

/** The command that a word names; NULL: none. */
static const me_cli_command *find_command(const char *word, me_diag *diag)
{
    for (int i = 0; i < N_COMMANDS; i++) {
        if (strcmp(word, commands[i].name) == 0) {
            return &commands[i];
        }
    }
    (void)me_fail(diag, ME_ERR_CONFIG,
                  "%s: no such command; estimate, check, compare, replay, "
                  "schedule, track and options are, and help of one",
                  word);
    return NULL;
}

/** The first word, if it is a command; else the default one. NULL: none. What
 *  comes next is at @p next_out. */
static const me_cli_command *read_command(int argc, char **argv, me_diag *diag,
                                          me_cli *cli, int *next_out)
{
    *next_out = 1;
    if (argc > 1 && strcmp(argv[1], "help") == 0) {
        cli->help = true;
        *next_out = 2;
    }
    if (argc <= *next_out || argv[*next_out][0] == '-') {
        return &commands[0];
    }
    cli->has_command = true;
    return find_command(argv[(*next_out)++], diag);
}

/** The words after the command, up to the launch command. */
static me_status read_words(const me_cli_command *c, int argc, char **argv,
                            me_diag *diag, me_cli *cli)
{
    for (int i = 0; i < argc;) {
        if (strcmp(argv[i], "--") == 0) {
            cli->launch_argc = argc - i - 1;
            cli->launch_argv = (const char *const *)(argv + i + 1);
            break;
        }
        const char **word = c->operand != NULL       ? &cli->operand
                            : me_cli_takes_launch(c) ? &cli->script
                                                     : NULL;
        if ((argv[i][0] != '-' || argv[i][1] == '\0') && word != NULL &&
            *word == NULL) {
            *word = argv[i++];
            continue;
        }
        const int words = read_flag(cli, argc - i, argv + i, diag);
        if (words == 0) {
            return ME_ERR_CONFIG;
        }
        i += words;
    }
    return ME_OK;
}

/** Whether @p list, with spaces around each name, has @p name. */
static bool has_name(const char *list, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = strstr(list, name); at != NULL;
         at = strstr(at + 1, name)) {
        if (at[-1] == ' ' && at[length] == ' ') {
            return true;
        }
    }
    return false;
}

/** A verdict is the end of `check`, which does not stop before it. */
static bool is_dump_of_check(const me_cli_command *c, const me_cli_flag *f)
{
    return strcmp(c->name, "check") == 0 && strcmp(f->name, "--dump") == 0;
}

bool me_cli_takes(const me_cli_command *c, const me_cli_flag *f)
{
    if (c->takes == NULL) {
        return !has_name(not_of_jobs, f->name) && !is_dump_of_check(c, f);
    }
    return has_name(every_command, f->name) || has_name(c->takes, f->name);
}

bool me_cli_takes_launch(const me_cli_command *c)
{
    return c->takes == NULL || has_name(c->takes, "--");
}

const me_cli_flag *me_cli_flag_at(int index)
{
    return index >= 0 && index < N_FLAGS ? &flags[index] : NULL;
}

const me_cli_command *me_cli_command_at(int index)
{
    return index >= 0 && index < N_COMMANDS ? &commands[index] : NULL;
}

static me_status refuse_flag(const me_cli_command *c, const me_cli_flag *f,
                             me_diag *diag)
{
    const size_t all = c->takes == NULL ? 0 : strlen(c->takes);
    const size_t listed = all > 0 && has_name(c->takes, "--") ? all - 3 : all;
    return c->takes == NULL
               ? me_fail(diag, ME_ERR_CONFIG,
                         is_dump_of_check(c, f)
                             ? "%s: memest %s ends in a verdict; memest "
                               "estimate can stop before it"
                             : "%s: memest %s reads that of the job",
                         f->name, c->name)
               : me_fail(diag, ME_ERR_CONFIG, "%s: memest %s takes%.*sand%.*s",
                         f->name, c->name, (int)listed, c->takes,
                         (int)sizeof every_command - 2, every_command);
}

static bool is_given(const me_cli *cli, const me_cli_flag *f)
{
    return (cli->given >> (unsigned)(f - flags) & 1U) != 0;
}

/** Whether one of the flags of @p list was given. */
static bool is_any_given(const me_cli *cli, const char *list)
{
    for (int i = 0; i < N_FLAGS; i++) {
        if (is_given(cli, &flags[i]) && has_name(list, flags[i].name)) {
            return true;
        }
    }
    return false;
}

/** Whether the command takes one of the flags of @p list. */
static bool takes_any(const me_cli_command *c, const char *list)
{
    bool takes = c->takes == NULL;
    for (int i = 0; i < N_FLAGS && !takes; i++) {
        takes =
            has_name(list, flags[i].name) && has_name(c->takes, flags[i].name);
    }
    return takes;
}

/** Flags that others leave without effect. */
static me_status check_conditions(const me_cli_command *c, const me_cli *cli,
                                  me_diag *diag)
{
    for (int i = 0; i < N_CONDITIONS; i++) {
        const char *name = conditions[i].flag;
        const char *needs = conditions[i].needs;
        const char *not_with = conditions[i].not_with;
        if (!is_given(cli, find_flag(name, strlen(name)))) {
            continue;
        }
        if (needs != NULL && takes_any(c, needs) && !is_any_given(cli, needs)) {
            return me_fail(diag, ME_ERR_CONFIG,
                           "%s has no effect by itself: give one of%.*s with "
                           "it",
                           name, (int)strlen(needs) - 1, needs);
        }
        if (not_with != NULL && is_any_given(cli, not_with)) {
            return me_fail(diag, ME_ERR_CONFIG, "%s has no effect with%.*s",
                           name, (int)strlen(not_with) - 1, not_with);
        }
    }
    if (cli->load != NULL && cli->launch_argv != NULL) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--load has no effect with a launch command");
    }
    if (cli->events != NULL && strcmp(cli->events, "-") == 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--events -: must be a file's name; what goes to "
                       "standard output is the report");
    }
    if (cli->course && strcmp(cli->format, "json") != 0 &&
        strcmp(cli->format, "html") != 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--course: --format must be json or html, not %s",
                       cli->format);
    }
    return ME_OK;
}

/** Flags of `track` that are about one of its tools. */
static me_status check_tool(const me_cli *cli, me_diag *diag)
{
    static const struct {
        const char *flag;
        const char *tools;
    } uses[] = {
        {"--top", " memory "},
        {"--load", " memory "},
        {"--depth", " mem fsdp2 runtime sac "},
        {"--units", " mem fsdp2 "},
        {"--tabulate", " mem fsdp2 sac "},
        {"--budget", " sac ilp "},
        {"--shards", " ilp "},
        {"--as-memtracker", " mem fsdp2 memory runtime ilp "},
        {"--input-inside", " mem fsdp2 ilp "},
    };

    const char *tool = cli->tool == NULL ? "mem" : cli->tool;
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
        const char *name = uses[i].flag;
        if (is_given(cli, find_flag(name, strlen(name))) &&
            !has_name(uses[i].tools, tool)) {
            return me_fail(diag, ME_ERR_CONFIG,
                           "%s has no effect with --tool %s; with%.*s it has",
                           name, tool, (int)strlen(uses[i].tools) - 1,
                           uses[i].tools);
        }
    }
    return ME_OK;
}

/** What was given and would have no effect is an error, and what is missing. */
static me_status check_words(const me_cli_command *c, const me_cli *cli,
                             me_diag *diag)
{
    if (c->operand != NULL && cli->operand == NULL) {
        return me_fail(diag, ME_ERR_CONFIG, "%s needs an operand, %s: %s",
                       c->name, c->operand, c->help);
    }
    for (int i = 0; i < N_FLAGS; i++) {
        if (is_given(cli, &flags[i]) && !me_cli_takes(c, &flags[i])) {
            return refuse_flag(c, &flags[i], diag);
        }
    }
    if (cli->launch_argv != NULL && !me_cli_takes_launch(c)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--: memest %s takes no launch command", c->name);
    }
    const me_status status = check_conditions(c, cli, diag);
    return status == ME_OK ? check_tool(cli, diag) : status;
}

me_status me_cli_parse(int argc, char **argv, me_diag *diag, me_cli *cli_out)
{
    me_cli *cli = cli_out;
    *cli = (me_cli){.command = "estimate",
                    .format = "text",
                    .rank = -1,
                    .iteration = -1,
                    .device_index = -1};
    int next = 1;
    const me_cli_command *c = read_command(argc, argv, diag, cli, &next);
    if (c == NULL) {
        return ME_ERR_CONFIG;
    }
    cli->command = c->name;
    const me_status status =
        argc <= next ? ME_OK
                     : read_words(c, argc - next, argv + next, diag, cli);
    if (status != ME_OK || cli->help || cli->version) {
        return status;
    }
    return check_words(c, cli, diag);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The flags of the command line, and which command takes which. */
#include "app/cli_flag.h"

#include <string.h>

#define AT(member) offsetof(me_cli, member)

static const me_cli_flag flags[] = {
    {"--model", "-m", "FILE|NAME", FLAG_NAME, AT(model),
     "job or model: a .cfg file, a Hugging Face config.json, a .toml of "
     "torchtitan, a .yaml of Megatron-LM's flags, or a name of configs/models"},
    {"--set", NULL, "KEY=VALUE", FLAG_SET, AT(sets),
     "set one option; wins over file and launch command (memest options)"},
    {"--schedule", NULL, "NAME[:CHUNKS]", FLAG_SCHEDULE, AT(schedules),
     "a schedule for compare or search; may be repeated"},
    {"--variant", NULL, "[NAME:]KEY=VALUE,…", FLAG_VARIANT, AT(variants),
     "options for compare to set beside the job's; may be repeated"},
    {"--gpus", NULL, "N[,N…]", FLAG_NAME, AT(gpus),
     "GPUs that search spreads the job over; as many as the job has"},
    {"--space", NULL, "KEY[=A,B,…]|FILE", FLAG_SPACE, AT(spaces),
     "what search varies, and the words it has; may be repeated"},
    {"--jsonl", NULL, "FILE", FLAG_NAME, AT(jsonl),
     "a log of search, which a second run of the same job goes on with"},
    {"--seeds", NULL, "N", FLAG_COUNT, AT(seeds),
     "seeds of a skewed routing: the spread of every rank's peak"},
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
    {"--format", NULL, "text|json|csv|html|snapshot|snapshot_json|perfetto",
     FLAG_FORMAT, AT(format),
     "of the report; text if not given. In its place PyTorch's memory snapshot "
     "of --rank, as pickle or JSON, or a timeline for Perfetto"},
    {"--json-ranks", NULL, "all|classes", FLAG_NAME, AT(json_ranks),
     "a record of JSON for every rank (the default up to 1,024) or for equal "
     "ones together"},
    {"--ranks", NULL, "stages|all", FLAG_NAME, AT(ranks),
     "a line of the text report for every stage (the default) or every rank"},
    {"--details", NULL, NULL, FLAG_SWITCH, AT(details),
     "the whole text report: card, modules, collectives, links and points as well"},
    {"--output", "-o", "FILE", FLAG_NAME, AT(output),
     "write the report to a file, whole or not at all"},
    {"--events", NULL, "FILE", FLAG_NAME, AT(events),
     "write every allocation and free of one iteration of one rank"},
    {"--rank", NULL, "R", FLAG_NUMBER, AT(rank),
     "the one whose events, modules, program or memory are shown; 0"},
    {"--iteration", NULL, "N", FLAG_NUMBER, AT(iteration),
     "the one whose events or modules are shown; 1"},
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
     "module may keep, of --tool sac; seconds of search"},
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
    {"--within", NULL, "SIZE", FLAG_TEXT, AT(within),
     "exit 3 if a number of diff differs by more, beyond what is rounded"},
    {"--launch", NULL, "N", FLAG_COUNT, AT(launch),
     "which of the jobs that a script launches"},
    {"--trust", NULL, NULL, FLAG_SWITCH, AT(trust),
     "run a script even where the machine cannot keep it from doing harm"},
    {"--unknown", NULL, "error|warn", FLAG_NAME, AT(unknown),
     "of launch flags that Megatron-LM does not have; error"},
    {"--strict", NULL, NULL, FLAG_SWITCH, AT(strict),
     "what is not modelled is an error, if it is more than buffers"},
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

/** Flags of `search` that no other command has. */
#define SEARCH_FLAGS " --gpus --space --jsonl "

/** What a job's report can be. */
#define REPORT_FORMATS "text|json|csv|html"

static const me_cli_command commands[] = {
    {"estimate", NULL, NULL, REPORT_FORMATS "|snapshot|snapshot_json|perfetto",
     "how much memory every rank takes (the default)"},
    {"check", NULL, NULL, REPORT_FORMATS,
     "the verdict alone: exit 0 if it fits, 3 if not"},
    {"fit", NULL, NULL, REPORT_FORMATS,
     "the verdict, and what would make the job fit"},
    {"compare", NULL,
     " --model --set --schedule --variant --seeds --durations --world-size "
     "--memory-limit --alloc-conf --device --machine --format --output "
     "--course --launch --trust --unknown --strict --no-fold --threads --require-fit "
     "-- ",
     REPORT_FORMATS, "schedules and settings of one job in one table"},
    {"search", NULL,
     " --model --set --gpus --space --jsonl --budget --schedule --world-size --memory-limit "
     "--alloc-conf --device --machine --format --output --launch --trust "
     "--unknown --strict --threads --require-fit -- ",
     "text|json|csv",
     "which layouts of a number of GPUs fit, and which is fastest"},
    {"replay", "FILE|-",
     " --memory-limit --alloc-conf --device --device-index --format --output "
     "--require-fit ",
     "text|json|csv", "feed a recorded stream through the allocator"},
    {"schedule", "NAME|FILE.csv|list", SCHEDULE_FLAGS "--format --output ",
     "text|json|csv", "draw a pipeline's order, count it, convert it"},
    {"track", NULL,
     TRACK_FLAGS "--model --set --world-size --device --rank --iteration "
                 "--format --output --launch --trust --unknown --strict -- ",
     "text|json|csv|html", // of a tool what me_tool_check_format() says
     "what PyTorch's own memory tools say of a rank"},
    {"diff", "FIRST SECOND", " --rank --within --format --output ", "text|json",
     "a prediction against a real run's memory, or against another prediction"},
    {"list", "models|cards|machines|architectures", " --format --output ",
     "text|json",
     "what is known by name: by --model, --device, --machine, and in a config.json"},
    {"options", "[WORD]", " --output ", "text",
     "every option, or those with a word in name or help, and the launch flags with it in theirs"},
};

const char me_cli_rank_formats[] = " snapshot snapshot_json perfetto ";

const char me_cli_every_command[] = " --log-level --log-file --help --version ";

/** Flags that only a command has that lists them. */
static const char not_of_jobs[] = SCHEDULE_FLAGS TRACK_FLAGS SEARCH_FLAGS
    "--schedule --variant --seeds --device-index --within ";

enum {
    N_COMMANDS = sizeof commands / sizeof commands[0]
};

bool me_cli_list_has(const char *list, const char *name)
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

/** A verdict is the end of `check`, which does not stop before it, and has no
 *  tables. */
static bool is_not_of_check(const me_cli_command *c, const me_cli_flag *f)
{
    return (strcmp(c->name, "check") == 0 || strcmp(c->name, "fit") == 0) &&
           me_cli_list_has(" --dump --ranks --details ", f->name);
}

bool me_cli_takes(const me_cli_command *c, const me_cli_flag *f)
{
    if (c->takes == NULL) {
        return !me_cli_list_has(not_of_jobs, f->name) && !is_not_of_check(c, f);
    }
    return me_cli_list_has(me_cli_every_command, f->name) ||
           me_cli_list_has(c->takes, f->name);
}

bool me_cli_takes_option(const me_cli_flag *f)
{
    return f->kind == FLAG_SET || f->kind == FLAG_VARIANT ||
           f->kind == FLAG_SPACE;
}

const char *me_cli_value(const me_cli_command *c, const me_cli_flag *f)
{
    return f->kind == FLAG_FORMAT ? c->formats : f->value;
}

const char *me_cli_flag_help(const me_cli_command *c, const me_cli_flag *f)
{
    return f->kind == FLAG_FORMAT && strstr(c->formats, "snapshot") == NULL
               ? "of the report; text if not given"
               : f->help;
}

bool me_cli_has_format(const me_cli_command *c, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = c->formats; *at != '\0';) {
        const size_t its = strcspn(at, "|");
        if (its == length && strncmp(at, name, length) == 0) {
            return true;
        }
        at += its + (at[its] == '|');
    }
    return false;
}

bool me_cli_takes_launch(const me_cli_command *c)
{
    return c->takes == NULL || me_cli_list_has(c->takes, "--");
}

const me_cli_flag *me_cli_flag_at(int index)
{
    return index >= 0 && index < N_FLAGS ? &flags[index] : NULL;
}

const me_cli_command *me_cli_command_at(int index)
{
    return index >= 0 && index < N_COMMANDS ? &commands[index] : NULL;
}

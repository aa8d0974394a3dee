/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/cli_flag.h"
#include "app/job_file.h"
#include "base/nearest.h"
#include "base/str.h"
#include "config/flags.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/** A flag that changes nothing without one of others, or beside them; of
 *  commands that take those. */
static const struct {
    const char *flag;
    const char *needs;    /**< one of these, a space around each; or NULL */
    const char *not_with; /**< none of these; or NULL */
    const char *formats;  /**< or one of these --format names; or NULL */
} conditions[] = {
    {"--rank", " --events --dump ", NULL, me_cli_rank_formats},
    {"--iteration", " --events ", NULL, NULL},
    {"--ranks", NULL, " --details --dump ", NULL},
    {"--details", NULL, " --dump ", NULL},
    {"--events", NULL, " --dump ", NULL},
    {"--course", NULL, " --dump ", NULL},
    {"--json-ranks", NULL, " --dump ", NULL},
    {"--require-fit", NULL, " --dump ", NULL},
    {"--no-fold", NULL, " --dump ", NULL},
    {"--load", NULL,
     " --model --set --world-size --device --rank --iteration --strict "
     "--as-memtracker --input-inside ",
     NULL},
};

enum {
    N_CONDITIONS = sizeof conditions / sizeof conditions[0]
};

static bool is_name(const char *name, const char *word, size_t length)
{
    return name != NULL && strlen(name) == length &&
           strncmp(name, word, length) == 0;
}

static const me_cli_flag *find_flag(const char *word, size_t length)
{
    const me_cli_flag *f = NULL;
    for (int i = 0; (f = me_cli_flag_at(i)) != NULL; i++) {
        if (is_name(f->name, word, length) ||
            is_name(f->short_name, word, length)) {
            return f;
        }
    }
    return NULL;
}

static bool may_repeat(const me_cli_flag *f)
{
    return f->kind == FLAG_SWITCH || f->kind == FLAG_SET ||
           f->kind == FLAG_SCHEDULE || f->kind == FLAG_VARIANT ||
           f->kind == FLAG_SPACE;
}

/** Words that other programs have for a flag of this one. */
static const struct {
    const char *word;
    const char *flag;
} known_elsewhere[] = {
    {"--card", "--device"},
    {"--gpu", "--device"},
    {"--gpu-type", "--device"},
    {"--gpus", "--world-size"},
    {"--ranks", "--world-size"},
    {"--nranks", "--world-size"},
    {"--ngpus", "--world-size"},
    {"--np", "--world-size"},
    {"-n", "--world-size"},
    {"--memory", "--memory-limit"},
    {"--config", "--model"},
    {"--json", "--format json"},
    {"--csv", "--format csv"},
    {"--html", "--format html"},
    {"--verbose", "--log-level info"},
    {"-v", "--log-level info"},
};

/** What to write in place of a flag that nobody knows; NULL: nothing is near. */
static const char *instead_of(const char *word)
{
    for (size_t i = 0; i < sizeof known_elsewhere / sizeof known_elsewhere[0];
         i++) {
        if (strcmp(known_elsewhere[i].word, word) == 0) {
            return known_elsewhere[i].flag;
        }
    }
    const char *best = NULL;
    const me_cli_flag *f = NULL;
    me_nearest nearest = me_nearest_begin(word);
    for (int i = 0; (f = me_cli_flag_at(i)) != NULL; i++) {
        if (me_nearest_offer(&nearest, f->name)) {
            best = f->name;
        }
    }
    return best;
}

/** Refuses a flag that memest does not have, and says what was meant. */
static me_status unknown_flag(const char *word, size_t length, me_diag *diag)
{
    char name[96];
    (void)snprintf(name, sizeof name, "%.*s", (int)length, word);
    me_flag launch;
    if (strncmp(name, "--", 2) == 0 && me_flag_find(name, &launch)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "%s: a flag of the launch command, which goes after --; "
                       "memest options %s says what it does",
                       word, name + 2);
    }
    const char *instead = instead_of(name);
    if (instead != NULL) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "%s: no such flag; did you mean %s?", word, instead);
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "%s: no such flag; memest --help lists them, and a launch "
                   "command goes after --",
                   word);
}

/** One flag and its value. @return words that it took; 0 on failure */
static int read_flag(me_cli *cli, int left, char **words, me_diag *diag)
{
    const char *equals = strchr(words[0], '=');
    const size_t length =
        equals == NULL ? strlen(words[0]) : (size_t)(equals - words[0]);
    const me_cli_flag *f = find_flag(words[0], length);
    if (f == NULL) {
        (void)unknown_flag(words[0], length, diag);
        return 0;
    }
    const uint64_t bit = UINT64_C(1) << (unsigned)(f - me_cli_flag_at(0));
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

static bool is_command(const char *word)
{
    const me_cli_command *c = me_cli_command_at(0);
    for (int i = 1; c != NULL && strcmp(word, c->name) != 0; i++) {
        c = me_cli_command_at(i);
    }
    return c != NULL;
}

/** The command that a word names; NULL: none. */
static const me_cli_command *find_command(const char *word, me_diag *diag)
{
    const me_cli_command *c = NULL;
    for (int i = 0; (c = me_cli_command_at(i)) != NULL; i++) {
        if (strcmp(word, c->name) == 0) {
            return c;
        }
    }
    struct stat about;
    if (stat(word, &about) == 0 && S_ISREG(about.st_mode)) {
        (void)me_fail(diag, ME_ERR_CONFIG,
                      "%s: a file is no command; memest check %s reads a "
                      "launch script, memest --model %s a job",
                      word, word, word);
        return NULL;
    }
    me_str names = {0};
    for (int i = 0; (c = me_cli_command_at(i)) != NULL; i++) {
        me_str_printf(&names, "%s%s", i == 0 ? "" : ", ", c->name);
    }
    (void)me_fail(diag, ME_ERR_CONFIG,
                  "%s: no such command; %s are, and help of one", word,
                  me_str_text(&names));
    me_str_fini(&names);
    return NULL;
}

/** Flags in front of the command, with their values; what is no flag ends
 *  them. @return where the command is, or nothing */
static int skip_flags(int argc, char **argv)
{
    int at = 1;
    while (at < argc && argv[at][0] == '-' && strcmp(argv[at], "--") != 0) {
        const size_t length = strcspn(argv[at], "=");
        const me_cli_flag *f = find_flag(argv[at], length);
        const bool has_value = f != NULL && f->kind != FLAG_SWITCH;
        at += has_value && argv[at][length] == '\0' ? 2 : 1;
    }
    return at < argc ? at : argc;
}

/** The first word, or the first behind flags, if it is a command; else the
 *  default one. NULL: none. What comes next is at @p next_out, what came before
 *  at 1 up to @p before_out. */
static const me_cli_command *read_command(int argc, char **argv, me_diag *diag,
                                          me_cli *cli, int *before_out,
                                          int *next_out)
{
    *next_out = 1;
    *before_out = 1;
    if (argc > 1 && strcmp(argv[1], "help") == 0) {
        cli->help = true;
        *next_out = 2;
        *before_out = 2;
    }
    if (*next_out == 1 && argc > 1 && argv[1][0] == '-') {
        const int at = skip_flags(argc, argv);
        if (at < argc && is_command(argv[at])) {
            cli->has_command = true;
            *before_out = at;
            *next_out = at + 1;
            return find_command(argv[at], diag);
        }
    }
    if (argc <= *next_out || argv[*next_out][0] == '-') {
        return me_cli_command_at(0);
    }
    cli->has_command = true;
    return find_command(argv[(*next_out)++], diag);
}

/** Whether what comes next is the second operand of a command with two. */
static bool is_second(const me_cli_command *c, const me_cli *cli)
{
    return c->operand != NULL && strchr(c->operand, ' ') != NULL &&
           cli->operand != NULL;
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
        const char **word = is_second(c, cli)        ? &cli->second
                            : c->operand != NULL     ? &cli->operand
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

static me_status refuse_flag(const me_cli_command *c, const me_cli_flag *f,
                             me_diag *diag)
{
    const size_t all = c->takes == NULL ? 0 : strlen(c->takes);
    const size_t listed =
        all > 0 && me_cli_list_has(c->takes, "--") ? all - 3 : all;
    return c->takes == NULL
               ? me_fail(diag, ME_ERR_CONFIG,
                         me_cli_list_has(" --ranks --details ", f->name)
                             ? "%s: memest %s has the verdict alone; memest "
                               "estimate has tables"
                         : strcmp(f->name, "--dump") == 0
                             ? "%s: memest %s ends in a verdict; memest "
                               "estimate can stop before it"
                             : "%s: memest %s reads that of the job",
                         f->name, c->name)
               : me_fail(diag, ME_ERR_CONFIG, "%s: memest %s takes%.*sand%.*s",
                         f->name, c->name, (int)listed, c->takes,
                         (int)strlen(me_cli_every_command) - 1,
                         me_cli_every_command);
}

static bool is_given(const me_cli *cli, const me_cli_flag *f)
{
    return (cli->given >> (unsigned)(f - me_cli_flag_at(0)) & 1U) != 0;
}

/** Whether one of the flags of @p list was given. */
static bool is_any_given(const me_cli *cli, const char *list)
{
    const me_cli_flag *f = NULL;
    for (int i = 0; (f = me_cli_flag_at(i)) != NULL; i++) {
        if (is_given(cli, f) && me_cli_list_has(list, f->name)) {
            return true;
        }
    }
    return false;
}

/** Whether the command takes one of the flags of @p list. */
static bool takes_any(const me_cli_command *c, const char *list)
{
    bool takes = c->takes == NULL;
    const me_cli_flag *f = NULL;
    for (int i = 0; (f = me_cli_flag_at(i)) != NULL && !takes; i++) {
        takes = me_cli_list_has(list, f->name) &&
                me_cli_list_has(c->takes, f->name);
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
        const bool is_by_format =
            conditions[i].formats != NULL &&
            me_cli_list_has(conditions[i].formats, cli->format);
        if (needs != NULL && !is_by_format && takes_any(c, needs) &&
            !is_any_given(cli, needs)) {
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
    if (cli->ranks != NULL && strcmp(cli->ranks, "all") != 0 &&
        strcmp(cli->ranks, "stages") != 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--ranks %.40s: must be stages or all", cli->ranks);
    }
    if ((cli->ranks != NULL || cli->details) &&
        strcmp(cli->format, "text") != 0) {
        return me_fail(diag, ME_ERR_CONFIG, "%s: --format must be text, not %s",
                       cli->details ? "--details" : "--ranks", cli->format);
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

    if (strcmp(cli->command, "track") != 0) {
        return ME_OK;
    }
    const char *tool = cli->tool == NULL ? "mem" : cli->tool;
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
        const char *name = uses[i].flag;
        if (is_given(cli, find_flag(name, strlen(name))) &&
            !me_cli_list_has(uses[i].tools, tool)) {
            return me_fail(diag, ME_ERR_CONFIG,
                           "%s has no effect with --tool %s; with%.*s it has",
                           name, tool, (int)strlen(uses[i].tools) - 1,
                           uses[i].tools);
        }
    }
    return ME_OK;
}

/** "--format yaml: memest replay has text, json and csv". */
static me_status check_format(const me_cli_command *c, const me_cli *cli,
                              me_diag *diag)
{
    if (me_cli_has_format(c, cli->format)) {
        return ME_OK;
    }
    me_str names = {0};
    for (const char *at = c->formats; *at != '\0';) {
        const size_t length = strcspn(at, "|");
        const bool is_last = at[length] == '\0';
        me_str_append(&names, at == c->formats ? "" : is_last ? " and " : ", ");
        me_str_append_n(&names, at, length);
        at += length + (is_last ? 0 : 1);
    }
    (void)me_fail(diag, ME_ERR_CONFIG, "--format %.40s: memest %s has %s",
                  cli->format, c->name, me_str_text(&names));
    me_str_fini(&names);
    return ME_ERR_CONFIG;
}

/** What was given and would have no effect is an error, and what is missing. */
static me_status check_words(const me_cli_command *c, const me_cli *cli,
                             me_diag *diag)
{
    if (c->operand != NULL && c->operand[0] != '[' && cli->operand == NULL) {
        return me_fail(diag, ME_ERR_CONFIG, "%s needs an operand, %s: %s",
                       c->name, c->operand, c->help);
    }
    if (is_second(c, cli) && cli->second == NULL) {
        return me_fail(diag, ME_ERR_CONFIG, "%s needs two operands, %s: %s",
                       c->name, c->operand, c->help);
    }
    const me_cli_flag *f = NULL;
    for (int i = 0; (f = me_cli_flag_at(i)) != NULL; i++) {
        if (is_given(cli, f) && !me_cli_takes(c, f)) {
            return refuse_flag(c, f, diag);
        }
    }
    if (cli->launch_argv != NULL && !me_cli_takes_launch(c)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--: memest %s takes no launch command", c->name);
    }
    me_status status = check_format(c, cli, diag);
    if (status != ME_OK) {
        return status;
    }
    status = check_conditions(c, cli, diag);
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
    int before = 1;
    const me_cli_command *c =
        read_command(argc, argv, diag, cli, &before, &next);
    if (c == NULL) {
        return ME_ERR_CONFIG;
    }
    cli->command = c->name;
    const int first = cli->help ? before : 1; // behind the word help
    me_status status = read_words(c, before - first, argv + first, diag, cli);
    if (status == ME_OK && argc > next) {
        status = read_words(c, argc - next, argv + next, diag, cli);
    }
    if (status != ME_OK || cli->help || cli->version) {
        return status;
    }
    status = me_job_file_take(cli, diag);
    return status == ME_OK ? check_words(c, cli, diag) : status;
}

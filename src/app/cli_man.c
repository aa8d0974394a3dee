/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/cli_flag.h"
#include "app/cli_pages.h"
#include "config/options.h"

#include <string.h>

#ifndef ME_VERSION
#    define ME_VERSION "unknown"
#endif

static const char ellipsis[] = "\xe2\x80\xa6";

/** A text as roff has it: nothing of it is a command. */
static void append(me_str *page, const char *text, size_t length)
{
    if (length > 0 && (text[0] == '.' || text[0] == '\'')) {
        me_str_append(page, "\\&");
    }
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '-') {
            me_str_append(page, "\\-");
        } else if (text[i] == '\\') {
            me_str_append(page, "\\e");
        } else if (strncmp(text + i, ellipsis, sizeof ellipsis - 1) == 0) {
            me_str_append(page, "...");
            i += sizeof ellipsis - 2;
        } else {
            me_str_append_n(page, text + i, 1);
        }
    }
}

static void append_text(me_str *page, const char *text)
{
    append(page, text, strlen(text));
}

/** A line in bold. */
static void append_term(me_str *page, const char *term, const char *value)
{
    me_str_append(page, ".TP\n\\fB");
    append_text(page, term);
    me_str_append(page, "\\fR");
    if (value != NULL) {
        me_str_append(page, " \\fI");
        append_text(page, value);
        me_str_append(page, "\\fR");
    }
    me_str_append(page, "\n");
}

/** A line of text. */
static void append_line(me_str *page, const char *text)
{
    append_text(page, text);
    me_str_append(page, "\n");
}

static void append_flags_of(me_str *page, const me_cli_command *c)
{
    const me_cli_flag *f = NULL;
    me_str_append(page, ".br\nFlags:");
    for (int i = 0; (f = me_cli_flag_at(i)) != NULL; i++) {
        if (me_cli_takes(c, f)) {
            me_str_append(page, " ");
            append_text(page, f->name);
        }
    }
    me_str_append(page, "\n.br\nFormats: ");
    append_line(page, c->formats);
}

static void append_commands(me_str *page)
{
    const me_cli_command *c = NULL;
    me_str_append(page, ".SH COMMANDS\n");
    for (int i = 0; (c = me_cli_command_at(i)) != NULL; i++) {
        append_term(page, c->name, c->operand);
        append_line(page, c->help);
        append_flags_of(page, c);
    }
}

static void append_flags(me_str *page)
{
    const me_cli_flag *f = NULL;
    me_str_append(page, ".SH FLAGS\n");
    for (int i = 0; (f = me_cli_flag_at(i)) != NULL; i++) {
        me_str names = {0};
        me_str_printf(&names, "%s%s%s",
                      f->short_name == NULL ? "" : f->short_name,
                      f->short_name == NULL ? "" : ", ", f->name);
        append_term(page, me_str_text(&names), f->value);
        append_line(page, f->help);
        me_str_fini_piece(&names, page);
    }
}

/** A line of `memest options`: name, spaces, the rest. */
static void append_option(me_str *page, const char *line, size_t length)
{
    const size_t name = strcspn(line, " ");
    size_t rest = name;
    while (rest < length && line[rest] == ' ') {
        rest++;
    }
    me_str_append(page, ".TP\n\\fB");
    append(page, line, name);
    me_str_append(page, "\\fR\n");
    append(page, line + rest, length - rest);
    me_str_append(page, "\n");
}

static void append_options(me_str *page)
{
    me_str list = {0};
    (void)me_options_list(NULL, &list);
    me_str_append(page, ".SH OPTIONS OF A JOB\n");
    append_line(page, "For --set, for files of a job and for --variant; each "
                      "with its type, meaning and default, as memest options "
                      "lists them.");
    const char *line = me_str_text(&list);
    while (*line != '\0') {
        const size_t length = strcspn(line, "\n");
        append_option(page, line, length);
        line += length + (line[length] == '\n');
    }
    me_str_fini_piece(&list, page);
}

/** A section in paragraphs, an empty text between two. */
static void append_section(me_str *page, const char *title,
                           const char *const *lines)
{
    me_str_printf(page, ".SH %s\n", title);
    for (; *lines != NULL; lines++) {
        if ((*lines)[0] == '\0') {
            me_str_append(page, ".PP\n");
        } else {
            append_line(page, *lines);
        }
    }
}

/** Lines that stay as they are. */
static void append_examples(me_str *page)
{
    static const char *const examples[] = {
        "memest --model llama-3-8b --set train.micro_batch_size=1",
        "mpirun -n 8 memest --model configs/gpt.cfg",
        "memest check -- torchrun --nproc-per-node 8 pretrain_gpt.py ...",
        "memest check job.sbatch",
        "memest check train.sh --device h100-80gb -- 70b",
        "memest compare --model job.cfg --schedule 1f1b --schedule zbh1",
        "memest track --model trackers.cfg --tool memory --top 5",
    };
    me_str_append(page, ".SH EXAMPLES\n.nf\n");
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        append_line(page, examples[i]);
    }
    me_str_append(page, ".fi\n");
}

void me_cli_man(me_str *page)
{
    static const char *const description[] = {
        "Without a GPU memest predicts the memory of every rank of a "
        "distributed PyTorch training job: requested, allocated, reserved and "
        "device bytes, where and when they peak and why, and whether the job "
        "fits on the card.",
        "",
        "A job is a file, the name of a model, its launch command after --, or "
        "a script that launches it. What is read later wins: defaults, file, "
        "launch command, flags, --set.",
        "",
        "A script is run by the shell that it names, where nothing can happen: "
        "it writes to a layer that vanishes, reaches no network, starts no "
        "programs but those that compute, and leaves no process. torchrun, "
        "srun, python and other launchers are memest, which takes the job's "
        "words from them. Words after -- are the script's arguments.",
        NULL};
    static const char *const status[] = {
        "0: report written, or the job fits. 1: internal or I/O. 2: usage or "
        "configuration. 3: the job does not fit, or it is too close to call "
        "(check, --require-fit). 4: cannot say, because what is not modelled "
        "can be larger than the margin (likewise).",
        NULL};
    static const char *const environment[] = {
        "MEMEST_LOG is the level of messages where --log-level gives none. "
        "MEMEST_SCRIPT_SECONDS is what a script may take, 10 if not given. "
        "MEMEST_SITE is the file that says which cards the partitions of "
        "Slurm have, configs/site.cfg if not given.",
        NULL};
    static const char *const also[] = {
        "README.md and docs/ of memest; torchrun(1), mpirun(1).", NULL};
    me_str_append(page, ".\\\" SPDX-License-Identifier: BSD-3-Clause\n");
    me_str_append(page, ".\\\" Made with memest, from its tables of flags.\n");
    me_str_append(page, ".TH MEMEST 1 \"\" \"memest " ME_VERSION
                        "\" \"User Commands\"\n.nh\n.ad l\n.SH NAME\n"
                        "memest \\- predict the memory of every rank of a "
                        "training job\n.SH SYNOPSIS\n");
    me_str_append(page, "\\fBmemest\\fR [\\fICOMMAND\\fR] [\\fIFLAG\\fR...] "
                        "[\\-\\- \\fILAUNCH COMMAND\\fR...]\n");
    append_section(page, "DESCRIPTION", description);
    append_commands(page);
    append_flags(page);
    append_options(page);
    append_section(page, "EXIT STATUS", status);
    append_section(page, "ENVIRONMENT", environment);
    append_examples(page);
    append_section(page, "SEE ALSO", also);
}

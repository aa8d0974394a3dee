/**
 * @file
 * memest's own command line, from one table of flags.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_APP_CLI_H
#define MEMEST_APP_CLI_H

#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    ME_CLI_MAX_SETS = 256
};

/** What was asked for; text is borrowed from argv. */
typedef struct me_cli {
    uint64_t lost; /**< me_alloc_lost() when the command began; not parsed */
    const char *command; /**< "estimate" if none was given */
    const char *operand; /**< what `replay`, `schedule` and
                              `list` read, or NULL */
    const char *second;  /**< what `diff` compares it with, or NULL */
    const char *script;  /**< whose launches are the job, or NULL */
    const char *model;   /**< --model, or NULL */
    const char *sets[ME_CLI_MAX_SETS];
    int32_t n_sets;
    const char *schedules[ME_CLI_MAX_SETS]; /**< of `compare` */
    int32_t n_schedules;
    const char *variants[ME_CLI_MAX_SETS]; /**< of `compare` */
    int32_t n_variants;
    const char *spaces[ME_CLI_MAX_SETS]; /**< of `search` */
    int32_t n_spaces;
    const char *gpus;   /**< of `search`, or NULL */
    const char *jsonl;  /**< of `search`, or NULL */
    int32_t seeds;      /**< of a skewed routing, of `compare`; 0: not given */
    int32_t world_size; /**< 0: not given */
    const char *memory_limit; /**< as given, or NULL */
    const char *alloc_conf;   /**< or NULL */
    const char *device;       /**< or NULL */
    int32_t device_index;     /**< of a snapshot; -1: not given */
    const char *machine;      /**< or NULL */
    const char *format;       /**< "text" if none was given */
    const char *json_ranks;   /**< as given, or NULL */
    const char *ranks;        /**< of text, as given, or NULL */
    bool details;             /**< all sections of the text report */
    const char *output;       /**< NULL: stdout */
    const char *events;       /**< file, or NULL */
    int32_t rank;             /**< whose events; -1: not given */
    int32_t iteration;        /**< whose events; -1: not given */
    const char *dump;         /**< stage, or NULL */
    int32_t pp; /**< of `schedule`; 0: not given, as those below */
    int32_t microbatches;
    int32_t chunks;        /**< of each rank */
    int32_t group_size;    /**< micro-batches */
    int32_t in_flight;     /**< chunk micro-batches */
    const char *durations; /**< or NULL */
    bool comms;            /**< sends and receives as well */
    bool legacy_b;         /**< B of the file is the input gradient */
    bool blocking;         /**< transfers are waited for */
    const char *within;    /**< of `diff`, as given, or NULL */
    const char *tool;      /**< of `track`, or NULL */
    const char *units;     /**< or NULL */
    const char *load;      /**< or NULL */
    int32_t depth;         /**< 0: not given */
    int32_t top;           /**< 0: not given */
    const char *budget;    /**< as given, or NULL */
    int32_t shards;        /**< 0: not given */
    bool as_memtracker;
    bool input_inside;
    bool tabulate;
    const char *log_level; /**< or NULL */
    const char *log_file;  /**< or NULL */
    const char *unknown;   /**< "error", "warn" or NULL */
    bool strict;
    int32_t launch; /**< of a script that makes several; 0: not given */
    bool trust;     /**< scripts run without all fences */
    bool no_fold;
    int32_t threads; /**< of each process; 0: not given */
    bool course;
    bool require_fit;
    bool help;
    bool has_command; /**< the command was named */
    bool version;
    uint64_t given;  /**< flags that were given, by place in the table */
    int launch_argc; /**< words after `--` */
    const char *const *launch_argv;
} me_cli;

/**
 * Read the command line. A command refuses the flags that have no meaning for
 * it; with --help or --version nothing else has to be there.
 *
 * @return ME_OK; ME_ERR_CONFIG naming the flag and what would be right
 */
me_status me_cli_parse(int argc, char **argv, me_diag *diag,
                       me_cli *cli_out) ME_MUST_CHECK;

/** The text of --help: of the command that was named, else of all. */
void me_cli_help(const me_cli *cli, me_str *text);

#endif /* MEMEST_APP_CLI_H */

/**
 * @file
 * The options of Slurm's sbatch and srun, which share one table there, as
 * getopt_long(3) reads them: abbreviations, values that are optional, letters
 * in one word. The table of Slurm 26.05, and the options of pyxis, its plugin of
 * containers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_SLURM_OPTIONS_H
#define MEMEST_CONFIG_SLURM_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    ME_SLURM_OPTION_NAME = 40,
    ME_SLURM_WHY = 96
};

/** Who reads the words. */
typedef enum me_slurm_program {
    ME_SLURM_SBATCH = 1,
    ME_SLURM_SRUN = 2
} me_slurm_program;

typedef enum me_slurm_read {
    ME_SLURM_END,       /**< a word that is no option, or no word at all */
    ME_SLURM_OPTION,    /**< one of Slurm's */
    ME_SLURM_FOREIGN,   /**< `--name=value` of a plugin, or of nobody */
    ME_SLURM_UNKNOWN,   /**< nobody can tell whether a value follows */
    ME_SLURM_AMBIGUOUS, /**< an abbreviation of several */
    ME_SLURM_NO_VALUE   /**< the last word, and it needs one */
} me_slurm_read;

/** Words under reading; begins with at = letter = 0. */
typedef struct me_slurm_words {
    me_slurm_program program;
    int argc;
    const char *const *argv;         /**< borrowed */
    int at;                          /**< the next word */
    int letter;                      /**< read of a word of several letters */
    char name[ME_SLURM_OPTION_NAME]; /**< of the option read last, whole,
                                          without dashes */
    const char *value;               /**< of it, borrowed; NULL: it has none */
} me_slurm_words;

/**
 * Read one option. Where it is none of Slurm's, the words stay where they are,
 * but behind ME_SLURM_FOREIGN. Local.
 */
me_slurm_read me_slurm_words_next(me_slurm_words *words);

/**
 * Why a word such as `--ntask-per-node=8` is no option: what it is short for, or
 * the one that it is near to and that says how many ranks or cards there are.
 * Local.
 *
 * @param word     as it was written
 * @param why_out  one clause, behind "WORD: "
 * @return false: nothing is wrong with it, so that it is a plugin's, of which
 *         nobody can tell whether a value follows
 */
bool me_slurm_words_explain(const me_slurm_words *words, me_slurm_read read,
                            const char *word, char why_out[ME_SLURM_WHY]);

#endif /* MEMEST_CONFIG_SLURM_OPTIONS_H */

/**
 * @file
 * What `memest search` varies: axes, each with the words that it may have. A
 * word sets options of a job, as `--variant` of `memest compare` does.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SEARCH_SPACE_H
#define MEMEST_SEARCH_SPACE_H

#include "base/str.h"
#include "config/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ME_SPACE_AXES_MAX = 32,
    ME_SPACE_WORDS_MAX = 256, /**< of an axis */
    ME_SPACE_WORD_BYTES = 96
};

/** Words of an axis. */
typedef struct me_space_words {
    char items[ME_SPACE_WORDS_MAX][ME_SPACE_WORD_BYTES];
    uint32_t count;
    bool is_full; /**< there were more */
} me_space_words;

/** X(member): degrees that the words of later axes depend on. */
#define ME_DEGREE_LIST(X)                                                      \
    X(world) X(tensor) X(context) X(pipeline) X(expert) X(expert_tensor)

/** The degrees that are decided, all at least 1. */
typedef struct me_degrees {
#define ME_DEGREE_MEMBER(member) int32_t member;
    ME_DEGREE_LIST(ME_DEGREE_MEMBER)
#undef ME_DEGREE_MEMBER
} me_degrees;

/** What can be varied without its words being named; rows of a table. */
typedef struct me_space_axis_kind {
    const char *name;  /**< an option, or the name of several together */
    const char *title; /**< short, for the layout in a table: "tp" */
    bool is_asked;     /**< it is varied only where it is asked for */
    /** Append its words; none: the axis is left out.
     *  @param job  read, not finished */
    void (*fill)(const me_config *job, const me_degrees *degrees,
                 me_space_words *words);
    /** Append what a word sets, "KEY=VALUE[,KEY=VALUE…]"; NULL: NAME=WORD.
     *  @return false for a word that is none */
    bool (*assign)(const me_config *job, const char *word, me_str *text);
    const char *words; /**< what assign() takes, for messages */
    size_t degree;     /**< offset in me_degrees; SIZE_MAX: it is none */
} me_space_axis_kind;

/** Append a word; the longest are cut. Local. */
void me_space_words_add(me_space_words *words, const char *format, ...)
    ME_PRINTF(2, 3);

/** An axis of a space. */
typedef struct me_space_axis {
    const me_space_axis_kind *kind; /**< NULL: an option of no kind */
    char name[ME_SPACE_WORD_BYTES];
    char flag[ME_SPACE_WORD_BYTES + 16]; /**< what stands before its words:
                                            "--gpus ", "--space NAME=" */
    me_space_words *words; /**< that were named; NULL: the kind's; owned */
    bool is_wanted;        /**< it was asked for */
} me_space_axis;

typedef struct me_space {
    me_space_axis axes[ME_SPACE_AXES_MAX];
    uint32_t n_axes;
    me_degrees job; /**< of the job as it is; 0: not given */
} me_space;

/** What narrows or widens a space; texts are borrowed for the call. */
typedef struct me_space_request {
    const char *const *spaces; /**< "KEY=WORD[,WORD…]", "KEY", or a file */
    size_t n_spaces;
    const char *gpus;   /**< "N[,N…]"; NULL: the job's world size */
    bool has_schedules; /**< they say the chunks of a rank */
} me_space_request;

/**
 * Make a space of the framework's axes and those of @p request. Local.
 *
 * @param job        read, not finished
 * @param space_out  owned by the caller
 * @return ME_OK; ME_ERR_CONFIG for a key or word that is none, or a job that
 *         does not say what all candidates have in common; ME_ERR_NOMEM,
 *         ME_ERR_IO
 */
me_status me_space_create(const me_config *job, const me_space_request *request,
                          me_diag *diag, me_space **space_out) ME_MUST_CHECK;

/** Give back; NULL is allowed. Local. */
void me_space_destroy(me_space *space);

/** Does a search of such a job vary the option if nobody says so? Local. */
bool me_space_varies(const me_config *job, const char *option);

/** The name of an axis that sets several options together, "recompute", of any
 *  framework; static, NULL beyond the last. Local. */
const char *me_space_several_at(uint32_t index);

/** Append what a word of an axis sets, behind a comma where there is text. Local.
 *  @return false for a word that is none */
bool me_space_axis_assign(const me_space_axis *axis, const me_config *job,
                          const char *word, me_str *text);

#endif /* MEMEST_SEARCH_SPACE_H */

/**
 * @file
 * A training job as the user describes it: a file, a name, a launch command,
 * single options. What is read later wins over what was read before.
 *
 * A call that fails leaves the job as it was.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_JOB_H
#define MEMEST_JOB_H

#include "memest/error.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct memest_job memest_job;

/**
 * A job with Megatron-LM's defaults and nothing else set.
 *
 * @return owned by the caller; NULL without memory
 */
MEMEST_API memest_job *memest_job_create(void);

/** Give back; NULL is allowed. */
MEMEST_API void memest_job_destroy(memest_job *job);

/**
 * A copy to vary.
 *
 * @return owned by the caller; NULL without memory
 */
MEMEST_API memest_job *memest_job_clone(const memest_job *job);

/**
 * Read a `.cfg` file, a Hugging Face `config.json`, or a model by its name.
 *
 * @param model  a path, or a name of `configs/models`, which is looked up in
 *               the working directory and then where memest is installed
 * @return MEMEST_OK; MEMEST_ERR_IO, MEMEST_ERR_SYNTAX or MEMEST_ERR_CONFIG
 *         with file, line, option and what would be right; MEMEST_ERR_NOMEM
 */
MEMEST_API memest_status memest_job_read_file(
    memest_job *job, const char *model, memest_error *error) MEMEST_MUST_CHECK;

/**
 * As memest_job_read_file(), for a `.cfg` file's text in memory.
 *
 * @param where   its name in errors; files that it includes are looked up
 *                beside it
 * @param text    @p length bytes, need not end with a NUL; borrowed for the
 *                call
 */
MEMEST_API memest_status
memest_job_read_text(memest_job *job, const char *where, const char *text,
                     size_t length, memest_error *error) MEMEST_MUST_CHECK;

/**
 * Read a launch command as people type it, word by word: wrappers (`srun`,
 * `torchrun`, `env A=B`, …), Megatron-LM's script and its flags; or flags
 * alone.
 *
 * @param argc  words
 * @param argv  the words, borrowed for the call
 * @return MEMEST_OK; MEMEST_ERR_SYNTAX or MEMEST_ERR_CONFIG with the flag, its
 *         value and what would be right; MEMEST_ERR_UNSUPPORTED for a script
 *         that is not modelled; MEMEST_ERR_NOMEM
 */
MEMEST_API memest_status
memest_job_read_launch(memest_job *job, int argc, const char *const *argv,
                       memest_error *error) MEMEST_MUST_CHECK;

/**
 * Set one option, as `--set` does.
 *
 * @param option  dotted name, "parallel.tensor"; `memest options` lists all
 * @param value   its text
 * @return MEMEST_OK; MEMEST_ERR_CONFIG for an unknown option or a value that
 *         is not of its type or range; MEMEST_ERR_NOMEM
 */
MEMEST_API memest_status memest_job_set(memest_job *job, const char *option,
                                        const char *value,
                                        memest_error *error) MEMEST_MUST_CHECK;

/**
 * Does the job as a whole make sense? memest_estimate() asks the same first.
 *
 * @return MEMEST_OK; MEMEST_ERR_CONFIG or MEMEST_ERR_UNSUPPORTED with the
 *         options and the rule that they break; MEMEST_ERR_NOMEM
 */
MEMEST_API memest_status
memest_job_check(const memest_job *job, memest_error *error) MEMEST_MUST_CHECK;

/**
 * The job with everything derived, as a `.cfg` file that reads back equal.
 *
 * @param text_out  ends with a NUL; owned by the caller, for
 *                  memest_text_destroy()
 * @return as memest_job_check()
 */
MEMEST_API memest_status memest_job_text(const memest_job *job, char **text_out,
                                         memest_error *error) MEMEST_MUST_CHECK;

/**
 * What can be set: one line an option, with type, default and help.
 *
 * @param text_out  as memest_job_text()
 * @return MEMEST_OK, MEMEST_ERR_NOMEM
 */
MEMEST_API memest_status
memest_options_text(char **text_out, memest_error *error) MEMEST_MUST_CHECK;

/** Give back a text that the library made; NULL is allowed. */
MEMEST_API void memest_text_destroy(char *text);

#ifdef __cplusplus
}
#endif

#endif /* MEMEST_JOB_H */

/**
 * @file
 * What the kernel starts beside a program: the dynamic loader that an ELF file
 * names, or the interpreter of a script's first line.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SCRIPT_INTERPRETER_H
#define MEMEST_SCRIPT_INTERPRETER_H

#include <limits.h>
#include <stdbool.h>

/**
 * The interpreter's path. Local.
 *
 * @param program  its path
 * @param path_out  the interpreter; of `#!/usr/bin/env bash` bash alone, of
 *                  others as it stands there
 * @return false: it has none, or cannot be read
 */
bool me_interpreter_find(const char *program, char path_out[PATH_MAX]);

/** Does the file begin with `#!`? @p path_out as me_interpreter_find(). */
bool me_interpreter_of_script(const char *file, char path_out[PATH_MAX]);

#endif /* MEMEST_SCRIPT_INTERPRETER_H */

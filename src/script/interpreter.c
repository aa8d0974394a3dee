/* SPDX-License-Identifier: BSD-3-Clause */
#include "script/interpreter.h"

#include "script/guise.h"

#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static bool read_at(int fd, void *bytes, size_t length, uint64_t at)
{
    return pread(fd, bytes, length, (off_t)at) == (ssize_t)length;
}

/** PT_INTERP of a 64-bit ELF file of this machine's byte order. */
static bool find_loader(int fd, char path_out[PATH_MAX])
{
    Elf64_Ehdr elf;
    if (!read_at(fd, &elf, sizeof elf, 0) ||
        memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 ||
        elf.e_ident[EI_CLASS] != ELFCLASS64) {
        return false;
    }
    for (uint16_t i = 0; i < elf.e_phnum; i++) {
        Elf64_Phdr part;
        if (!read_at(fd, &part, sizeof part,
                     elf.e_phoff + (uint64_t)i * elf.e_phentsize)) {
            return false;
        }
        if (part.p_type == PT_INTERP) {
            return part.p_filesz > 0 && part.p_filesz < PATH_MAX &&
                   read_at(fd, path_out, part.p_filesz, part.p_offset) &&
                   path_out[part.p_filesz - 1] == '\0';
        }
    }
    return false;
}

/** The words of a `#!` line: the first, or what env is to find. */
static bool read_line(int fd, char path_out[PATH_MAX])
{
    char line[256];
    const ssize_t n = pread(fd, line, sizeof line - 1, 0);
    if (n < 3 || line[0] != '#' || line[1] != '!') {
        return false;
    }
    line[n] = '\0';
    line[strcspn(line, "\r\n")] = '\0';
    const char *word = line + 2 + strspn(line + 2, " \t");
    size_t length = strcspn(word, " \t");
    while (length > 0) {
        (void)snprintf(path_out, PATH_MAX, "%.*s", (int)length, word);
        if (strcmp(me_guise_base(path_out), "env") != 0 && path_out[0] != '-' &&
            strchr(path_out, '=') == NULL) {
            return true;
        }
        word += length;
        word += strspn(word, " \t");
        length = strcspn(word, " \t");
    }
    return false;
}

bool me_interpreter_of_script(const char *file, char path_out[PATH_MAX])
{
    const int fd = openat(AT_FDCWD, file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const bool is_found = fd >= 0 && read_line(fd, path_out);
    if (fd >= 0) {
        (void)close(fd);
    }
    return is_found;
}

bool me_interpreter_find(const char *program, char path_out[PATH_MAX])
{
    if (me_interpreter_of_script(program, path_out)) {
        return true;
    }
    const int fd = openat(AT_FDCWD, program, O_RDONLY | O_CLOEXEC);
    const bool is_found = fd >= 0 && find_loader(fd, path_out);
    if (fd >= 0) {
        (void)close(fd);
    }
    return is_found;
}

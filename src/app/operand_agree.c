/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/operand_agree.h"

#include "base/input.h"
#include "base/parse.h"
#include "base/statement.h"
#include "collectives/agreement.h"
#include "collectives/digest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
    BLOCK_WORDS = 4096
};

/** A file that a command reads, and what it is to it. */
typedef struct operand_file {
    const char *name;
    const char *path; /**< NULL: there is none */
} operand_file;

typedef struct operand_files {
    operand_file at[2];
} operand_files;

static operand_files files_of(const me_cli *cli)
{
    const char *command = cli->command;
    const char *operand = cli->operand;
    if (cli->help || cli->version || (operand == NULL && cli->load == NULL)) {
        return (operand_files){{{NULL, NULL}, {NULL, NULL}}};
    }
    if (cli->load != NULL) {
        return (operand_files){{{"the file of --load", cli->load}, {0}}};
    }
    if (strcmp(command, "diff") == 0) {
        return (operand_files){{{"the first file of diff", operand},
                                {"the second file of diff", cli->second}}};
    }
    const bool is_recording =
        strcmp(command, "replay") == 0 && strcmp(operand, "-") != 0;
    const bool is_order =
        strcmp(command, "schedule") == 0 && me_ends_with(operand, ".csv");
    return (operand_files){
        {{is_recording ? "the file of replay" : "the file of schedule",
          is_recording || is_order ? operand : NULL},
         {0}}};
}

const char *me_operand_word(const me_cli *cli)
{
    return cli->operand != NULL && files_of(cli).at[0].path == cli->operand
               ? "a file"
               : cli->operand;
}

/** Where a file is, and when it was written: not what it has. */
static void state_place(const operand_file *file, me_str *statement)
{
    struct stat about;
    if (stat(file->path, &about) != 0) {
        me_statement_add(statement, file->name, "nowhere");
        return;
    }
    me_statement_add(statement, file->name, "%ju %ju of %jd bytes of %jd.%09ld",
                     (uintmax_t)about.st_dev, (uintmax_t)about.st_ino,
                     (intmax_t)about.st_size, (intmax_t)about.st_mtim.tv_sec,
                     about.st_mtim.tv_nsec);
}

static bool digest_stream(FILE *stream, me_digest *digest)
{
    uint64_t words[BLOCK_WORDS] = {0};
    size_t n = 0;
    while ((n = fread(words, 1, sizeof words, stream)) > 0) {
        memset((char *)words + n, 0, sizeof words - n);
        for (size_t i = 0; i < (n + sizeof *words - 1) / sizeof *words; i++) {
            me_digest_add(digest, words[i]);
        }
        me_digest_add(digest, n);
    }
    return ferror(stream) == 0;
}

/** What a file has, or why it cannot be read. */
static void state_contents(const operand_file *file, bool is_named,
                           me_str *statement)
{
    FILE *stream = NULL;
    me_digest digest = {0, 0};
    me_diag diag = {.status = ME_OK};
    char why[ME_DIAG_LINE] = "cannot be read";
    bool is_read = me_input_open(file->path, &diag, &stream) == ME_OK;
    if (is_read) {
        is_read = digest_stream(stream, &digest);
        (void)fclose(stream);
    } else if (is_named) {
        me_diag_line(&diag, why);
    }
    if (!is_read) {
        me_statement_add(statement, file->name, "%s", why);
        return;
    }
    me_statement_add(
        statement, file->name, "%.80s%sof digest %016" PRIx64 "%016" PRIx64,
        is_named ? file->path : "", is_named ? ", " : "", digest.a, digest.b);
}

/** How processes hold their files against each other. */
typedef enum grain {
    GRAIN_PLACE,    /**< one file of one host */
    GRAIN_CONTENTS, /**< whatever their names */
    GRAIN_NAMED     /**< as GRAIN_CONTENTS, for a message */
} grain;

static me_status agree_on(me_transport *transport, const operand_files *files,
                          grain by, me_diag *diag)
{
    me_str statement = {0};
    for (size_t i = 0; i < sizeof files->at / sizeof files->at[0]; i++) {
        if (files->at[i].path == NULL) {
            continue;
        }
        if (by == GRAIN_PLACE) {
            state_place(&files->at[i], &statement);
        } else {
            state_contents(&files->at[i], by == GRAIN_NAMED, &statement);
        }
    }
    const me_status status = me_statement_agree(transport, &statement, diag);
    me_str_fini(&statement);
    return status;
}

me_status me_operand_files_agree(me_transport *transport, const me_cli *cli,
                                 me_diag *diag)
{
    const operand_files files = files_of(cli);
    if (me_transport_size(transport) == 1) {
        return ME_OK;
    }
    me_diag unused = {.status = ME_OK};
    me_status status = agree_on(transport, &files, GRAIN_PLACE, &unused);
    if (status == ME_ERR_MISMATCH) {
        status = agree_on(transport, &files, GRAIN_CONTENTS, &unused);
    }
    if (status == ME_ERR_MISMATCH) {
        return agree_on(transport, &files, GRAIN_NAMED, diag);
    }
    if (status != ME_OK) {
        *diag = unused;
    }
    return status;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "search/space_agree.h"

#include "base/input.h"
#include "base/parse.h"
#include "base/statement.h"
#include "collectives/agreement.h"
#include "collectives/digest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/** Options whose word may be the name of a file. */
static const char *const of_files[] = {"pipeline.schedule_file", "moe.tokens",
                                       "device.name", "machine.file"};

/** What is in the file, if there is one of that name here. */
static me_status state_contents(const char *axis, const char *word,
                                me_str *statement, me_diag *diag)
{
    char name[2 * ME_SPACE_WORD_BYTES];
    me_digest digest = {0, 0};
    me_diag unread = {.status = ME_OK};
    FILE *file = NULL;
    const me_status status = me_input_open(word, &unread, &file);
    if (status != ME_OK) {
        if (status != ME_ERR_IO) {
            *diag = unread;
            return status;
        }
        return ME_OK; // a name of ours, or refused where a candidate has it
    }
    for (int c = getc(file); c != EOF; c = getc(file)) {
        me_digest_add(&digest, (uint64_t)(unsigned char)c);
    }
    (void)fclose(file);
    (void)snprintf(name, sizeof name, "the contents of %s (%s)", word, axis);
    me_statement_add(statement, name, "of digest %016" PRIx64 "%016" PRIx64,
                     digest.a, digest.b);
    return ME_OK;
}

static me_status state_axis(const me_space_axis *axis, me_str *statement,
                            me_diag *diag)
{
    const bool names_files =
        me_is_one_of(axis->name, strlen(axis->name), of_files,
                     sizeof of_files / sizeof of_files[0]);
    const me_space_words *words = axis->words;
    me_str text = {0};
    me_status status = ME_OK;
    for (uint32_t i = 0; words != NULL && i < words->count; i++) {
        me_str_printf(&text, "%s%s", i == 0 ? "" : ",", words->items[i]);
        if (names_files && status == ME_OK) {
            status =
                state_contents(axis->name, words->items[i], statement, diag);
        }
    }
    char name[2 * ME_SPACE_WORD_BYTES];
    (void)snprintf(name, sizeof name, "--space %s", axis->name);
    me_statement_add(statement, name, "%s",
                     words == NULL ? "of its own words" : me_str_text(&text));
    if (status == ME_OK && me_str_status(&text) != ME_OK) {
        status = me_fail(diag, ME_ERR_NOMEM, "no host memory to search");
    }
    me_str_fini(&text);
    return status;
}

me_status me_space_agree(me_transport *transport, const me_space *space,
                         me_diag *diag)
{
    me_str statement = {0};
    me_status status = ME_OK;
    for (uint32_t i = 0; status == ME_OK && i < space->n_axes; i++) {
        status = state_axis(&space->axes[i], &statement, diag);
    }
    status = me_transport_agree(transport, status, diag);
    if (status == ME_OK) {
        status = me_statement_agree(transport, &statement, diag);
    }
    me_str_fini(&statement);
    return status;
}

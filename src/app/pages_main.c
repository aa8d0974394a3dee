/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes memest.1 and what completes its command line into a folder, when memest
 * is built. */
#include "app/cli_pages.h"
#include "app/output.h"
#include "base/log.h"

static me_status write_page(const char *folder, const char *name,
                            void (*append)(me_str *text), me_diag *diag)
{
    me_str text = {0};
    me_str path = {0};
    append(&text);
    me_str_printf(&path, "%s/%s", folder, name);
    me_status status = me_str_status(&path);
    if (status == ME_OK) {
        status = me_print_text(&text, me_str_text(&path), diag);
    }
    me_str_fini(&path);
    me_str_fini(&text);
    return status;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*append)(me_str *text);
    } pages[] = {
        {"memest.1", me_cli_man},
        {"memest.bash", me_cli_bash},
        {"_memest", me_cli_zsh},
        {"memest.fish", me_cli_fish},
    };

    me_diag diag = {.status = ME_OK};
    const char *folder = argc == 2 ? argv[1] : ".";
    me_status status = ME_OK;
    for (size_t i = 0; status == ME_OK && i < sizeof pages / sizeof pages[0];
         i++) {
        status = write_page(folder, pages[i].name, pages[i].append, &diag);
    }
    if (status != ME_OK) {
        me_log(ME_LOG_ERROR, "%s", diag.text);
    }
    return status == ME_OK ? 0 : 1;
}

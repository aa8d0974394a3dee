/* links: parallel base */
/* SPDX-License-Identifier: BSD-3-Clause */
/* Pipeline layouts: no crash, one line of error; and a layout that was read,
 * written out stage by stage, reads back equal. */
#include "base/str.h"
#include "parallel/layout.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_written_out(const me_layout *layout)
{
    me_str text = {0};
    me_str_append(&text, "E");
    for (int32_t v = 0; v < layout->n_stages; v++) {
        me_str_printf(
            &text, "%st*%d", v == 0 ? "" : "|",
            (int)(layout->first_layer[v + 1] - layout->first_layer[v]));
    }
    me_str_append(&text, "L");
    me_layout back;
    if (me_layout_init(me_str_text(&text), NULL, &back) != ME_OK ||
        back.n_stages != layout->n_stages ||
        memcmp(back.first_layer, layout->first_layer,
               ((size_t)back.n_stages + 1) * sizeof *back.first_layer) != 0) {
        abort();
    }
    me_layout_fini(&back);
    me_str_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    me_str text = {0};
    me_str_append_n(&text, (const char *)data, size);
    me_diag diag = {0};
    me_layout layout;
    if (me_layout_init(me_str_text(&text), &diag, &layout) == ME_OK) {
        check_written_out(&layout);
    } else if (diag.text[0] == '\0' || strchr(diag.text, '\n') != NULL) {
        abort();
    }
    me_layout_fini(&layout);
    me_str_fini(&text);
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/cp_comm.h"

#include <string.h>

#define SEPARATORS " ,"

bool me_cp_comm_next(const char **at, me_cp_comm_type *type_out)
{
    *at += strspn(*at, SEPARATORS);
    const size_t length = strcspn(*at, SEPARATORS);
    for (const me_choice *c = me_cp_comm_type_choices; c->word != NULL; c++) {
        if (length > 0 && strlen(c->word) == length &&
            strncmp(*at, c->word, length) == 0) {
            *type_out = (me_cp_comm_type)c->value;
            *at += length;
            return true;
        }
    }
    return false;
}

me_cp_comm_type me_cp_comm_of(const me_parallel_config *p, int32_t layer)
{
    const char *at = p->cp_comm_layers;
    me_cp_comm_type type = p->cp_comm_type;
    for (int32_t i = 0; me_cp_comm_next(&at, &type); i++) {
        if (i == layer) {
            return type;
        }
    }
    return p->cp_comm_type;
}

bool me_cp_comm_has(const me_parallel_config *p, me_cp_comm_type type)
{
    const char *at = p->cp_comm_layers;
    me_cp_comm_type of_layer = p->cp_comm_type;
    if (*at == '\0') {
        return of_layer == type;
    }
    while (me_cp_comm_next(&at, &of_layer)) {
        if (of_layer == type) {
            return true;
        }
    }
    return false;
}

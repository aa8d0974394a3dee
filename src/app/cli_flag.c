/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/cli_flag.h"

#include "base/parse.h"

/** One more of a flag that may be repeated. */
static me_status store_next(const char **values, int32_t *count,
                            const me_cli_flag *f, const char *value,
                            me_diag *diag)
{
    if (*count == ME_CLI_MAX_SETS) {
        return me_fail(diag, ME_ERR_CONFIG, "%s: more than %d times", f->name,
                       ME_CLI_MAX_SETS);
    }
    values[(*count)++] = value;
    return ME_OK;
}

static me_status store_number(int32_t *at, const me_cli_flag *f,
                              const char *value, me_diag *diag)
{
    const uint64_t least = f->kind == FLAG_COUNT ? 1 : 0;
    uint64_t number = 0;
    if (me_parse_u64(value, &number) != ME_OK || number > INT32_MAX ||
        number < least) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "%s: \"%s\" is not a whole number from %d to %d",
                       f->name, value, (int)least, INT32_MAX);
    }
    *at = (int32_t)number;
    return ME_OK;
}

me_status me_cli_store(me_cli *cli, const me_cli_flag *f, const char *value,
                       me_diag *diag)
{
    char *at = (char *)cli + f->offset;
    switch (f->kind) {
    case FLAG_SWITCH: *(bool *)(void *)at = true; return ME_OK;
    case FLAG_NAME:
    case FLAG_FORMAT:
        if (value[0] == '\0') {
            return me_fail(diag, ME_ERR_CONFIG, "%s needs a value: %s", f->name,
                           f->value);
        }
        *(const char **)(void *)at = value;
        return ME_OK;
    case FLAG_TEXT: *(const char **)(void *)at = value; return ME_OK;
    case FLAG_SET: return store_next(cli->sets, &cli->n_sets, f, value, diag);
    case FLAG_SCHEDULE:
        return store_next(cli->schedules, &cli->n_schedules, f, value, diag);
    case FLAG_VARIANT:
        return store_next(cli->variants, &cli->n_variants, f, value, diag);
    case FLAG_SPACE:
        return store_next(cli->spaces, &cli->n_spaces, f, value, diag);
    case FLAG_NUMBER:
    case FLAG_COUNT: return store_number((int32_t *)(void *)at, f, value, diag);
    }
    return ME_ERR_INTERNAL;
}

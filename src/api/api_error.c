/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/api_private.h"
#include "base/alloc.h"
#include "base/status.h"
#include "model/event.h"

#ifndef ME_VERSION
#    define ME_VERSION "unknown"
#endif

/* The public numbers are the internal ones. */
#define SAME(name)                                                             \
    _Static_assert((int)MEMEST_##name == (int)ME_##name, "numbered alike")
SAME(OK);
SAME(ERR_NOMEM);
SAME(ERR_CONFIG);
SAME(ERR_SYNTAX);
SAME(ERR_IO);
SAME(ERR_OVERFLOW);
SAME(ERR_CAPACITY);
SAME(ERR_MISMATCH);
SAME(ERR_UNSUPPORTED);
SAME(ERR_MPI);
SAME(ERR_INTERNAL);
SAME(ERR_STOPPED);
SAME(CATEGORY_PARAMETER);
SAME(CATEGORY_GRADIENT);
SAME(CATEGORY_MAIN_PARAMETER);
SAME(CATEGORY_OPTIMIZER_STATE);
SAME(CATEGORY_ACTIVATION);
SAME(CATEGORY_TEMPORARY);
SAME(CATEGORY_COMMUNICATION);
SAME(CATEGORY_INPUT);
SAME(CATEGORY_BUFFER);
SAME(CATEGORY_OTHER);
SAME(CATEGORY_COUNT);
SAME(PHASE_SETUP);
SAME(PHASE_FORWARD);
SAME(PHASE_BACKWARD);
SAME(PHASE_RECOMPUTE);
SAME(PHASE_GRADIENT_REDUCTION);
SAME(PHASE_OPTIMIZER);
SAME(PHASE_OTHER);
SAME(PHASE_EVALUATION);
SAME(PHASE_COUNT);

const char *memest_version(void)
{
    return ME_VERSION;
}

memest_error *memest_error_create(void)
{
    return me_alloc(1, sizeof(memest_error), "api.error");
}

void memest_error_destroy(memest_error *error)
{
    me_free(error);
}

memest_status memest_error_status(const memest_error *error)
{
    return me_api_status(error->diag.status);
}

const char *memest_error_text(const memest_error *error)
{
    return error->diag.text;
}

const char *memest_error_file(const memest_error *error)
{
    return error->diag.where;
}

int memest_error_line(const memest_error *error)
{
    return error->diag.line;
}

const char *memest_status_text(memest_status status)
{
    return me_status_text((me_status)status);
}

const char *memest_category_name(memest_category category)
{
    return (unsigned)category < ME_CATEGORY_COUNT
               ? me_category_name((me_category)category)
               : NULL;
}

const char *memest_phase_name(memest_phase phase)
{
    return (unsigned)phase < ME_PHASE_COUNT ? me_phase_name((me_phase)phase)
                                            : NULL;
}

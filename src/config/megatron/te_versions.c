/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/megatron/te_versions.h"

#include <stdlib.h>

/** A size that changed with a version. */
typedef struct version_row {
    unsigned long major; /**< of the first version that has it as measured */
    unsigned long minor;
    uint64_t workspace_less; /**< bytes, of versions before; of cards that have
                                  that much beside whole MiB */
} version_row;

static const version_row rows[] = {
    {2, 8, 1024}, // added beside the 32 MiB of compute capability 9.0
};

/** Is the job's version one before @p row? Its text begins as versions do. */
static bool is_before(const me_config *config, const version_row *row)
{
    char *end = NULL;
    const unsigned long major = strtoul(config->impl.te_version, &end, 10);
    const unsigned long minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
    return major != row->major ? major < row->major : minor < row->minor;
}

uint64_t me_te_version_workspace(const me_config *config, uint64_t bytes)
{
    static const uint64_t mib = 1 << 20;
    uint64_t size = bytes;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (is_before(config, &rows[i]) &&
            size % mib == rows[i].workspace_less) {
            size -= rows[i].workspace_less;
        }
    }
    return size;
}

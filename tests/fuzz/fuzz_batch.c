/* SPDX-License-Identifier: BSD-3-Clause */
/* links: script config base */
#include "config/slurm.h"
#include "script/batch.h"
#include "support/fuzz.h"

/** Any file can be given to sbatch; what its lines ask for is looked up. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static me_batch batch;
    me_slurm_gpus gpus = {.count = 0};
    const char *path = fuzz_file(".sbatch", data, size);
    batch = (me_batch){.nodes = 0};
    const int is_batch = me_batch_is_file(path) ? 1 : 0;
    me_batch_read_file(&batch, path);
    (void)unlink(path);
    if (is_batch == 0 && (batch.nodes != 0 || batch.gres[0] != '\0')) {
        abort();
    }
    me_batch_job job;
    if (me_batch_settle(&batch, &job)) {
        if (job.nodes == 0 || job.tasks == 0) {
            abort();
        }
        me_batch_set_variables(&batch, &job);
    } else if (batch.wrong[0] == '\0') {
        abort();
    }
    if (me_slurm_gpus_read(batch.gres, true, &gpus)) {
        me_str name = {0};
        (void)me_slurm_card_find(gpus.type, &name);
        me_str_fini(&name);
    }
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/tracked.h"

#include "support/test.h"

#include <stdio.h>

memest_job *me_tracked_job(const char *name)
{
    char path[512];
    memest_job *job = memest_job_create();
    memest_error *error = memest_error_create();
    (void)snprintf(path, sizeof path, SOURCE_DIR "/tests/trackers/%s.cfg",
                   name);
    if (memest_job_read_file(job, path, error) != MEMEST_OK) {
        fail_msg("%s", memest_error_text(error));
    }
    memest_error_destroy(error);
    return job;
}

memest_tracker *me_tracked_create(memest_tool tool, bool as_memtracker)
{
    memest_tracker_options options = MEMEST_INIT(memest_tracker_options);
    memest_tracker *tracker = NULL;
    options.tool = tool;
    options.iteration = 1;
    options.as_memtracker = as_memtracker;
    assert_int_equal(memest_tracker_create(&options, &tracker, NULL),
                     MEMEST_OK);
    return tracker;
}

void me_tracked_run(const char *name, memest_tracker *tracker,
                    const memest_observer *observer)
{
    memest_job *job = me_tracked_job(name);
    memest_error *error = memest_error_create();
    if (memest_track(job, 0, tracker, &observer, observer == NULL ? 0 : 1,
                     error) != MEMEST_OK) {
        fail_msg("%s", memest_error_text(error));
    }
    memest_error_destroy(error);
    memest_job_destroy(job);
}

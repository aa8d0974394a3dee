/* SPDX-License-Identifier: BSD-3-Clause */
/* Every schedule that memest knows, for one pipeline: how long it takes, what
 * the first and the last rank hold, and what one rank does. */
#include <inttypes.h>
#include <memest/memest.h>
#include <stdio.h>

/** What a rank does, as PyTorch writes it: 0F0 1F0 … */
static void print_actions(const memest_order *order, int32_t rank)
{
    printf("\nrank %d:", rank);
    for (size_t i = 0; i < memest_order_n_actions(order, rank); i++) {
        memest_action action = MEMEST_INIT(memest_action);
        if (memest_order_action(order, rank, i, &action)) {
            printf(" %d%s%d", action.stage, action.kind, action.microbatch);
        }
    }
    printf("\n");
}

static memest_status print_schedule(const char *name, int prints_actions,
                                    memest_error *error)
{
    memest_pipeline pipeline = MEMEST_INIT(memest_pipeline);
    memest_course course = MEMEST_INIT(memest_course);
    memest_order *order = NULL;
    pipeline.ranks = 4;
    pipeline.microbatches = 8;
    memest_status status = memest_order_create(name, &pipeline, &order, error);
    if (status == MEMEST_OK) {
        status = memest_order_run(order, "F=1,I=1,W=1", &course, error);
    }
    if (status == MEMEST_OK) {
        printf("%-18s %6d %8" PRId64 " %6" PRId64 " %5d %4d\n", name,
               memest_order_stages(order), course.makespan, course.bubble,
               memest_order_in_flight(order, 0),
               memest_order_in_flight(order, pipeline.ranks - 1));
    } else {
        printf("%-18s %s\n", name, memest_error_text(error));
    }
    if (status == MEMEST_OK && prints_actions) {
        print_actions(order, 0);
    }
    memest_order_destroy(order);
    /* What four ranks cannot run is no failure of this program. */
    return status == MEMEST_ERR_CONFIG ? MEMEST_OK : status;
}

int main(void)
{
    memest_error *error = memest_error_create();
    if (error == NULL) {
        return 1;
    }
    printf("%-18s stages makespan bubble first last\n", "");
    memest_status status = MEMEST_OK;
    const char *name = NULL;
    for (size_t i = 0;
         status == MEMEST_OK && (name = memest_schedule_name(i)) != NULL; i++) {
        status = print_schedule(name, 0, error);
    }
    if (status == MEMEST_OK) {
        status = print_schedule("Schedule1F1B", 1, error);
    }
    if (status != MEMEST_OK) {
        fprintf(stderr, "schedule: %s\n", memest_error_text(error));
    }
    memest_error_destroy(error);
    return status == MEMEST_OK ? 0 : 1;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/workers.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

/** What the threads share. */
typedef struct work {
    atomic_uint next;
    uint32_t count;
    bool (*run)(void *self, uint32_t task);
    void *self;
} work;

static uint32_t count_cpus(void)
{
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    const int n =
        sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
    return n < 1 ? 1 : (uint32_t)n;
}

uint32_t me_workers_share(uint32_t wanted, uint32_t processes)
{
    const uint32_t share = wanted == 0 ? count_cpus() / processes : wanted;
    return share == 0 ? 1 : share;
}

static void *run_tasks(void *self)
{
    work *w = self;
    uint32_t task = atomic_fetch_add(&w->next, 1);
    while (task < w->count) {
        if (!w->run(w->self, task)) {
            atomic_store(&w->next, w->count);
            break;
        }
        task = atomic_fetch_add(&w->next, 1);
    }
    return NULL;
}

void me_workers_run(uint32_t threads, uint32_t count,
                    bool (*run)(void *self, uint32_t task), void *self)
{
    work w = {.count = count, .run = run, .self = self};
    pthread_t others[ME_WORKERS_MAX];
    uint32_t n = 0;
    while (n + 1 < threads && n + 1 < count && n < ME_WORKERS_MAX &&
           pthread_create(&others[n], NULL, run_tasks, &w) == 0) {
        n++;
    }
    (void)run_tasks(&w);
    for (uint32_t i = 0; i < n; i++) {
        (void)pthread_join(others[i], NULL);
    }
}

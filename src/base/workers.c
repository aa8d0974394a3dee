/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/workers.h"

#include "base/alloc.h"
#include "base/limits.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

/** What the threads share. */
typedef struct work {
    atomic_uint next;
    uint32_t count;
    bool (*run)(void *self, uint32_t task);
    void *self;
    uint64_t lost; /**< requests for memory, of the caller when it began */
    atomic_ullong more_lost;         /**< of the threads */
    _Atomic(const char *) lost_name; /**< of one of these */
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

/** A thread begins with what its caller has lost, so that what is lost later
 *  can be told from it in both, and hands over the rest. */
static void *work_for_caller(void *self)
{
    work *w = self;
    me_alloc_set_lost(w->lost, NULL);
    (void)run_tasks(w);
    const uint64_t more = me_alloc_lost() - w->lost;
    if (more > 0) {
        (void)atomic_fetch_add(&w->more_lost, more);
        atomic_store(&w->lost_name, me_alloc_lost_name());
    }
    return NULL;
}

/** Of a thread: the default, which `ulimit -s` sets, or what is needed. */
static bool set_stack(pthread_attr_t *attributes)
{
    size_t bytes = 0;
    return pthread_attr_getstacksize(attributes, &bytes) == 0 &&
           (bytes >= ME_STACK_BYTES ||
            pthread_attr_setstacksize(attributes, ME_STACK_BYTES) == 0);
}

void me_workers_run(uint32_t threads, uint32_t count,
                    bool (*run)(void *self, uint32_t task), void *self)
{
    work w = {
        .count = count, .run = run, .self = self, .lost = me_alloc_lost()};
    pthread_t others[ME_WORKERS_MAX];
    pthread_attr_t attributes;
    uint32_t n = 0;
    const bool has_attributes = pthread_attr_init(&attributes) == 0;
    while (has_attributes && set_stack(&attributes) && n + 1 < threads &&
           n + 1 < count && n < ME_WORKERS_MAX &&
           pthread_create(&others[n], &attributes, work_for_caller, &w) == 0) {
        n++;
    }
    if (has_attributes) {
        (void)pthread_attr_destroy(&attributes);
    }
    (void)run_tasks(&w);
    for (uint32_t i = 0; i < n; i++) {
        (void)pthread_join(others[i], NULL);
    }
    const uint64_t more = atomic_load(&w.more_lost);
    if (more > 0) {
        me_alloc_set_lost(me_alloc_lost() + more, atomic_load(&w.lost_name));
    }
}

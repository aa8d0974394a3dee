/**
 * @file
 * memest as a library: how much memory does every rank of a distributed
 * training job take, where, when and why? Includes all of its headers.
 *
 *   job.h       a job from a file, a launch command, options
 *   report.h    the estimate and what it says of every rank
 *   compare.h   a job under several schedules and settings, side by side
 *   search.h    which layouts of a number of GPUs fit, and which is fastest
 *   fit.h       what would make a job fit
 *   observer.h  hooks: modules, allocations, iterations, as they happen
 *   tracker.h   PyTorch's own memory tools: MemTracker and the others
 *   series.h    memory after each operation
 *   pool.h      PyTorch's caching allocator alone
 *   schedule.h  orders of pipeline schedules
 *   names.h, error.h, version.h
 *
 * Handles. What a `…_create()` or an argument `…_out` of type `**` gives is the
 * caller's and goes to the `…_destroy()` of its type. A pointer to `const` that
 * a function returns, and every text in a record, is borrowed from the object
 * that it was asked of.
 *
 * Records are structs that begin with `struct_size`, their size as the caller
 * was compiled: `memest_peak peak = MEMEST_INIT(memest_peak);`. The library
 * fills or reads what lies within, so records can grow at their end. What the
 * library itself makes and hands to a hook has its own size there.
 *
 * Threads. There is no state outside of objects. Different objects may be used
 * by different threads at once, and one object by several where all of them
 * pass it as `const`. Hooks are called by the thread that called the library.
 *
 * The library is one process: it never starts or uses MPI. It writes no file
 * and prints nothing.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_MEMEST_H
#define MEMEST_MEMEST_H

#include "memest/compare.h"
#include "memest/error.h"
#include "memest/fit.h"
#include "memest/job.h"
#include "memest/names.h"
#include "memest/observer.h"
#include "memest/pool.h"
#include "memest/report.h"
#include "memest/schedule.h"
#include "memest/search.h"
#include "memest/series.h"
#include "memest/tracker.h"
#include "memest/version.h"

#endif /* MEMEST_MEMEST_H */

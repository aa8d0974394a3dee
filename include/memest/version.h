/**
 * @file
 * The version of these headers, and how the library's symbols are marked.
 *
 * Versions are MAJOR.MINOR.PATCH. Within a MAJOR version functions, fields and
 * constants are added, never removed or renumbered: a program that was linked
 * with an older library of the same MAJOR runs with a newer one. The library's
 * SONAME carries MAJOR.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_VERSION_H
#define MEMEST_VERSION_H

/** The version of the headers; CMake reads the project's version here. */
#define MEMEST_VERSION_MAJOR 0
#define MEMEST_VERSION_MINOR 1
#define MEMEST_VERSION_PATCH 0

/** A symbol of the library: everything else is hidden. */
#if defined(__GNUC__)
#    define MEMEST_API        __attribute__((visibility("default")))
#    define MEMEST_MUST_CHECK __attribute__((warn_unused_result))
#else
#    define MEMEST_API
#    define MEMEST_MUST_CHECK
#endif

/** An initializer of a record: all zero but for its size. */
#ifdef __cplusplus
#    define MEMEST_INIT(type)                                                  \
        {                                                                      \
            sizeof(type)                                                       \
        }
#else
#    define MEMEST_INIT(type)                                                  \
        {                                                                      \
            .struct_size = sizeof(type)                                        \
        }
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** The version of the library that runs, "0.1.0"; static. */
MEMEST_API const char *memest_version(void);

#ifdef __cplusplus
}
#endif

#endif /* MEMEST_VERSION_H */

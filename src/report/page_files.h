/**
 * @file
 * Files that the program carries for pages: Vega's modules and the page's own.
 * cmake/embed.cmake makes the array while building.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_REPORT_PAGE_FILES_H
#define MEMEST_REPORT_PAGE_FILES_H

#include <stddef.h>

/** A file of that name, bytes as they are on the disk. */
typedef struct me_page_file {
    const char *name;
    const unsigned char *bytes;
    size_t size;
} me_page_file;

/** All files; one without a name is the end. */
extern const me_page_file me_page_files[];

#endif /* MEMEST_REPORT_PAGE_FILES_H */

/**
 * @file
 * The objects of a topology in hwloc's XML, as far as memest looks at them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_DEVICE_TOPOLOGY_OBJECTS_H
#define MEMEST_DEVICE_TOPOLOGY_OBJECTS_H

#include "base/status.h"
#include "base/str.h"
#include "base/xml_reader.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    ME_XML_INFO_KINDS = 8,
    ME_MATRIX_OBJECTS = 256
};

/** What an object is to hwloc; what memest does not tell apart is `normal`. */
typedef enum me_xml_type {
    ME_XML_NORMAL, /**< has CPUs: a core, a cache, a group */
    ME_XML_PACKAGE,
    ME_XML_MEMORY, /**< a NUMA node or the cache before it */
    ME_XML_BRIDGE,
    ME_XML_PCI_DEVICE,
    ME_XML_OS_DEVICE,
    ME_XML_MISC
} me_xml_type;

/** Infos that somebody asks for, in the order of me_xml_info. */
typedef enum me_xml_info {
    ME_XML_ARCHITECTURE,
    ME_XML_CPU_VENDOR,
    ME_XML_CPU_FAMILY,
    ME_XML_CPU_MODEL,
    ME_XML_BACKEND,
    ME_XML_GPU_MODEL,
    ME_XML_GPU_MEMORY_KIB,
    ME_XML_GPU_MULTIPROCESSORS
} me_xml_info;

/** One object. Spans are of the file's text. */
typedef struct me_xml_object {
    me_xml_type type;
    int32_t parent; /**< index; -1: the root */
    uint64_t gp_index;
    me_xml_span subtype;
    me_xml_span nodeset;
    me_xml_span info[ME_XML_INFO_KINDS];
    bool is_pci_bridge; /**< its upstream side is PCI */
    uint64_t address;   /**< of PCI, in the order of hwloc */
    uint32_t pci_class; /**< 16 bits */
    uint32_t pci_vendor;
    double link_gbs;  /**< of PCI, GB/s; 0: not known */
    uint64_t os_type; /**< hwloc's number of what an OS device is */
} me_xml_object;

/** NVLinks between objects, in MB/s. */
typedef struct me_xml_matrix {
    uint32_t n;
    uint64_t gp_index[ME_MATRIX_OBJECTS];
    uint64_t *values; /**< n times n */
} me_xml_matrix;

/** A file. */
typedef struct me_xml_topology {
    me_str text;
    me_xml_object *objects; /**< parents before children; the root is first */
    uint32_t n_objects;
    uint32_t capacity;
    me_xml_matrix nvlinks; /**< n is 0: none are told */
} me_xml_topology;

/**
 * Read what `lstopo FILE.xml` writes, of hwloc 1 or 2. What hwloc does not
 * accept is not accepted: types, sets of CPUs and nodes that a type must have,
 * who may lie in whom. Local.
 *
 * @param topology_out  for me_xml_topology_fini(), also on failure
 * @return ME_OK; as me_input_read(); ME_ERR_SYNTAX, ME_ERR_CONFIG with the
 *         line; ME_ERR_NOMEM
 */
me_status me_xml_topology_read(const char *path, me_diag *diag,
                               me_xml_topology *topology_out) ME_MUST_CHECK;

/** Give back. Local. */
void me_xml_topology_fini(me_xml_topology *topology);

#endif /* MEMEST_DEVICE_TOPOLOGY_OBJECTS_H */

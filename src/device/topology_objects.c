/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/topology_objects.h"

#include "base/alloc.h"
#include "base/input.h"
#include "base/parse.h"
#include "device/pci_text.h"

#include <string.h>

enum {
    OBJECTS_MAX = 1 << 20,
    NUMBER_BYTES = 32,
    VERSION_MAX = 2
};

static const char blanks[] = " \t\r\n";

/** A file under way. */
typedef struct reader {
    me_xml_reader xml;
    me_xml_topology *topology;
    uint64_t version; /**< of the format: 1 or 2 */
    me_diag *diag;
} reader;

/** @param what  such as "gp_index = "; @param right  behind the value */
static me_status refuse(const reader *r, const char *what, me_xml_span value,
                        const char *right)
{
    char shown[64];
    me_xml_copy(value, shown, sizeof shown);
    return me_xml_fail(&r->xml, r->diag, ME_ERR_CONFIG, "%s'%s'%s", what, shown,
                       right);
}

/** Types by their names, as hwloc writes them. */
static bool find_type(me_xml_span name, me_xml_type *type_out)
{
    static const struct {
        const char *name;
        me_xml_type type;
    } types[] = {
        {"Machine", ME_XML_NORMAL},    {"System", ME_XML_NORMAL},
        {"Package", ME_XML_PACKAGE},   {"Socket", ME_XML_PACKAGE},
        {"Die", ME_XML_NORMAL},        {"Group", ME_XML_NORMAL},
        {"Tile", ME_XML_NORMAL},       {"Module", ME_XML_NORMAL},
        {"Core", ME_XML_NORMAL},       {"PU", ME_XML_NORMAL},
        {"Cache", ME_XML_NORMAL},      {"L1Cache", ME_XML_NORMAL},
        {"L2Cache", ME_XML_NORMAL},    {"L3Cache", ME_XML_NORMAL},
        {"L4Cache", ME_XML_NORMAL},    {"L5Cache", ME_XML_NORMAL},
        {"L1iCache", ME_XML_NORMAL},   {"L2iCache", ME_XML_NORMAL},
        {"L3iCache", ME_XML_NORMAL},   {"NUMANode", ME_XML_MEMORY},
        {"MemCache", ME_XML_MEMORY},   {"Bridge", ME_XML_BRIDGE},
        {"PCIDev", ME_XML_PCI_DEVICE}, {"OSDev", ME_XML_OS_DEVICE},
        {"Misc", ME_XML_MISC},
    };

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (me_xml_is(name, types[i].name)) {
            *type_out = types[i].type;
            return true;
        }
    }
    return false;
}

static bool has_cpus(me_xml_type type)
{
    return type == ME_XML_NORMAL || type == ME_XML_PACKAGE;
}

static bool is_io(me_xml_type type)
{
    return type == ME_XML_BRIDGE || type == ME_XML_PCI_DEVICE ||
           type == ME_XML_OS_DEVICE;
}

/** Decimal digits and nothing else. */
static bool read_number(me_xml_span span, uint64_t *number_out)
{
    char text[NUMBER_BYTES];
    me_xml_copy(span, text, sizeof text);
    return span.length < sizeof text && me_parse_u64(text, number_out) == ME_OK;
}

/** GB/s, up to a thousand. */
static bool read_speed(me_xml_span span, double *gbs_out)
{
    char text[NUMBER_BYTES];
    me_xml_copy(span, text, sizeof text);
    return span.length < sizeof text &&
           me_parse_double(text, gbs_out) == ME_OK && *gbs_out >= 0 &&
           *gbs_out <= 1e3;
}

static me_status read_pci(const reader *r, me_xml_object *object)
{
    const me_xml_span bus = me_xml_attribute_of(&r->xml, "pci_busid");
    const me_xml_span type = me_xml_attribute_of(&r->xml, "pci_type");
    const me_xml_span speed = me_xml_attribute_of(&r->xml, "pci_link_speed");
    const bool is_device = object->type == ME_XML_PCI_DEVICE;
    if ((is_device || bus.text != NULL) &&
        !me_pci_address_read(bus, &object->address)) {
        return refuse(r, "pci_busid = ", bus, ": must be as 0000:12:00.0");
    }
    if ((is_device || type.text != NULL) &&
        !me_pci_class_read(type, &object->pci_class, &object->pci_vendor)) {
        return refuse(r, "pci_type = ", type, ": must be as 0302 [10de:2330]");
    }
    if (speed.text != NULL && !read_speed(speed, &object->link_gbs)) {
        return refuse(r, "pci_link_speed = ", speed, ": must be GB/s");
    }
    return ME_OK;
}

static me_status read_io(const reader *r, me_xml_object *object)
{
    const me_xml_span sides = me_xml_attribute_of(&r->xml, "bridge_type");
    const me_xml_span os = me_xml_attribute_of(&r->xml, "osdev_type");
    if (object->type == ME_XML_OS_DEVICE) {
        return read_number(os, &object->os_type)
                   ? ME_OK
                   : refuse(r, "osdev_type = ", os, ": must be a number");
    }
    if (object->type == ME_XML_BRIDGE) {
        object->is_pci_bridge = me_xml_is(sides, "1-1");
        if (!object->is_pci_bridge && !me_xml_is(sides, "0-1")) {
            return refuse(r, "bridge_type = ", sides, ": must be 0-1 or 1-1");
        }
    }
    return read_pci(r, object);
}

static bool has(const reader *r, const char *name)
{
    return me_xml_attribute_of(&r->xml, name).text != NULL;
}

/** Sets of CPUs and nodes that hwloc wants, or does not. */
static me_status check_sets(const reader *r, const me_xml_object *object)
{
    static const char *const sets[] = {"cpuset", "complete_cpuset", "nodeset",
                                       "complete_nodeset"};
    const bool is_older = r->version < 2;
    const bool is_special = is_io(object->type) || object->type == ME_XML_MISC;
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        const bool is_of_nodes = i >= 2;
        const bool is_needed =
            !is_special &&
            (!is_of_nodes || !is_older || object->type == ME_XML_MEMORY ||
             has(r, sets[2]) || has(r, sets[3]));
        const bool is_allowed = !is_special || is_older;
        if (is_needed && !has(r, sets[i])) {
            return me_xml_fail(&r->xml, r->diag, ME_ERR_CONFIG,
                               "an object has no %s", sets[i]);
        }
        if (!is_allowed && has(r, sets[i])) {
            return me_xml_fail(&r->xml, r->diag, ME_ERR_CONFIG,
                               "a device has a %s", sets[i]);
        }
    }
    return ME_OK;
}

/** Who may lie in whom. */
static bool may_lie_in(const reader *r, me_xml_type type, me_xml_type parent)
{
    if (is_io(type)) {
        return parent != ME_XML_MISC &&
               (parent != ME_XML_MEMORY || r->version < 2);
    }
    if (type == ME_XML_MEMORY) {
        return !is_io(parent) && parent != ME_XML_MISC;
    }
    return type == ME_XML_MISC || has_cpus(parent) ||
           (parent == ME_XML_MEMORY && r->version < 2);
}

/** hwloc 1 leaves a machine out that has but one NUMA node, if it is asked. */
static bool may_be_root(const reader *r, me_xml_type type)
{
    return has_cpus(type) || (type == ME_XML_MEMORY && r->version < 2);
}

/** The attributes of an object. */
static me_status read_attributes(const reader *r, me_xml_object *object)
{
    const me_xml_reader *xml = &r->xml;
    const me_xml_span type = me_xml_attribute_of(xml, "type");
    if (!find_type(type, &object->type)) {
        return refuse(r, "type = ", type, ": is no type of hwloc's");
    }
    const me_xml_object *objects = r->topology->objects;
    if (object->parent < 0
            ? !may_be_root(r, object->type)
            : !may_lie_in(r, object->type, objects[object->parent].type)) {
        return refuse(r, "type = ", type, ": may not lie where it does");
    }
    const me_xml_span index = me_xml_attribute_of(xml, "gp_index");
    if (r->version >= 2 && !read_number(index, &object->gp_index)) {
        return refuse(r, "gp_index = ", index, ": must be a number");
    }
    object->subtype = me_xml_attribute_of(xml, "subtype");
    object->nodeset = me_xml_attribute_of(xml, "nodeset");
    const me_status status = check_sets(r, object);
    return status == ME_OK && is_io(object->type) ? read_io(r, object) : status;
}

static me_xml_object *add_object(reader *r, int32_t parent)
{
    me_xml_topology *t = r->topology;
    me_xml_object *larger = me_grow(t->objects, t->n_objects, &t->capacity,
                                    sizeof *larger, "device.objects");
    if (larger == NULL) {
        return NULL;
    }
    t->objects = larger;
    me_xml_object *object = &t->objects[t->n_objects++];
    *object = (me_xml_object){.parent = parent};
    return object;
}

static me_status open_object(reader *r, int32_t parent)
{
    if (r->topology->n_objects == OBJECTS_MAX) {
        return me_xml_fail(&r->xml, r->diag, ME_ERR_CONFIG, "over %d objects",
                           OBJECTS_MAX);
    }
    me_xml_object *object = add_object(r, parent);
    return object == NULL
               ? me_fail(r->diag, ME_ERR_NOMEM, "no host memory for a topology")
               : read_attributes(r, object);
}

static void read_info(const reader *r, me_xml_object *object)
{
    static const char *const names[ME_XML_INFO_KINDS] = {"Architecture",
                                                         "CPUVendor",
                                                         "CPUFamilyNumber",
                                                         "CPUModelNumber",
                                                         "Backend",
                                                         "GPUModel",
                                                         "CUDAGlobalMemorySize",
                                                         "CUDAMultiProcessors"};
    const me_xml_span name = me_xml_attribute_of(&r->xml, "name");
    for (int i = 0; i < ME_XML_INFO_KINDS; i++) {
        if (name.text != NULL && me_xml_is(name, names[i]) &&
            object->info[i].text == NULL) {
            object->info[i] = me_xml_attribute_of(&r->xml, "value");
        }
    }
}

/** An object that has opened, with all that lies in it. */
static me_status read_object(reader *r)
{
    int32_t open = -1;
    me_status status = open_object(r, -1);
    open = 0;
    while (status == ME_OK && open >= 0) {
        me_xml_object *objects = r->topology->objects;
        status = me_xml_next(&r->xml, r->diag);
        if (status != ME_OK || r->xml.kind == ME_XML_TEXT) {
            continue;
        }
        if (r->xml.kind == ME_XML_CLOSE) {
            open = objects[open].parent;
        } else if (me_xml_is(r->xml.name, "object")) {
            status = open_object(r, open);
            open = (int32_t)r->topology->n_objects - 1;
        } else {
            if (me_xml_is(r->xml.name, "info")) {
                read_info(r, &objects[open]);
            }
            status = me_xml_skip(&r->xml, r->diag);
        }
    }
    return status;
}

/** The next word of a text; of `OSDev:9` what stands behind the colon. */
static bool next_number(me_xml_span *text, uint64_t *number_out)
{
    while (text->length > 0 && strchr(blanks, *text->text) != NULL) {
        text->text++;
        text->length--;
    }
    me_xml_span word = {text->text, 0};
    while (text->length > 0 && strchr(blanks, *text->text) == NULL) {
        word.length++;
        text->text++;
        text->length--;
        if (word.text[word.length - 1] == ':') {
            word = (me_xml_span){text->text, 0};
        }
    }
    return read_number(word, number_out);
}

/** The numbers of one text, behind those before. */
static me_status read_text(const reader *r, uint64_t *numbers, uint32_t n,
                           uint32_t *n_read)
{
    me_xml_span left = r->xml.text;
    while (left.length > 0 &&
           strchr(blanks, left.text[left.length - 1]) != NULL) {
        left.length--;
    }
    while (left.length > 0) {
        if (*n_read == n || !next_number(&left, &numbers[*n_read])) {
            return me_xml_fail(&r->xml, r->diag, ME_ERR_CONFIG,
                               "no number, or more than a matrix of %u objects "
                               "has",
                               r->topology->nvlinks.n);
        }
        (*n_read)++;
    }
    return ME_OK;
}

/** Those of an `<indexes>` or `<u64values>` that has opened. */
static me_status read_numbers(reader *r, uint64_t *numbers, uint32_t n,
                              uint32_t *n_read)
{
    me_status status = me_xml_next(&r->xml, r->diag);
    while (status == ME_OK && r->xml.kind == ME_XML_TEXT) {
        status = read_text(r, numbers, n, n_read);
        if (status == ME_OK) {
            status = me_xml_next(&r->xml, r->diag);
        }
    }
    return status == ME_OK && r->xml.kind != ME_XML_CLOSE
               ? me_xml_fail(&r->xml, r->diag, ME_ERR_CONFIG,
                             "a matrix has numbers alone")
               : status;
}

/** All parts of the matrix that has opened. */
static me_status read_parts(reader *r)
{
    me_xml_matrix *matrix = &r->topology->nvlinks;
    const uint32_t n = matrix->n;
    uint32_t n_indexes = 0;
    uint32_t n_values = 0;
    me_status status = me_xml_next(&r->xml, r->diag);
    while (status == ME_OK && r->xml.kind != ME_XML_CLOSE) {
        if (r->xml.kind == ME_XML_OPEN && me_xml_is(r->xml.name, "indexes")) {
            status = read_numbers(r, matrix->gp_index, n, &n_indexes);
        } else if (r->xml.kind == ME_XML_OPEN &&
                   me_xml_is(r->xml.name, "u64values")) {
            status = read_numbers(r, matrix->values, n * n, &n_values);
        } else {
            status = me_xml_fail(&r->xml, r->diag, ME_ERR_CONFIG,
                                 "a matrix has indexes and u64values");
        }
        if (status == ME_OK) {
            status = me_xml_next(&r->xml, r->diag);
        }
    }
    return status == ME_OK && (n_indexes != n || n_values != n * n)
               ? me_xml_fail(&r->xml, r->diag, ME_ERR_CONFIG,
                             "a matrix of %u objects has %u indexes and %u "
                             "numbers",
                             n, n_indexes, n_values)
               : status;
}

/** A matrix that has opened: NVLink's is kept, if nothing came before it. */
static me_status read_matrix(reader *r, bool has_types)
{
    me_xml_matrix *matrix = &r->topology->nvlinks;
    const me_xml_span indexing = me_xml_attribute_of(&r->xml, "indexing");
    const me_xml_span count = me_xml_attribute_of(&r->xml, "nbobjs");
    uint64_t n = 0;
    if (!me_xml_is(me_xml_attribute_of(&r->xml, "name"), "NVLinkBandwidth") ||
        (!has_types && !me_xml_is(indexing, "gp")) || matrix->n > 0) {
        return me_xml_skip(&r->xml, r->diag);
    }
    if (!read_number(count, &n) || n == 0 || n > ME_MATRIX_OBJECTS) {
        return refuse(r, "nbobjs = ", count,
                      ": must be a number from 1 to 256");
    }
    matrix->values = me_alloc(n * n, sizeof *matrix->values, "device.nvlinks");
    if (matrix->values == NULL) {
        return me_fail(r->diag, ME_ERR_NOMEM, "no host memory for a topology");
    }
    matrix->n = (uint32_t)n;
    return read_parts(r);
}

/** `<topology version="2.0">`; before hwloc 2 there is no version. */
static me_status read_head(reader *r)
{
    me_status status = me_xml_next(&r->xml, r->diag);
    if (status != ME_OK) {
        return status;
    }
    if (!me_xml_is(r->xml.name, "topology")) {
        return refuse(r, "", r->xml.name,
                      " is no topology; lstopo FILE.xml writes one");
    }
    me_xml_span version = me_xml_attribute_of(&r->xml, "version");
    r->version = 1;
    const char *dot =
        version.text == NULL ? NULL : memchr(version.text, '.', version.length);
    if (dot != NULL) {
        version.length = (size_t)(dot - version.text);
    }
    if (version.text != NULL && (!read_number(version, &r->version) ||
                                 r->version < 1 || r->version > VERSION_MAX)) {
        return refuse(r, "version = ", version,
                      ": 1 and 2 of hwloc's XML are read");
    }
    return ME_OK;
}

static me_status read_all(reader *r)
{
    bool has_root = false;
    me_status status = read_head(r);
    while (status == ME_OK && r->xml.kind != ME_XML_END) {
        status = me_xml_next(&r->xml, r->diag);
        if (status != ME_OK || r->xml.kind != ME_XML_OPEN) {
            continue;
        }
        const bool has_types = me_xml_is(r->xml.name, "distances2hetero");
        if (me_xml_is(r->xml.name, "object") && !has_root) {
            has_root = true;
            status = read_object(r);
        } else if (has_root &&
                   (has_types || me_xml_is(r->xml.name, "distances2"))) {
            status = read_matrix(r, has_types);
        } else {
            status = me_xml_skip(&r->xml, r->diag);
        }
    }
    return status == ME_OK && !has_root
               ? me_xml_fail(&r->xml, r->diag, ME_ERR_CONFIG,
                             "a topology without objects")
               : status;
}

me_status me_xml_topology_read(const char *path, me_diag *diag,
                               me_xml_topology *topology_out)
{
    *topology_out = (me_xml_topology){.n_objects = 0};
    me_status status =
        me_input_read(path, ME_INPUT_MAX_BYTES, diag, &topology_out->text);
    if (status != ME_OK) {
        return status;
    }
    reader r = {.xml = me_xml_begin(path, me_str_text(&topology_out->text),
                                    topology_out->text.length),
                .topology = topology_out,
                .diag = diag};
    return read_all(&r);
}

void me_xml_topology_fini(me_xml_topology *topology)
{
    me_free(topology->objects);
    me_free(topology->nvlinks.values);
    me_str_fini(&topology->text);
    *topology = (me_xml_topology){.n_objects = 0};
}

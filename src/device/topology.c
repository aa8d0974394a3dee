/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/topology.h"

#include "base/parse.h"
#include "device/topology_card.h"
#include "device/topology_objects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NVIDIA = 0x10de,      /* PCI vendor */
    DISPLAY_CLASS = 0x03, /* upper byte of the PCI classes of GPUs */
    OPEN_FABRICS = 3      /* hwloc's number of InfiniBand and RoCE devices */
};

/** The GPUs of a node, by PCI address. */
typedef struct gpus {
    const me_xml_object *at[ME_TOPOLOGY_GPUS];
    int n;
} gpus;

static int compare_addresses(const void *a, const void *b)
{
    const uint64_t x = (*(me_xml_object *const *)a)->address;
    const uint64_t y = (*(me_xml_object *const *)b)->address;
    return (x > y) - (x < y);
}

static bool is_gpu(const me_xml_object *object)
{
    return object->type == ME_XML_PCI_DEVICE && object->pci_vendor == NVIDIA &&
           object->pci_class >> 8 == DISPLAY_CLASS;
}

/** @return how many there are; more than fit are counted */
static int find_gpus(const me_xml_topology *t, gpus *found)
{
    int n = 0;
    for (uint32_t i = 0; i < t->n_objects; i++) {
        if (is_gpu(&t->objects[i])) {
            if (n < ME_TOPOLOGY_GPUS) {
                found->at[n] = &t->objects[i];
            }
            n++;
        }
    }
    found->n = n < ME_TOPOLOGY_GPUS ? n : ME_TOPOLOGY_GPUS;
    qsort(found->at, (size_t)found->n, sizeof(found->at[0]), compare_addresses);
    return n;
}

/** What an object lies in; NULL above the root. */
static const me_xml_object *above(const me_xml_topology *t,
                                  const me_xml_object *object)
{
    return object->parent < 0 ? NULL : &t->objects[object->parent];
}

/** The nearest object above both. */
static const me_xml_object *common_parent(const me_xml_topology *t,
                                          const me_xml_object *a,
                                          const me_xml_object *b)
{
    for (const me_xml_object *x = above(t, a); x != NULL; x = above(t, x)) {
        for (const me_xml_object *y = above(t, b); y != NULL; y = above(t, y)) {
            if (x == y) {
                return x;
            }
        }
    }
    return NULL;
}

/** The last word of a set, which has 32 bits, and the words before it. */
static uint64_t take_last_word(me_xml_span *set)
{
    uint64_t word = 0;
    unsigned shift = 0;
    while (set->length > 0) {
        const char c = set->text[--set->length];
        const char letter = (char)(c | ' ');
        if (c == ',') {
            break;
        }
        if (c != 'x' && shift < 32) { // 0x is in front of a word
            const unsigned digit = c >= '0' && c <= '9'
                                       ? (unsigned)(c - '0')
                                       : (unsigned)(letter - 'a' + 10) & 15U;
            word |= (uint64_t)digit << shift;
            shift += 4;
        }
    }
    return word;
}

/** Do two sets, such as `0x1,,0x00000003`, have the same members? */
static bool is_same_set(me_xml_span a, me_xml_span b)
{
    bool is_same = true;
    while (is_same && (a.length > 0 || b.length > 0)) {
        is_same = take_last_word(&a) == take_last_word(&b);
    }
    return is_same;
}

/** The nearest object above that is no device. */
static const me_xml_object *host_of(const me_xml_topology *t,
                                    const me_xml_object *object)
{
    const me_xml_object *host = object;
    while (host->type == ME_XML_BRIDGE || host->type == ME_XML_PCI_DEVICE ||
           host->type == ME_XML_OS_DEVICE) {
        host = above(t, host); // the root is none
    }
    return host;
}

static me_gpu_relation relate(const me_xml_topology *t, const me_xml_object *a,
                              const me_xml_object *b)
{
    const me_xml_object *common = common_parent(t, a, b);
    if (common->type == ME_XML_BRIDGE && common->is_pci_bridge) {
        return ME_GPUS_SHARE_SWITCH;
    }
    return is_same_set(host_of(t, a)->nodeset, host_of(t, b)->nodeset)
               ? ME_GPUS_SHARE_NUMA
               : ME_GPUS_SHARE_MACHINE;
}

static const me_xml_object *find_object(const me_xml_topology *t,
                                        uint64_t gp_index)
{
    for (uint32_t i = 0; i < t->n_objects; i++) {
        if (t->objects[i].gp_index == gp_index) {
            return &t->objects[i];
        }
    }
    return NULL;
}

/** The GPU that an object of NVML's or CUDA's is; -1: none. */
static int index_of(const me_xml_topology *t, const gpus *found,
                    const me_xml_object *object)
{
    const me_xml_object *device = object;
    while (device != NULL && device->type != ME_XML_PCI_DEVICE) {
        device = above(t, device);
    }
    for (int i = 0; i < found->n; i++) {
        if (found->at[i] == device) {
            return i;
        }
    }
    return -1;
}

/** The matrix with what its rows are. */
typedef struct links {
    const me_xml_matrix *matrix;
    int gpu[ME_MATRIX_OBJECTS]; /**< index, or -1 */
    bool is_switch[ME_MATRIX_OBJECTS];
} links;

/** Of object @p i's links to all NVSwitches together. */
static double to_switches(const links *l, uint32_t i)
{
    double sum = 0;
    for (uint32_t k = 0; k < l->matrix->n; k++) {
        if (l->is_switch[k]) {
            sum += (double)l->matrix->values[i * l->matrix->n + k];
        }
    }
    return sum;
}

/** Between two GPUs of the matrix: their own links, and what goes through
 *  NVSwitches. */
static double between_gpus(const links *l, uint32_t i, uint32_t j)
{
    const double a = to_switches(l, i);
    const double b = to_switches(l, j);
    return (double)l->matrix->values[i * l->matrix->n + j] + (a < b ? a : b);
}

/** hwloc's matrix of NVLinks, in MB/s. */
static void read_nvlinks(const me_xml_topology *t, const gpus *found,
                         me_topology *out)
{
    links l = {.matrix = &t->nvlinks};
    for (uint32_t i = 0; i < t->nvlinks.n; i++) {
        const me_xml_object *object = find_object(t, t->nvlinks.gp_index[i]);
        l.gpu[i] = object == NULL ? -1 : index_of(t, found, object);
        l.is_switch[i] =
            object != NULL && me_xml_is(object->subtype, "NVSwitch");
    }
    for (uint32_t i = 0; i < t->nvlinks.n; i++) {
        for (uint32_t j = 0; l.gpu[i] >= 0 && j < t->nvlinks.n; j++) {
            if (l.gpu[j] >= 0 && l.gpu[j] != l.gpu[i]) {
                out->nvlink_bytes[l.gpu[i]][l.gpu[j]] =
                    1e6 * between_gpus(&l, i, j);
            }
        }
    }
}

static void copy_info(const me_xml_object *object, me_xml_info info,
                      char text_out[ME_TOPOLOGY_TEXT])
{
    me_xml_copy(object->info[info], text_out, ME_TOPOLOGY_TEXT);
    for (char *c = text_out; *c != '\0'; c++) {
        if (*c < ' ' || *c > '~') {
            *c = '?';
        }
    }
}

/** A number that is told; 0: it is not. */
static uint64_t number_of(const me_xml_object *object, me_xml_info info)
{
    char text[ME_TOPOLOGY_TEXT];
    uint64_t number = 0;
    copy_info(object, info, text);
    return me_parse_u64(text, &number) == ME_OK ? number : 0;
}

static void read_host(const me_xml_topology *t, me_topology *out)
{
    const me_xml_object *package = NULL;
    for (uint32_t i = 0; i < t->n_objects; i++) {
        const me_xml_object *object = &t->objects[i];
        if (package == NULL && object->type == ME_XML_PACKAGE) {
            package = object;
        }
        out->n_adapters +=
            object->type == ME_XML_OS_DEVICE && object->os_type == OPEN_FABRICS;
    }
    copy_info(&t->objects[0], ME_XML_ARCHITECTURE, out->cpu_arch);
    if (package != NULL) {
        copy_info(package, ME_XML_CPU_VENDOR, out->cpu_vendor);
        out->cpu_family = number_of(package, ME_XML_CPU_FAMILY);
        out->cpu_model = number_of(package, ME_XML_CPU_MODEL);
    }
}

static void read_gpus(const me_xml_topology *t, const gpus *found,
                      me_topology *out)
{
    out->n_gpus = found->n;
    for (int i = 0; i < found->n; i++) {
        const double bytes = 1e9 * found->at[i]->link_gbs;
        out->pcie_bytes =
            i == 0 || bytes < out->pcie_bytes ? bytes : out->pcie_bytes;
        for (int j = 0; j < found->n; j++) {
            out->relation[i][j] =
                (uint8_t)(i == j ? ME_GPUS_SHARE_SWITCH
                                 : relate(t, found->at[i], found->at[j]));
        }
    }
}

me_status me_topology_read(const char *path, me_diag *diag,
                           me_topology *topology_out)
{
    me_xml_topology xml;
    me_topology out = {.n_gpus = 0};
    gpus found = {.n = 0};
    me_status status = me_xml_topology_read(path, diag, &xml);
    const int n = status == ME_OK ? find_gpus(&xml, &found) : 0;
    if (status == ME_OK && (n == 0 || n > ME_TOPOLOGY_GPUS)) {
        status = me_fail_at(diag, ME_ERR_CONFIG, path, 0,
                            "%d NVIDIA GPUs among its PCI devices; a node has "
                            "1 to %d (lstopo --filter io:all shows them)",
                            n, ME_TOPOLOGY_GPUS);
    }
    if (status == ME_OK) {
        read_gpus(&xml, &found, &out);
        read_nvlinks(&xml, &found, &out);
        read_host(&xml, &out);
        *topology_out = out;
    }
    me_xml_topology_fini(&xml);
    return status;
}

/** hwloc has a card once for each backend that sees it: CUDA's object says
 *  most, NVML's the name. @return how many */
static int32_t count_cards(const me_xml_topology *t, const char *backend,
                           const me_xml_object **first_out)
{
    int32_t count = 0;
    for (uint32_t i = 0; i < t->n_objects; i++) {
        const me_xml_object *object = &t->objects[i];
        if (object->type == ME_XML_OS_DEVICE &&
            (me_xml_is(object->info[ME_XML_BACKEND], backend) ||
             me_xml_is(object->subtype, backend))) {
            *first_out = count == 0 ? object : *first_out;
            count++;
        }
    }
    return count;
}

const char *me_topology_find_card(const char *path, me_machine_card *card_out)
{
    me_xml_topology xml;
    const me_xml_object *card = NULL;
    int32_t count = 0;
    const bool is_read = me_xml_topology_read(path, NULL, &xml) == ME_OK;
    if (is_read) {
        count = count_cards(&xml, "CUDA", &card);
        count = count == 0 ? count_cards(&xml, "NVML", &card) : count;
    }
    if (count > 0) {
        me_xml_copy(card->info[ME_XML_GPU_MODEL], card_out->name,
                    sizeof card_out->name);
        card_out->n_cards = count;
        card_out->total_bytes = number_of(card, ME_XML_GPU_MEMORY_KIB) << 10;
        card_out->multiprocessors = number_of(card, ME_XML_GPU_MULTIPROCESSORS);
    }
    me_xml_topology_fini(&xml);
    return !is_read     ? "HWLOC_XMLFILE names no topology that can be read"
           : count == 0 ? "no CUDA or NVML device"
                        : NULL;
}

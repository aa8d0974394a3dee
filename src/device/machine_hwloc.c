/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/parse.h"
#include "device/machine_impl.h"
#include "device/topology.h"

#include <hwloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    NVIDIA = 0x10de,     /* PCI vendor */
    DISPLAY_CLASS = 0x03 /* upper byte of the PCI classes of GPUs */
};

/** What hwloc's CUDA backend says of a card; 0 where it says nothing. */
static uint64_t number_of(hwloc_obj_t object, const char *key)
{
    const char *text = hwloc_obj_get_info_by_name(object, key);
    uint64_t value = 0;
    return text != NULL && me_parse_u64(text, &value) == ME_OK ? value : 0;
}

/** hwloc has a card once for each backend that sees it: CUDA's object says
 *  most, NVML's the name. */
static bool is_card_of(hwloc_obj_t object, const char *backend)
{
    const char *said = hwloc_obj_get_info_by_name(object, "Backend");
    const char *subtype = object->subtype;
    return (said != NULL && strcmp(said, backend) == 0) ||
           (subtype != NULL && strcmp(subtype, backend) == 0);
}

static int32_t count_cards(hwloc_topology_t topology, const char *backend,
                           hwloc_obj_t *first_out)
{
    int32_t count = 0;
    for (hwloc_obj_t object = hwloc_get_next_osdev(topology, NULL);
         object != NULL; object = hwloc_get_next_osdev(topology, object)) {
        if (is_card_of(object, backend)) {
            *first_out = count == 0 ? object : *first_out;
            count++;
        }
    }
    return count;
}

static const char *read_card(hwloc_topology_t topology,
                             me_machine_card *card_out)
{
    hwloc_obj_t card = NULL;
    int32_t count = count_cards(topology, "CUDA", &card);
    if (count == 0) {
        count = count_cards(topology, "NVML", &card);
    }
    if (count == 0) {
        return "no CUDA or NVML device";
    }
    const char *model = hwloc_obj_get_info_by_name(card, "GPUModel");
    card_out->n_cards = count;
    (void)snprintf(card_out->name, sizeof card_out->name, "%s",
                   model == NULL ? "" : model);
    card_out->total_bytes = number_of(card, "CUDAGlobalMemorySize") << 10;
    card_out->multiprocessors = number_of(card, "CUDAMultiProcessors");
    return NULL;
}

const char *me_machine_hwloc(me_machine_card *card_out)
{
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) != 0) {
        return "no topology";
    }
    const char *reason = "the topology cannot be read";
    if (hwloc_topology_set_io_types_filter(
            topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) == 0 &&
        hwloc_topology_load(topology) == 0) {
        reason = read_card(topology, card_out);
    }
    hwloc_topology_destroy(topology);
    return reason;
}

/** The GPUs of a node, by PCI address. */
typedef struct gpus {
    hwloc_obj_t at[ME_TOPOLOGY_GPUS];
    int n;
} gpus;

static uint64_t address_of(hwloc_obj_t device)
{
    const struct hwloc_pcidev_attr_s *pci = &device->attr->pcidev;
    return (uint64_t)pci->domain << 16 | (uint64_t)pci->bus << 8 |
           (uint64_t)pci->dev << 4 | pci->func;
}

static int compare_addresses(const void *a, const void *b)
{
    const uint64_t x = address_of(*(const hwloc_obj_t *)a);
    const uint64_t y = address_of(*(const hwloc_obj_t *)b);
    return (x > y) - (x < y);
}

static bool is_gpu(hwloc_obj_t device)
{
    const struct hwloc_pcidev_attr_s *pci = &device->attr->pcidev;
    return pci->vendor_id == NVIDIA && pci->class_id >> 8 == DISPLAY_CLASS;
}

/** @return how many there are; more than fit are counted */
static int find_gpus(hwloc_topology_t topology, gpus *found)
{
    int n = 0;
    for (hwloc_obj_t device = hwloc_get_next_pcidev(topology, NULL);
         device != NULL; device = hwloc_get_next_pcidev(topology, device)) {
        if (is_gpu(device)) {
            if (n < ME_TOPOLOGY_GPUS) {
                found->at[n] = device;
            }
            n++;
        }
    }
    found->n = n < ME_TOPOLOGY_GPUS ? n : ME_TOPOLOGY_GPUS;
    qsort(found->at, (size_t)found->n, sizeof(hwloc_obj_t), compare_addresses);
    return n;
}

/** The nearest object above both. */
static hwloc_obj_t common_parent(hwloc_obj_t a, hwloc_obj_t b)
{
    for (hwloc_obj_t x = a->parent; x != NULL; x = x->parent) {
        for (hwloc_obj_t y = b->parent; y != NULL; y = y->parent) {
            if (x == y) {
                return x;
            }
        }
    }
    return NULL;
}

static bool is_switch(hwloc_obj_t object)
{
    return object != NULL && object->type == HWLOC_OBJ_BRIDGE &&
           object->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI;
}

/** Do both hang off the same NUMA node? */
static bool is_same_numa(hwloc_topology_t topology, hwloc_obj_t a,
                         hwloc_obj_t b)
{
    hwloc_obj_t x = hwloc_get_non_io_ancestor_obj(topology, a);
    hwloc_obj_t y = hwloc_get_non_io_ancestor_obj(topology, b);
    return x != NULL && y != NULL && x->nodeset != NULL && y->nodeset != NULL &&
           hwloc_bitmap_isequal(x->nodeset, y->nodeset) != 0;
}

static me_gpu_relation relate(hwloc_topology_t topology, hwloc_obj_t a,
                              hwloc_obj_t b)
{
    if (is_switch(common_parent(a, b))) {
        return ME_GPUS_SHARE_SWITCH;
    }
    return is_same_numa(topology, a, b) ? ME_GPUS_SHARE_NUMA
                                        : ME_GPUS_SHARE_MACHINE;
}

/** The GPU that an object of NVML's or CUDA's is; -1: none. */
static int index_of(const gpus *found, hwloc_obj_t object)
{
    hwloc_obj_t device = object;
    while (device != NULL && device->type != HWLOC_OBJ_PCI_DEVICE) {
        device = device->parent;
    }
    for (int i = 0; i < found->n; i++) {
        if (found->at[i] == device) {
            return i;
        }
    }
    return -1;
}

static bool is_nvswitch(hwloc_obj_t object)
{
    return object->subtype != NULL && strcmp(object->subtype, "NVSwitch") == 0;
}

/** Of object @p i's links to all NVSwitches together. */
static double to_switches(const struct hwloc_distances_s *matrix, unsigned i)
{
    double sum = 0;
    for (unsigned k = 0; k < matrix->nbobjs; k++) {
        if (is_nvswitch(matrix->objs[k])) {
            sum += (double)matrix->values[i * matrix->nbobjs + k];
        }
    }
    return sum;
}

/** Between two GPUs of the matrix: their own links, and what goes through
 *  NVSwitches. (hwloc's own transformation of 2.9.0 leaves out the former.) */
static double between_gpus(const struct hwloc_distances_s *matrix, unsigned i,
                           unsigned j)
{
    const double a = to_switches(matrix, i);
    const double b = to_switches(matrix, j);
    return (double)matrix->values[i * matrix->nbobjs + j] + (a < b ? a : b);
}

/** hwloc's matrix of NVLinks, in MB/s. */
static void read_nvlinks(hwloc_topology_t topology, const gpus *found,
                         me_topology *out)
{
    struct hwloc_distances_s *matrix = NULL;
    unsigned n = 1;
    if (hwloc_distances_get_by_name(topology, "NVLinkBandwidth", &n, &matrix,
                                    0) != 0 ||
        n == 0) {
        return;
    }
    for (unsigned i = 0; i < matrix->nbobjs; i++) {
        const int a = index_of(found, matrix->objs[i]);
        for (unsigned j = 0; a >= 0 && j < matrix->nbobjs; j++) {
            const int b = index_of(found, matrix->objs[j]);
            if (b >= 0 && b != a) {
                out->nvlink_bytes[a][b] = 1e6 * between_gpus(matrix, i, j);
            }
        }
    }
    hwloc_distances_release(topology, matrix);
}

static void copy_info(hwloc_obj_t object, const char *key,
                      char text_out[ME_TOPOLOGY_TEXT])
{
    const char *text =
        object == NULL ? NULL : hwloc_obj_get_info_by_name(object, key);
    (void)snprintf(text_out, ME_TOPOLOGY_TEXT, "%.*s", ME_TOPOLOGY_TEXT - 1,
                   text == NULL ? "" : text);
    for (char *c = text_out; *c != '\0'; c++) {
        if (*c < ' ' || *c > '~') {
            *c = '?';
        }
    }
}

static void read_host(hwloc_topology_t topology, me_topology *out)
{
    hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
    copy_info(package, "CPUVendor", out->cpu_vendor);
    copy_info(hwloc_get_root_obj(topology), "Architecture", out->cpu_arch);
    if (package != NULL) {
        out->cpu_family = number_of(package, "CPUFamilyNumber");
        out->cpu_model = number_of(package, "CPUModelNumber");
    }
    for (hwloc_obj_t object = hwloc_get_next_osdev(topology, NULL);
         object != NULL; object = hwloc_get_next_osdev(topology, object)) {
        out->n_adapters +=
            object->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS;
    }
}

static void read_gpus(hwloc_topology_t topology, const gpus *found,
                      me_topology *out)
{
    out->n_gpus = found->n;
    for (int i = 0; i < found->n; i++) {
        const double bytes = 1e9 * found->at[i]->attr->pcidev.linkspeed;
        out->pcie_bytes =
            i == 0 || bytes < out->pcie_bytes ? bytes : out->pcie_bytes;
        for (int j = 0; j < found->n; j++) {
            out->relation[i][j] =
                (uint8_t)(i == j
                              ? ME_GPUS_SHARE_SWITCH
                              : relate(topology, found->at[i], found->at[j]));
        }
    }
}

/** After `<!DOCTYPE`: `topology SYSTEM "…"`, as hwloc writes it. */
static bool is_type_of_hwloc(const char *text)
{
    static const char *const words[] = {"topology", "SYSTEM"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t gap = strspn(text, " \t\r\n");
        const size_t length = strlen(words[i]);
        if (gap == 0 || strncmp(text + gap, words[i], length) != 0) {
            return false;
        }
        text += gap + length;
    }
    text += strspn(text, " \t\r\n");
    return *text == '"' || *text == '\'';
}

/** hwloc crashes where a document's type does not say where it is described
 *  (libxml's backend of 2.9 compares no string). A file that cannot be read is
 *  left to hwloc, which writes the type in one line. */
static bool may_be_read(const char *path)
{
    static const char mark[] = "<!DOCTYPE";
    FILE *file = fopen(path, "re");
    char line[4096];
    bool may = true;
    while (file != NULL && may && fgets(line, sizeof line, file) != NULL) {
        const char *type = strstr(line, mark);
        may = type == NULL || is_type_of_hwloc(type + sizeof mark - 1);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return may;
}

static me_status load_file(const char *path, hwloc_topology_t topology,
                           me_diag *diag)
{
    if (!may_be_read(path) || hwloc_topology_set_xml(topology, path) != 0 ||
        hwloc_topology_set_io_types_filter(topology,
                                           HWLOC_TYPE_FILTER_KEEP_ALL) != 0 ||
        hwloc_topology_load(topology) != 0) {
        return me_fail_at(diag, ME_ERR_CONFIG, path, 0,
                          "no topology that hwloc can read; lstopo FILE.xml "
                          "writes one");
    }
    return ME_OK;
}

me_status me_topology_read(const char *path, me_diag *diag,
                           me_topology *topology_out)
{
    if (access(path, R_OK) != 0) {
        return me_fail_at(diag, ME_ERR_IO, path, 0, "cannot be read");
    }
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) != 0) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for a topology");
    }
    me_topology out = {.n_gpus = 0};
    gpus found = {.n = 0};
    me_status status = load_file(path, topology, diag);
    const int n = status == ME_OK ? find_gpus(topology, &found) : 0;
    if (status == ME_OK && (n == 0 || n > ME_TOPOLOGY_GPUS)) {
        status = me_fail_at(diag, ME_ERR_CONFIG, path, 0,
                            "%d NVIDIA GPUs among its PCI devices; a node has "
                            "1 to %d (lstopo --filter io:all shows them)",
                            n, ME_TOPOLOGY_GPUS);
    }
    if (status == ME_OK) {
        read_gpus(topology, &found, &out);
        read_nvlinks(topology, &found, &out);
        read_host(topology, &out);
        *topology_out = out;
    }
    hwloc_topology_destroy(topology);
    return status;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/parse.h"
#include "device/machine_impl.h"
#include "device/topology_card.h"

#include <hwloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/** The machine that memest runs on, or the one whose description takes its
 *  place; hwloc itself would crash at some of them. */
const char *me_machine_hwloc(me_machine_card *card_out)
{
    const char *file = getenv("HWLOC_XMLFILE");
    if (file != NULL) {
        return me_topology_find_card(file, card_out);
    }
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

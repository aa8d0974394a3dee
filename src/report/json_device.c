/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/json.h"
#include "report/verdict.h"

/** The numbers make sense only if they are known. */
static json_t *known(bool is_known, uint64_t value)
{
    return is_known ? me_json_bytes(value) : json_null();
}

json_t *me_json_late(const me_late_result *late)
{
    return !late->is_known ? json_null()
                           : json_pack("{s:o, s:o, s:o}", "requested_bytes",
                                       me_json_bytes(late->requested_bytes),
                                       "allocated_bytes",
                                       me_json_bytes(late->allocated_bytes),
                                       "reserved_bytes",
                                       me_json_bytes(late->reserved_bytes));
}

json_t *me_json_add_range(const me_report *report, const me_rank_result *result,
                          json_t *object)
{
    const me_reserved_range range =
        me_verdict_reserved_range(report->config, result);
    if (object == NULL || !range.is_known) {
        return object;
    }
    if (json_object_set_new(object, "reserved_range",
                            json_pack("{s:o, s:o}", "least_bytes",
                                      me_json_bytes(range.least_bytes),
                                      "most_bytes",
                                      me_json_bytes(range.most_bytes))) != 0) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static json_t *make_communicator(const void *items, uint32_t i)
{
    const me_communicator_result *c = (const me_communicator_result *)items + i;
    return json_pack("{s:s, s:i, s:o}", "group", c->group, "size", (int)c->size,
                     "bytes", me_json_bytes(c->bytes));
}

json_t *me_json_device(const me_device_result *device)
{
    json_t *communicators =
        device->is_known
            ? me_json_array(device->communicators, device->n_communicators,
                            make_communicator)
            : json_null();
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o}", "context_bytes",
        known(device->is_known, device->context_bytes), "library_bytes",
        known(device->is_known, device->library_bytes), "communicator_bytes",
        known(device->is_known, device->communicator_bytes), "band_bytes",
        known(device->is_known, device->band_bytes), "communicators",
        communicators);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/json.h"

#include <stdbool.h>

static json_t *make_course_bytes(const me_course_bytes *bytes)
{
    return json_pack("{s:o, s:o, s:o}", "begin", me_json_bytes(bytes->begin),
                     "peak", me_json_bytes(bytes->peak), "end",
                     me_json_bytes(bytes->end));
}

json_t *me_json_course_part(const me_course_part *part)
{
    const bool is_action = part->chunk >= 0;
    return json_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:o}", "name", part->name, "chunk",
        is_action ? json_integer(part->chunk) : json_null(), "microbatch",
        is_action ? json_integer(part->microbatch) : json_null(),
        "requested_bytes", make_course_bytes(&part->requested),
        "allocated_bytes", make_course_bytes(&part->allocated),
        "reserved_bytes", make_course_bytes(&part->reserved));
}

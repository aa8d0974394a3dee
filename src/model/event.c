/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/event.h"

#include "base/assert.h"

#include <string.h>

#define NAME_CASE(constant, text)                                              \
    case constant: return text;

const char *me_category_name(me_category category)
{
    switch (category) {
        ME_CATEGORY_LIST(NAME_CASE)
    case ME_CATEGORY_COUNT: break;
    }
    ME_ASSERT(false);
    return "?";
}

const char *me_phase_name(me_phase phase)
{
    switch (phase) {
        ME_PHASE_LIST(NAME_CASE)
    case ME_PHASE_COUNT: break;
    }
    ME_ASSERT(false);
    return "?";
}

bool me_phase_is_evaluation(const char *name)
{
    return name != NULL &&
           strcmp(name, me_phase_name(ME_PHASE_EVALUATION)) == 0;
}

const char *me_collective_name(me_collective collective)
{
    switch (collective) {
        ME_COLLECTIVE_LIST(NAME_CASE)
    case ME_COLLECTIVE_COUNT: break;
    }
    ME_ASSERT(false);
    return "?";
}

const char *me_group_kind_name(me_group_kind group)
{
    switch (group) {
        ME_GROUP_LIST(NAME_CASE)
    case ME_GROUP_COUNT: break;
    }
    ME_ASSERT(false);
    return "?";
}

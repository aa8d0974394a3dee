/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/fit.h"
#include "report/json.h"

static json_t *make_offer(const void *items, uint32_t i)
{
    const me_fit_offer *offer = &((const me_fit_offer *)items)[i];
    const me_step_time *step = offer->report->time.step;
    json_t *object =
        json_pack("{s:s, s:s, s:s, s:b, s:b}", "change", offer->name, "set",
                  offer->assignments, "flags", offer->flags, "changes_numerics",
                  (int)offer->changes_numerics, "is_tie", (int)offer->is_tie);
    object = me_json_put(object, "place",
                         offer->place == 0 ? json_null()
                                           : json_integer(offer->place));
    object =
        me_json_put(object, "step_ns",
                    step == NULL ? json_null() : json_integer(step->step_ns));
    object = me_json_put(object, "host_lacks",
                         step == NULL || offer->report->time.host_lacks == NULL
                             ? json_null()
                             : json_string(offer->report->time.host_lacks));
    return me_json_put(object, "verdict", me_json_verdict(offer->report));
}

json_t *me_json_fit(const me_fit *fit)
{
    json_t *object =
        json_pack("{s:i, s:i, s:i, s:i, s:i, s:i}", "tried", (int)fit->n_tried,
                  "refused", (int)fit->n_refused, "do_not_fit",
                  (int)fit->n_over, "equal", (int)fit->n_equal, "not_simulated",
                  (int)fit->n_left, "together", (int)fit->n_together);
    return me_json_put(
        object, "changes",
        me_json_array(fit->offers, (uint32_t)fit->n_offers, make_offer));
}

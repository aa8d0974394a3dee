/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/schedule_choice.h"
#include "config/torchtitan/torchtitan_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Which layers the stages of a pipeline have, and its micro-batches. */

/** get_schedule_class(): a class of PyTorch's without the "Schedule" that it
 *  begins with, in any case; NULL: there is none. */
static const me_schedule *find_schedule(const char *name)
{
    static const char prefix[] = "Schedule";
    char class[64];
    (void)snprintf(class, sizeof class, "%s%.50s", prefix, name);
    const me_schedule *found = me_schedule_find(class);
    return found != NULL && found->torch_name != NULL &&
                   strcasecmp(found->torch_name, class) == 0
               ? found
               : NULL;
}

/** Schedules with one stage a rank (PipelineScheduleSingle). */
static bool has_one_stage(const me_schedule *schedule)
{
    return strcmp(schedule->torch_name, "Schedule1F1B") == 0 ||
           strcmp(schedule->torch_name, "ScheduleGPipe") == 0;
}

/** generate_split_points() of pipelining_utils.py: what is over goes to the
 *  stages in the middle. */
static me_status spread_layers(me_titan_model *m)
{
    const uint64_t layers = m->flavor->n_layers;
    if (m->stages > layers) {
        return me_titan_wrong(m, ME_TITAN_PIPELINE,
                              "there are more stages than layers");
    }
    uint64_t over = layers % m->stages;
    uint64_t layer = 0;
    for (uint64_t i = 0; i + 1 < m->stages; i++) {
        const uint64_t one_more = i > 0 && over > 0 ? 1 : 0;
        over -= one_more;
        layer += layers / m->stages + one_more;
        m->first_layer[i + 1] = layer;
    }
    m->first_layer[m->stages] = layers;
    return ME_OK;
}

/** generate_llm_fqn_per_model_part() of pipeline_parallel.py: embedding and head
 *  count as layers, and what is over goes to the first stages. */
static me_status spread_weighted(me_titan_model *m, uint64_t first_less,
                                 uint64_t last_less)
{
    const uint64_t layers = m->flavor->n_layers;
    const uint64_t each = (layers + first_less + last_less) / m->stages;
    const uint64_t over = (layers + first_less + last_less) % m->stages;
    if (each <= first_less || each <= last_less) {
        return me_titan_wrong(m, ME_TITAN_PIPELINE,
                              "there would be a stage without layers");
    }
    uint64_t layer = 0;
    for (uint64_t i = 0; i + 1 < m->stages; i++) {
        layer += each + (i < over ? 1 : 0) - (i == 0 ? first_less : 0);
        m->first_layer[i + 1] = layer;
    }
    m->first_layer[m->stages] = layers;
    return ME_OK;
}

/** pipeline_llm(): stages of so many layers, or one or two a rank. */
static me_status spread_stages(me_titan_model *m, bool is_single)
{
    uint64_t each = 0;
    const int64_t first_less = me_titan_number(m, ME_TITAN_FIRST_STAGE_LESS, 1);
    const int64_t last_less = me_titan_number(m, ME_TITAN_LAST_STAGE_LESS, 1);
    if (first_less < 0 || last_less < 0) {
        return me_titan_wrong(m,
                              first_less < 0 ? ME_TITAN_FIRST_STAGE_LESS
                                             : ME_TITAN_LAST_STAGE_LESS,
                              "must be at least 0");
    }
    if (me_titan_given(m, ME_TITAN_LAYERS_PER_STAGE)->text != NULL) {
        const me_status status =
            me_titan_count(m, ME_TITAN_LAYERS_PER_STAGE, 1, &each);
        if (status != ME_OK) {
            return status;
        }
        const uint64_t all =
            m->flavor->n_layers + (uint64_t)first_less + (uint64_t)last_less;
        m->stages = (all + each - 1) / each;
        if (m->stages % m->pipeline != 0 || m->stages > ME_TITAN_STAGES_MAX ||
            is_single != (m->stages == m->pipeline)) {
            return me_titan_wrong(m, ME_TITAN_LAYERS_PER_STAGE,
                                  "must make as many stages a rank as the "
                                  "schedule has: one, or two and more");
        }
    }
    return spread_weighted(m, (uint64_t)first_less, (uint64_t)last_less);
}

/** "layers.4,layers.8": the first layer of each stage but the first. */
static me_status read_split_points(me_titan_model *m, const char *points)
{
    static const char begin[] = "layers.";
    m->stages = 1;
    while (*points != '\0') {
        const bool is_layer = strncmp(points, begin, sizeof begin - 1) == 0;
        char *end = NULL;
        const uint64_t layer =
            is_layer ? strtoull(points + sizeof begin - 1, &end, 10) : 0;
        if (!is_layer || (*end != ',' && *end != '\0') ||
            layer <= m->first_layer[m->stages - 1] ||
            layer >= m->flavor->n_layers || m->stages == ME_TITAN_STAGES_MAX) {
            return me_titan_wrong(m, ME_TITAN_SPLIT_POINTS,
                                  "must be layers in their order, as "
                                  "layers.4,layers.8");
        }
        m->first_layer[m->stages++] = layer;
        points = *end == ',' ? end + 1 : end;
    }
    m->first_layer[m->stages] = m->flavor->n_layers;
    if (m->stages % m->pipeline != 0) {
        return me_titan_wrong(m, ME_TITAN_SPLIT_POINTS,
                              "the stages must be a multiple of "
                              "pipeline_parallel_degree");
    }
    return ME_OK;
}

/** The batch is cut into as many as there are ranks, unless it is said; in
 *  releases 0.2 into single samples. */
static me_status read_microbatches(me_titan_model *m)
{
    uint64_t size = 1;
    me_status status =
        me_titan_count(m, ME_TITAN_MICROBATCHES, m->pipeline, &m->microbatches);
    if (status == ME_OK) {
        status = me_titan_count(m, ME_TITAN_MICROBATCH_SIZE, 1, &size);
    }
    if (status != ME_OK) {
        return status;
    }
    if (m->is_0_2) {
        m->microbatches = m->batch_size / size;
        return m->batch_size % size == 0
                   ? ME_OK
                   : me_titan_wrong(m, ME_TITAN_MICROBATCH_SIZE,
                                    "must divide training.local_batch_size");
    }
    if (m->batch_size % m->microbatches == 0) {
        return ME_OK;
    }
    return me_titan_given(m, ME_TITAN_MICROBATCHES)->text != NULL
               ? me_titan_wrong(m, ME_TITAN_MICROBATCHES,
                                "must divide the batch size")
               : me_titan_wrong(
                     m, ME_TITAN_PIPELINE,
                     "as many micro-batches must divide the batch size; "
                     "pipeline_parallel_microbatches says another number");
}

/** build_pipeline_schedule(): _load_csv() of what is computed alone, on stages
 *  that were built where pipeline_parallel_schedule has them. */
static me_status check_csv(const me_titan_model *m, const me_schedule *schedule,
                           me_diag *diag)
{
    const char *file = me_titan_text(m, ME_TITAN_SCHEDULE_CSV, "");
    me_pipeline_order *order = NULL;
    me_status status =
        *file == '\0' ? ME_OK
                      : me_schedule_file_read(file, ME_CSV_TODAY, diag, &order);
    if (status != ME_OK || order == NULL) {
        return status;
    }
    if (me_pipeline_order_has_transfers(order) ||
        me_pipeline_order_has_work_on_parameters(order)) {
        status = me_titan_wrong(m, ME_TITAN_SCHEDULE_CSV,
                                "torchtitan reads what is computed alone, "
                                "without sends, receives and work on "
                                "parameters");
    } else if (order->placement != schedule->placement ||
               (uint64_t)order->n_stages != m->stages) {
        status = me_titan_wrong(m, ME_TITAN_SCHEDULE_CSV,
                                "its stages do not stand where "
                                "pipeline_parallel_schedule puts them");
    }
    me_pipeline_order_destroy(order);
    return status;
}

me_status me_titan_read_stages(me_titan_model *m)
{
    me_status status = me_titan_count(m, ME_TITAN_PIPELINE, 1, &m->pipeline);
    if (status != ME_OK || m->pipeline == 1) {
        m->stages = 1;
        m->microbatches = 1;
        m->first_layer[1] = m->flavor->n_layers;
        return status;
    }
    if (m->pipeline > ME_TITAN_STAGES_MAX / 2) {
        return me_titan_wrong(m, ME_TITAN_PIPELINE, "must be at most 256");
    }
    const char *points = me_titan_text(m, ME_TITAN_SPLIT_POINTS, "");
    const me_schedule *schedule =
        find_schedule(me_titan_text(m, ME_TITAN_SCHEDULE, "1F1B"));
    if (schedule == NULL) {
        return me_titan_wrong(m, ME_TITAN_SCHEDULE,
                              "must be one of PyTorch's, such as 1F1B, "
                              "Interleaved1F1B or ZBVZeroBubble");
    }
    const bool is_single = has_one_stage(schedule);
    m->stages = m->pipeline * (is_single ? 1 : 2);
    if (m->is_0_2) {
        status = spread_stages(m, is_single);
    } else {
        status =
            *points != '\0' ? read_split_points(m, points) : spread_layers(m);
    }
    if (status == ME_OK) {
        status = read_microbatches(m);
    }
    return status == ME_OK ? check_csv(m, schedule, m->job->diag) : status;
}

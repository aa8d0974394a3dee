/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/format.h"
#include "report/units.h"

#include <inttypes.h>
#include <string.h>

/** What a line is about. */
typedef struct csv_row {
    const me_report *report;
    const me_report_rank *rank;
    const me_rank_result *result;
    const me_peak_result *peak; /**< may be NULL */
    const me_time_stage *stage; /**< NULL: no time is predicted */
} csv_row;

typedef struct csv_column {
    const char *title;
    void (*get)(const csv_row *row, me_str *cell);
} csv_column;

static void put_number(me_str *cell, uint64_t value)
{
    if (value != ME_BYTES_UNKNOWN) { /* else an empty field */
        me_str_printf(cell, "%" PRIu64, value);
    }
}

#define PLACE_COLUMN(name, field)                                              \
    static void get_##name(const csv_row *row, me_str *cell)                   \
    {                                                                          \
        me_str_printf(cell, "%d", (int)row->rank->place.field);                \
    }

#define PEAK_COLUMN(name, field)                                               \
    static void get_##name(const csv_row *row, me_str *cell)                   \
    {                                                                          \
        if (row->peak != NULL) {                                               \
            put_number(cell, row->peak->field);                                \
        }                                                                      \
    }

#define TEXT_COLUMN(name, field)                                               \
    static void get_##name(const csv_row *row, me_str *cell)                   \
    {                                                                          \
        if (row->peak != NULL && row->peak->field != NULL) {                   \
            me_str_append(cell, row->peak->field);                             \
        }                                                                      \
    }

PLACE_COLUMN(rank, rank)
PLACE_COLUMN(tp, tp)
PLACE_COLUMN(pp, pp)
PLACE_COLUMN(dp, dp)
PLACE_COLUMN(cp, cp)
PLACE_COLUMN(ep, ep)
PLACE_COLUMN(class, class_id)
PEAK_COLUMN(requested, requested_bytes)
PEAK_COLUMN(allocated, allocated_bytes)
PEAK_COLUMN(reserved, reserved_bytes)
PEAK_COLUMN(device, device_bytes)
PEAK_COLUMN(parameter, by_category[ME_CATEGORY_PARAMETER])
PEAK_COLUMN(gradient, by_category[ME_CATEGORY_GRADIENT])
PEAK_COLUMN(main_parameter, by_category[ME_CATEGORY_MAIN_PARAMETER])
PEAK_COLUMN(optimizer_state, by_category[ME_CATEGORY_OPTIMIZER_STATE])
PEAK_COLUMN(activation, by_category[ME_CATEGORY_ACTIVATION])
PEAK_COLUMN(temporary, by_category[ME_CATEGORY_TEMPORARY])
PEAK_COLUMN(communication, by_category[ME_CATEGORY_COMMUNICATION])
PEAK_COLUMN(input, by_category[ME_CATEGORY_INPUT])
PEAK_COLUMN(buffer, by_category[ME_CATEGORY_BUFFER])
PEAK_COLUMN(other, by_category[ME_CATEGORY_OTHER])
TEXT_COLUMN(phase, phase)
TEXT_COLUMN(module, module)
TEXT_COLUMN(op, op)

static void get_parameters(const csv_row *row, me_str *cell)
{
    put_number(cell, row->result->parameters);
}

static void get_parameter_bytes(const csv_row *row, me_str *cell)
{
    put_number(cell, row->result->parameter_bytes);
}

static void get_iteration_0(const csv_row *row, me_str *cell)
{
    const me_iteration_result *it = me_rank_result_iteration(row->result, 0);
    if (it != NULL) {
        put_number(cell, it->requested_bytes);
    }
}

/** Of the rank's stage; an empty field where nothing is predicted. */
static void put_seconds(const csv_row *row, int64_t ns, me_str *cell)
{
    if (row->stage != NULL) {
        me_str_printf(cell, "%.6f", (double)ns * 1e-9);
    }
}

#define TIME_COLUMN(name, field)                                               \
    static void get_##name(const csv_row *row, me_str *cell)                   \
    {                                                                          \
        put_seconds(row, row->stage == NULL ? 0 : row->stage->field, cell);    \
    }

TIME_COLUMN(compute, compute_ns)
TIME_COLUMN(exposed, exposed_ns)
TIME_COLUMN(stage_wait, transfer_ns)
TIME_COLUMN(host, host_ns)
TIME_COLUMN(optimizer, optimizer_ns)
TIME_COLUMN(idle, idle_ns)

static void get_step(const csv_row *row, me_str *cell)
{
    const me_step_time *step = row->report->time.step;
    put_seconds(row, step == NULL ? 0 : step->step_ns, cell);
}

/** Empty without a step. */
static void get_is_bound(const csv_row *row, me_str *cell)
{
    const me_report_time *time = &row->report->time;
    if (time->step != NULL) {
        me_str_append(cell, time->host_lacks != NULL ? "1" : "0");
    }
}

static const csv_column csv_columns[] = {
    {"rank", get_rank},
    {"tp", get_tp},
    {"pp", get_pp},
    {"dp", get_dp},
    {"cp", get_cp},
    {"ep", get_ep},
    {"class", get_class},
    {"parameters", get_parameters},
    {"parameter_bytes", get_parameter_bytes},
    {"requested_bytes", get_requested},
    {"allocated_bytes", get_allocated},
    {"reserved_bytes", get_reserved},
    {"device_bytes", get_device},
    {"iteration_0_requested_bytes", get_iteration_0},
    {"phase", get_phase},
    {"module", get_module},
    {"op", get_op},
    {"peak_parameter_bytes", get_parameter},
    {"peak_gradient_bytes", get_gradient},
    {"peak_main_parameter_bytes", get_main_parameter},
    {"peak_optimizer_state_bytes", get_optimizer_state},
    {"peak_activation_bytes", get_activation},
    {"peak_temporary_bytes", get_temporary},
    {"peak_communication_bytes", get_communication},
    {"peak_input_bytes", get_input},
    {"peak_buffer_bytes", get_buffer},
    {"peak_other_bytes", get_other},
    {"step_seconds", get_step},
    {"compute_seconds", get_compute},
    {"exposed_communication_seconds", get_exposed},
    {"stage_wait_seconds", get_stage_wait},
    {"host_seconds", get_host},
    {"optimizer_seconds", get_optimizer},
    {"idle_seconds", get_idle},
    {"step_is_lower_bound", get_is_bound},
};

static const size_t n_csv_columns = sizeof csv_columns / sizeof *csv_columns;

static me_status print_row(const csv_row *row, FILE *stream)
{
    me_str cell = {0};
    me_str line = {0};
    for (size_t i = 0; i < n_csv_columns; i++) {
        cell.length = 0;
        me_str_append(&cell, "");
        csv_columns[i].get(row, &cell);
        me_str_append(&line, i == 0 ? "" : ",");
        me_str_append_csv(&line, me_str_text(&cell), cell.length);
    }
    me_str_append(&line, "\n");
    (void)fputs(me_str_text(&line), stream);
    const me_status status = me_str_status(&cell) == ME_OK
                                 ? me_str_status(&line)
                                 : me_str_status(&cell);
    me_str_fini(&cell);
    me_str_fini(&line);
    return status;
}

me_status me_csv_print(const me_report *report, FILE *stream, me_diag *diag)
{
    for (size_t i = 0; i < n_csv_columns; i++) {
        (void)fprintf(stream, i == 0 ? "%s" : ",%s", csv_columns[i].title);
    }
    (void)fputc('\n', stream);
    for (int32_t i = 0; i < report->world_size; i++) {
        csv_row row = {.report = report, .rank = &report->ranks[i]};
        row.result = report->results[row.rank->result];
        row.peak = me_rank_result_peak(row.result);
        row.stage = report->time.step == NULL
                        ? NULL
                        : &report->time.step->stages[row.rank->place.pp];
        if (print_row(&row, stream) != ME_OK) {
            return me_fail(diag, ME_ERR_NOMEM, "no memory for the CSV report");
        }
    }
    return ME_OK;
}

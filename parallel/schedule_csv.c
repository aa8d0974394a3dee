/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/schedule_csv.h"

#include "base/alloc.h"
#include "parallel/orders.h"
#include "parallel/schedule_check.h"

#include <stdio.h>
#include <string.h>

enum {
    INDEX_MAX = 1 << 20, /**< stages and micro-batches are below */
    WHOLE_BACKWARD = -1, /**< chunk of a BW, until the dialect is known */
    SHOWN = 40           /**< characters of a bad cell in its error */
};

/** A file being read. */
typedef struct reader {
    const me_csv_options *options;
    me_diag *diag;
    const char *at;
    const char *end;
    me_actions *rows; /**< owned until the order takes them */
    int32_t n_rows;
    uint32_t capacity;
    int32_t row;    /**< lines so far, from 1 */
    int32_t column; /**< cells of the row so far, from 1 */
    int32_t n_stages;
    int32_t n_microbatches;
    int64_t n_forwards;
    bool has[ME_ACTION_COUNT];
    bool has_bw;
} reader;

static me_status fail(const reader *r, me_status status, const char *text)
{
    return me_fail_at(r->diag, status,
                      r->options->where == NULL ? "schedule"
                                                : r->options->where,
                      r->row, "%s", text);
}

static me_status fail_cell(const reader *r, const char *begin, const char *end,
                           const char *what)
{
    char text[ME_DIAG_TEXT];
    const ptrdiff_t length = end - begin < SHOWN ? end - begin : SHOWN;
    char shown[SHOWN + 1];
    for (ptrdiff_t i = 0; i < length; i++) {
        shown[i] = begin[i];
        if (begin[i] < ' ' || begin[i] > '~') {
            shown[i] = '?';
        }
    }
    shown[length] = '\0';
    (void)snprintf(text, sizeof text, "cell %d, \"%s\": %s", (int)r->column,
                   shown, what);
    return fail(r, ME_ERR_SYNTAX, text);
}

/** Digits at *cursor. @return −1 if there are none or too many */
static int32_t read_index(const char **cursor, const char *end)
{
    int32_t value = -1;
    while (*cursor < end && **cursor >= '0' && **cursor <= '9') {
        value = (value < 0 ? 0 : value) * 10 + (**cursor - '0');
        if (value >= INDEX_MAX) {
            return -1;
        }
        (*cursor)++;
    }
    return value;
}

/** The type at *cursor: all letters and `_`. @return was it one? */
static bool read_kind(reader *r, const char **cursor, const char *end,
                      me_action *action)
{
    const char *begin = *cursor;
    while (*cursor < end &&
           ((**cursor >= 'A' && **cursor <= 'Z') || **cursor == '_')) {
        (*cursor)++;
    }
    const size_t length = (size_t)(*cursor - begin);
    for (int kind = 0; kind < ME_ACTION_COUNT; kind++) {
        const char *letters = me_action_letter((me_action_kind)kind);
        if (strlen(letters) == length && memcmp(letters, begin, length) == 0) {
            action->kind = (uint8_t)kind;
            r->has[kind] = true;
            return true;
        }
    }
    if (length == 2 && memcmp(begin, "BW", 2) == 0) {
        action->kind = ME_ACTION_BACKWARD;
        action->chunk = WHOLE_BACKWARD;
        r->has_bw = true;
        return true;
    }
    return false;
}

/** STAGE TYPE MICROBATCH from @p begin to @p end. */
static me_status read_action(reader *r, const char *begin, const char *end,
                             me_action *action)
{
    const char *cursor = begin;
    *action = (me_action){.stage = read_index(&cursor, end)};
    if (action->stage < 0 || !read_kind(r, &cursor, end, action)) {
        return fail_cell(r, begin, end,
                         "a cell is STAGE TYPE MICROBATCH, as 2F0, of type F, "
                         "B, I, W, SEND_F, RECV_F, SEND_B, RECV_B, UNSHARD, "
                         "RESHARD or REDUCE_GRAD");
    }
    const me_action_kind kind = (me_action_kind)action->kind;
    if (me_action_is_of_parameters(kind)) {
        if (cursor != end) {
            return fail_cell(r, begin, end,
                             "work on parameters has no micro-batch");
        }
    } else {
        action->microbatch = read_index(&cursor, end);
        if (action->microbatch < 0 || cursor != end) {
            return fail_cell(r, begin, end, "the micro-batch is no number");
        }
    }
    if (!me_action_computes(kind) && !me_action_is_of_parameters(kind) &&
        !r->options->has_transfers) {
        return fail_cell(r, begin, end,
                         "sends and receives do not belong into an order that "
                         "says only what is computed");
    }
    return ME_OK;
}

static void push(reader *r, me_action action)
{
    r->n_stages = action.stage >= r->n_stages ? action.stage + 1 : r->n_stages;
    r->n_microbatches = action.microbatch >= r->n_microbatches
                            ? action.microbatch + 1
                            : r->n_microbatches;
    r->n_forwards += action.kind == ME_ACTION_FORWARD;
    me_actions_push(&r->rows[r->n_rows - 1], action);
}

/** `(7F4;0B0)OVERLAP_F_B`. */
static me_status read_block(reader *r, const char *begin, const char *end)
{
    static const char tail[] = ")OVERLAP_F_B";
    const size_t length = (size_t)(end - begin);
    const size_t n_tail = sizeof tail - 1;
    const char *semicolon = memchr(begin, ';', length);
    if (length < n_tail + 2 || semicolon == NULL ||
        memcmp(end - n_tail, tail, n_tail) != 0 || semicolon > end - n_tail) {
        return fail_cell(r, begin, end,
                         "a block is (FORWARD;BACKWARD)OVERLAP_F_B");
    }
    me_action forward;
    me_action backward;
    me_status status = read_action(r, begin + 1, semicolon, &forward);
    if (status == ME_OK) {
        status = read_action(r, semicolon + 1, end - n_tail, &backward);
    }
    if (status != ME_OK) {
        return status;
    }
    if (forward.kind != ME_ACTION_FORWARD ||
        (backward.kind != ME_ACTION_BACKWARD &&
         backward.kind != ME_ACTION_INPUT_GRADIENT)) {
        return fail_cell(r, begin, end,
                         "a block is a forward and then a backward");
    }
    forward.is_overlapped = true;
    push(r, forward);
    push(r, backward);
    return ME_OK;
}

static void trim(const char **begin, const char **end)
{
    while (*begin < *end && **begin == ' ') {
        (*begin)++;
    }
    while (*begin < *end && (*end)[-1] == ' ') {
        (*end)--;
    }
}

/** A cell, which may be quoted: no cell has a comma or quote in it. */
static me_status read_cell(reader *r, const char *begin, const char *end)
{
    trim(&begin, &end);
    if (end - begin >= 2 && *begin == '"' && end[-1] == '"') {
        begin++;
        end--;
        trim(&begin, &end);
    }
    if (begin == end) {
        return ME_OK; // idle
    }
    if (*begin == '(') {
        return read_block(r, begin, end);
    }
    me_action action;
    const me_status status = read_action(r, begin, end, &action);
    if (status == ME_OK) {
        push(r, action);
    }
    return status;
}

static bool add_row(reader *r)
{
    me_actions *larger = me_grow(r->rows, (uint32_t)r->n_rows, &r->capacity,
                                 sizeof *larger, "schedule_csv.rows");
    if (larger == NULL) {
        return false;
    }
    r->rows = larger;
    r->rows[r->n_rows++] = (me_actions){.items = NULL};
    return true;
}

/** One line, without its end. */
static me_status read_row(reader *r, const char *begin, const char *end)
{
    me_status status = ME_OK;
    r->row++;
    r->column = 0;
    if (!add_row(r)) {
        return fail(r, ME_ERR_NOMEM, "no host memory for the order");
    }
    while (begin <= end && status == ME_OK) {
        const char *comma = memchr(begin, ',', (size_t)(end - begin));
        const char *stop = comma == NULL ? end : comma;
        r->column++;
        status = read_cell(r, begin, stop);
        begin = stop + 1;
    }
    const me_actions *row = &r->rows[r->n_rows - 1];
    if (status == ME_OK && row->status != ME_OK) {
        return fail(r, ME_ERR_NOMEM, "no host memory for the order");
    }
    if (status == ME_OK && row->count == 0) {
        return fail(r, ME_ERR_CONFIG, "the row of a rank has no action");
    }
    return status;
}

static me_status read_rows(reader *r)
{
    me_status status = ME_OK;
    while (r->at < r->end && status == ME_OK) {
        const char *newline = memchr(r->at, '\n', (size_t)(r->end - r->at));
        const char *stop = newline == NULL ? r->end : newline;
        const char *next = newline == NULL ? r->end : newline + 1;
        if (stop > r->at && stop[-1] == '\r') {
            stop--;
        }
        status = read_row(r, r->at, stop);
        r->at = next;
    }
    if (status == ME_OK && r->n_rows == 0) {
        status = fail(r, ME_ERR_CONFIG, "an order has a row for each rank");
    }
    return status;
}

/** In older files B is the input gradient. */
static void translate(reader *r)
{
    const bool is_older = r->options->dialect == ME_CSV_OLDER ||
                          (r->options->dialect == ME_CSV_GUESS &&
                           (r->has_bw || (r->has[ME_ACTION_WEIGHT_GRADIENT] &&
                                          !r->has[ME_ACTION_INPUT_GRADIENT])));
    for (int32_t rank = 0; rank < r->n_rows; rank++) {
        for (int32_t i = 0; i < r->rows[rank].count; i++) {
            me_action *action = &r->rows[rank].items[i];
            if (is_older && action->kind == ME_ACTION_BACKWARD &&
                action->chunk != WHOLE_BACKWARD) {
                action->kind = ME_ACTION_INPUT_GRADIENT;
            }
        }
    }
}

/** Which row each stage is in. */
static me_status find_stages(const reader *r, int32_t *rank_of_stage)
{
    char text[ME_DIAG_TEXT];
    for (int32_t s = 0; s < r->n_stages; s++) {
        rank_of_stage[s] = -1;
    }
    for (int32_t rank = 0; rank < r->n_rows; rank++) {
        for (int32_t i = 0; i < r->rows[rank].count; i++) {
            int32_t *at = &rank_of_stage[r->rows[rank].items[i].stage];
            if (*at >= 0 && *at != rank) {
                (void)snprintf(text, sizeof text,
                               "stage %d is in the rows of rank %d and of "
                               "rank %d",
                               (int)r->rows[rank].items[i].stage, (int)*at,
                               (int)rank);
                return fail(r, ME_ERR_CONFIG, text);
            }
            *at = rank;
        }
    }
    for (int32_t s = 0; s < r->n_stages; s++) {
        if (rank_of_stage[s] < 0) {
            (void)snprintf(text, sizeof text,
                           "stage %d of stages 0 to %d is in no row", (int)s,
                           (int)r->n_stages - 1);
            return fail(r, ME_ERR_CONFIG, text);
        }
    }
    return ME_OK;
}

static bool is_placed(const reader *r, const int32_t *rank_of_stage,
                      me_placement placement)
{
    if (r->n_rows == 0 || r->n_stages % r->n_rows != 0) {
        return false;
    }
    for (int32_t s = 0; s < r->n_stages; s++) {
        if (rank_of_stage[s] != me_placement_rank(placement, r->n_rows, s)) {
            return false;
        }
    }
    return true;
}

/** Do stages 0 to P − 1 have the first half of the micro-batches, and the
 *  others the second? */
static bool has_two_ways(const reader *r)
{
    if (r->n_stages != 2 * r->n_rows || r->n_microbatches % 2 != 0) {
        return false;
    }
    for (int32_t rank = 0; rank < r->n_rows; rank++) {
        for (int32_t i = 0; i < r->rows[rank].count; i++) {
            const me_action *action = &r->rows[rank].items[i];
            if (!me_action_is_of_parameters((me_action_kind)action->kind) &&
                (action->stage < r->n_rows) !=
                    (action->microbatch < r->n_microbatches / 2)) {
                return false;
            }
        }
    }
    return true;
}

static me_placement find_placement(const reader *r,
                                   const int32_t *rank_of_stage)
{
    if (r->n_rows > 1 && is_placed(r, rank_of_stage, ME_PLACEMENT_V) &&
        has_two_ways(r)) {
        return ME_PLACEMENT_TWO_WAYS;
    }
    if (is_placed(r, rank_of_stage, ME_PLACEMENT_LOOP)) {
        return ME_PLACEMENT_LOOP;
    }
    return is_placed(r, rank_of_stage, ME_PLACEMENT_V) ? ME_PLACEMENT_V
                                                       : ME_PLACEMENT_OTHER;
}

/** A stage's chunk: how many earlier stages its rank holds. Into
 *  @p chunk_of_stage. @return the most chunks of a rank */
static int32_t number_chunks(const reader *r, const int32_t *rank_of_stage,
                             int32_t *chunk_of_stage, int32_t *held)
{
    int32_t most = 0;
    for (int32_t s = 0; s < r->n_stages; s++) {
        chunk_of_stage[s] = held[rank_of_stage[s]]++;
        most = chunk_of_stage[s] + 1 > most ? chunk_of_stage[s] + 1 : most;
    }
    return most;
}

/** The rows go to the order. */
static me_status make_order(reader *r, int32_t *stages, int32_t *held,
                            me_pipeline_order **order_out)
{
    int32_t *chunk_of_stage = stages + r->n_stages;
    const me_status status = find_stages(r, stages);
    if (status != ME_OK) {
        return status;
    }
    const me_pipeline pipeline = {
        .ranks = r->n_rows,
        .microbatches = r->n_microbatches,
        .chunks = number_chunks(r, stages, chunk_of_stage, held),
    };
    me_pipeline_order *order = me_pipeline_order_new(
        &pipeline, find_placement(r, stages), r->n_stages, stages);
    if (order == NULL) {
        return fail(r, ME_ERR_NOMEM, "no host memory for the order");
    }
    for (int32_t rank = 0; rank < r->n_rows; rank++) {
        order->ranks[rank] = r->rows[rank];
        r->rows[rank] = (me_actions){.items = NULL};
        for (int32_t i = 0; i < order->ranks[rank].count; i++) {
            me_action *action = &order->ranks[rank].items[i];
            action->chunk = chunk_of_stage[action->stage];
        }
        me_order_mark_phases(&order->ranks[rank]);
    }
    *order_out = order;
    return ME_OK;
}

/** Fewer forwards than stages and micro-batches need: a number is mistaken,
 *  and room for all of them might be more than there is. */
static me_status check_size(const reader *r)
{
    char text[ME_DIAG_TEXT];
    const int64_t each = r->n_microbatches / 2 > 0 ? r->n_microbatches / 2 : 1;
    if (r->n_forwards >= (int64_t)r->n_stages * each) {
        return ME_OK;
    }
    (void)snprintf(text, sizeof text,
                   "%lld forwards are too few for stages 0 to %d and "
                   "micro-batches 0 to %d",
                   (long long)r->n_forwards, (int)r->n_stages - 1,
                   (int)r->n_microbatches - 1);
    return fail(r, ME_ERR_CONFIG, text);
}

static me_status finish(reader *r, me_pipeline_order **order_out)
{
    me_status status = check_size(r);
    if (status != ME_OK) {
        return status;
    }
    translate(r);
    int32_t *stages = me_alloc((size_t)r->n_stages * 2, sizeof *stages,
                               "schedule_csv.stages");
    int32_t *held =
        me_alloc((size_t)r->n_rows, sizeof *held, "schedule_csv.held");
    me_pipeline_order *order = NULL;
    status = stages == NULL || held == NULL
                 ? fail(r, ME_ERR_NOMEM, "no host memory for the order")
                 : make_order(r, stages, held, &order);
    me_free(stages);
    me_free(held);
    if (status == ME_OK) {
        status = me_pipeline_order_check(order, r->diag);
    }
    if (status == ME_OK && me_pipeline_order_has_transfers(order)) {
        status = me_pipeline_order_check_transfers(order, r->diag);
    }
    if (status == ME_OK) {
        status = me_pipeline_order_check_parameters(order, r->diag);
    }
    if (status != ME_OK) {
        me_pipeline_order_destroy(order);
        return status;
    }
    *order_out = order;
    return ME_OK;
}

/** Between a mark of UTF-8 and the blank lines and idle cells at the end. */
static void find_rows(reader *r, const char *text, size_t length)
{
    static const char blanks[] = {' ', ',', '\t', '\r', '\n'};
    const bool is_marked = length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0;
    r->at = is_marked ? text + 3 : text;
    r->end = text + length;
    for (; r->end > r->at; r->end--) {
        if (memchr(blanks, r->end[-1], sizeof blanks) == NULL) {
            break;
        }
    }
}

me_status me_schedule_csv_read(const char *text, size_t length,
                               const me_csv_options *options, me_diag *diag,
                               me_pipeline_order **order_out)
{
    reader r = {.options = options, .diag = diag};
    find_rows(&r, text, length);
    me_status status = read_rows(&r);
    r.row = 0; // what is wrong from now on is in no one row
    if (status == ME_OK) {
        status = finish(&r, order_out);
    }
    if (status != ME_OK && diag != NULL && diag->where[0] == '\0') {
        (void)snprintf(diag->where, sizeof diag->where, "%s",
                       options->where == NULL ? "schedule" : options->where);
    }
    for (int32_t i = 0; i < r.n_rows; i++) {
        me_actions_fini(&r.rows[i]);
    }
    me_free(r.rows);
    return status;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/list_command.h"

#include "alloc/card.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/data_files.h"
#include "base/input.h"
#include "config/file.h"
#include "config/huggingface/huggingface.h"
#include "config/megatron/parameters.h"
#include "report/json.h"
#include "report/table.h"
#include "time/cluster.h"

#include <string.h>

/** A line: of what it is about, the members are set that its schema has. */
typedef struct row {
    const char *name;
    const char *about; /**< what the file calls it; of a class what it has, and
                            is refused for, or NULL */
    const char *left_out; /**< of a class that is read; NULL: nothing */
    const char *others;   /**< classes of the same row, or NULL */
    bool is_counted;      /**< a model whose parameters arithmetic knows */
    me_model_summary model;
    uint64_t bytes; /**< of a card */
    int32_t gpus;   /**< of a machine's node */
} row;

static bool is_counted(const void *record)
{
    const row *r = record;
    return r->is_counted;
}

static bool has_experts(const void *record)
{
    const row *r = record;
    return r->is_counted && r->model.num_experts > 0;
}

static const me_schema model_schema = ME_SCHEMA(
    row, {ME_NAME(row, name), .title = "model"},
    {ME_FIELD_AS("parameters", ME_FIELD_COUNT, row, model.parameters, uint64_t),
     .title = "parameters", .is_there = is_counted},
    {ME_FIELD_AS("num_layers", ME_FIELD_I32, row, model.num_layers, int32_t),
     .title = "layers", .is_there = is_counted},
    {ME_FIELD_AS("hidden_size", ME_FIELD_COUNT, row, model.hidden_size,
                 uint64_t),
     .title = "hidden", .is_there = is_counted},
    {ME_FIELD_AS("num_attention_heads", ME_FIELD_COUNT, row,
                 model.num_attention_heads, uint64_t),
     .title = "heads", .is_there = is_counted},
    {ME_FIELD_AS("num_query_groups", ME_FIELD_COUNT, row,
                 model.num_query_groups, uint64_t),
     .title = "groups", .is_there = is_counted},
    {ME_FIELD_AS("num_experts", ME_FIELD_COUNT, row, model.num_experts,
                 uint64_t),
     .title = "experts", .is_there = has_experts},
    {ME_FIELD_AS("router_topk", ME_FIELD_COUNT, row, model.router_topk,
                 uint64_t),
     .title = "of a token", .is_there = has_experts},
    {ME_FIELD_AS("vocab_size", ME_FIELD_COUNT, row, model.vocab_size, uint64_t),
     .title = "vocabulary", .is_there = is_counted});

static const me_schema card_schema =
    ME_SCHEMA(row, {ME_NAME(row, name), .title = "card"},
              {ME_FIELD_AS("total_bytes", ME_FIELD_BYTES, row, bytes, uint64_t),
               .title = "memory", .unit = "GiB"},
              {ME_FIELD_AS("card", ME_FIELD_NAME, row, about, const char *),
               .title = "is"});

static const me_schema machine_schema =
    ME_SCHEMA(row, {ME_NAME(row, name), .title = "machine"},
              {ME_I32(row, gpus), .title = "GPUs of a node"},
              {ME_FIELD_AS("machine", ME_FIELD_NAME, row, about, const char *),
               .title = "is"});

static const me_schema class_schema = ME_SCHEMA(
    row, {ME_NAME(row, name), .title = "architecture"}, {ME_TEXT(row, others)},
    {ME_FIELD_AS("missing", ME_FIELD_TEXT, row, about, const char *)},
    {ME_TEXT(row, left_out)});

/** Whether a config.json of the class is read, and what of it is not. */
static void get_reading(const void *record, me_str *cell)
{
    const row *r = record;
    me_str_append(cell, r->about != NULL      ? "no: it has "
                        : r->left_out != NULL ? "yes, but for: "
                                              : "yes");
    me_str_append(cell, r->about != NULL      ? r->about
                        : r->left_out != NULL ? r->left_out
                                              : "");
}

static const me_column class_columns[] = {
    {"read", NULL, false, false, get_reading},
};

/** A list while it is made. */
typedef struct listing {
    const struct kind *kind;
    me_arena *names;
    row *rows;
    size_t n_rows;
    me_diag *diag;
    me_status status;
} listing;

/** What can be listed. */
typedef struct kind {
    const char *word;          /**< of the command line */
    const me_data_kind *files; /**< NULL: they are no files */
    const me_schema *schema;
    /** What a file of it says; NULL where they are no files. */
    me_status (*read)(listing *l, const char *path, row *row_out);
    const me_column *last; /**< of text alone; NULL: none */
} kind;

static me_status read_model(listing *l, const char *path, row *row_out)
{
    me_config *config = me_config_create();
    me_status status = config == NULL
                           ? me_fail(l->diag, ME_ERR_NOMEM, "no memory")
                           : me_config_read_file(config, path, l->diag);
    if (status == ME_OK) {
        status = me_model_summarize(config, l->diag, &row_out->model);
        row_out->is_counted = status == ME_OK;
        status = status == ME_ERR_UNSUPPORTED ? ME_OK : status;
    }
    me_config_destroy(config);
    return status;
}

static const char *keep(listing *l, const char *text)
{
    return me_arena_strdup(l->names, text);
}

static me_status read_card(listing *l, const char *path, row *row_out)
{
    me_device_card card;
    const me_status status = me_device_card_load(path, l->diag, &card);
    if (status == ME_OK) {
        row_out->bytes = card.total_bytes;
        row_out->about = keep(l, card.name);
    }
    return status;
}

static me_status read_machine(listing *l, const char *path, row *row_out)
{
    me_str bytes = {0};
    me_cluster cluster;
    me_status status = me_input_read(path, ME_INPUT_MAX_BYTES, l->diag, &bytes);
    if (status == ME_OK) {
        status = me_cluster_read(me_str_text(&bytes), path, l->diag, &cluster);
    }
    if (status == ME_OK) {
        row_out->gpus = cluster.gpus;
        row_out->about = keep(l, cluster.name);
    }
    me_str_fini(&bytes);
    return status;
}

static const kind kinds[] = {
    {"models", &me_data_models, &model_schema, read_model, NULL},
    {"cards", &me_data_cards, &card_schema, read_card, NULL},
    {"machines", &me_data_machines, &machine_schema, read_machine, NULL},
    {"architectures", NULL, &class_schema, NULL, class_columns},
};

/** A name of a nearer folder hides those of the same name behind it. */
static bool is_hidden(const listing *l, const char *name)
{
    for (size_t i = 0; i < l->n_rows; i++) {
        if (strcmp(l->rows[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static void append(listing *l, row new)
{
    row *rows =
        me_realloc(l->rows, l->n_rows + 1, sizeof *rows, "listed names");
    if (rows == NULL) {
        l->status = me_fail(l->diag, ME_ERR_NOMEM, "no memory for a list");
        return;
    }
    l->rows = rows;
    l->rows[l->n_rows++] = new;
}

static bool add_file(void *self, const char *name, const char *path)
{
    listing *l = self;
    if (is_hidden(l, name)) {
        return false;
    }
    row new = {.name = keep(l, name), .about = ""};
    l->status = l->kind->read(l, path, &new);
    if (l->status == ME_OK && (new.name == NULL || new.about == NULL)) {
        l->status = me_fail(l->diag, ME_ERR_NOMEM, "no memory for a list");
    }
    if (l->status == ME_OK) {
        append(l, new);
    }
    return l->status != ME_OK;
}

/** Classes of Hugging Face's. */
static void add_classes(listing *l)
{
    me_hf_class class = {.name = ""};
    me_str left_out = {0};
    for (size_t i = 0;
         l->status == ME_OK && me_huggingface_class(i, &class, &left_out);
         i++) {
        const char *text = keep(l, me_str_text(&left_out));
        if (text == NULL || me_str_status(&left_out) != ME_OK) {
            l->status = me_fail(l->diag, ME_ERR_NOMEM, "no memory for a list");
            break;
        }
        append(l, (row){.name = class.name,
                        .about = class.missing,
                        .others = class.others,
                        .left_out = text[0] == '\0' ? NULL : text});
        left_out.length = 0;
        me_str_append(&left_out, "");
    }
    me_str_fini(&left_out);
}

static me_status print(const listing *l, const char *format, me_str *text)
{
    const size_t n_last = l->kind->last == NULL ? 0 : 1;
    const me_table table = {.columns = l->kind->last,
                            .n_columns = n_last,
                            .n_after = n_last,
                            .schema = l->kind->schema,
                            .rows = l->rows,
                            .n_rows = l->n_rows,
                            .row_bytes = sizeof *l->rows,
                            .narrow = "of a token;groups;vocabulary;heads;"};
    if (strcmp(format, "text") == 0) {
        return me_table_print(&table, text);
    }
    json_t *list = json_array();
    for (size_t i = 0; i < l->n_rows && list != NULL; i++) {
        list = me_json_push(list, me_json_record(l->kind->schema, &l->rows[i]));
    }
    return me_json_append(list, JSON_INDENT(2), text);
}

/** A file that cannot be read is the user's input, not our trouble. */
static me_status list_kind(const kind *k, const char *format, me_diag *diag,
                           me_str *text)
{
    listing l = {.kind = k,
                 .names = me_arena_create(UINT64_C(1) << 20, "listed files"),
                 .diag = diag,
                 .status = ME_OK};
    if (l.names == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory for a list");
    }
    bool has_failed = false;
    if (k->files != NULL) {
        const me_status status =
            me_data_visit(k->files, add_file, &l, &has_failed);
        if (status != ME_OK) {
            l.status = me_fail(diag, status, "no memory for a list");
        }
    } else {
        add_classes(&l);
    }
    if (l.status == ME_OK && print(&l, format, text) != ME_OK) {
        l.status = me_fail(diag, ME_ERR_NOMEM, "no memory for a list");
    }
    me_free(l.rows);
    me_arena_destroy(l.names);
    return l.status == ME_ERR_IO ? ME_ERR_CONFIG : l.status;
}

me_status me_list_command(const me_cli *cli, me_diag *diag, me_str *text)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(cli->operand, kinds[i].word) == 0) {
            return list_kind(&kinds[i], cli->format, diag, text);
        }
    }
    return me_fail(diag, ME_ERR_CONFIG,
                   "memest list %.40s: models, cards, machines and "
                   "architectures can be listed",
                   cli->operand);
}

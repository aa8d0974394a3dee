/* SPDX-License-Identifier: BSD-3-Clause */
#include "cases.h"

#include "support/test.h"

#include <stdlib.h>
#include <string.h>

enum {
    LINE = 4096,
    FIELDS = 9
};

/** Cut @p line at its tabulators. */
static uint32_t cut(char *line, char *fields[FIELDS])
{
    uint32_t count = 0;
    line[strcspn(line, "\n")] = '\0';
    for (char *at = line; at != NULL && count < FIELDS;) {
        fields[count++] = at;
        at = strchr(at, '\t');
        if (at != NULL) {
            *at++ = '\0';
        }
    }
    return count;
}

static int32_t number(const char *text)
{
    return (int32_t)strtol(text, NULL, 10);
}

static uint32_t list(const char *text, int32_t *numbers)
{
    uint32_t count = 0;
    while (*text != '\0' && *text != '-') {
        char *end = NULL;
        assert_in_range(count, 0, CASE_OPS - 1);
        numbers[count++] = (int32_t)strtol(text, &end, 10);
        text = *end == ',' ? end + 1 : end;
    }
    return count;
}

static void begin(sac_case *c, const char *name)
{
    memset(c, 0, sizeof *c);
    (void)snprintf(c->name, sizeof c->name, "%s", name);
    c->stats.fqn = c->name;
    c->stats.ops = c->ops;
}

static me_sac_op *add_op(sac_case *c, const char *name)
{
    assert_in_range(c->stats.n_ops, 0, CASE_OPS - 1);
    const uint32_t i = c->stats.n_ops++;
    (void)snprintf(c->names[i], CASE_NAME, "%s", name);
    c->ops[i].name = c->names[i];
    c->ops[i].in_place_of = ME_SAC_NOT_IN_PLACE;
    return &c->ops[i];
}

static void read_op(sac_case *c, char **fields)
{
    me_sac_op *op = add_op(c, fields[1]);
    op->runtime_ms = strtod(fields[2], NULL);
    op->bytes = strtoull(fields[3], NULL, 10);
    op->is_view_like = number(fields[4]) != 0;
    op->is_random = number(fields[5]) != 0;
    op->is_saved = number(fields[6]) != 0;
    op->in_place_of = number(fields[7]);
}

static void read_expected(sac_case *c, char **f)
{
    if (strcmp(f[0], "recomputed") == 0) {
        c->n_recomputed = list(f[1], c->recomputed);
    } else if (strcmp(f[0], "stored") == 0) {
        c->n_stored = list(f[1], c->stored);
    } else if (strcmp(f[0], "cand") == 0) {
        c->candidates[c->n_candidates++] =
            (me_sac_candidate){.op = number(f[1]),
                               .bytes = strtoull(f[2], NULL, 10),
                               .runtime_ms = strtod(f[3], NULL),
                               .bytes_per_ms = strtod(f[4], NULL)};
    } else if (strcmp(f[0], "point") == 0) {
        c->points[c->n_points++] =
            (me_sac_point){strtod(f[1], NULL), strtod(f[2], NULL)};
    } else if (strcmp(f[0], "fit") == 0) {
        c->n_segments = (uint32_t)number(f[1]);
        c->residual = strtod(f[2], NULL);
    } else {
        fail_msg("%s: a line of \"%s\"", c->name, f[0]);
    }
}

bool me_sac_case_read(FILE *file, sac_case *c)
{
    char line[LINE];
    bool has_begun = false;
    long here = ftell(file);
    while (fgets(line, sizeof line, file) != NULL) {
        char *fields[FIELDS] = {NULL};
        const uint32_t count = line[0] == '#' ? 0 : cut(line, fields);
        if (count > 0 && strcmp(fields[0], "case") == 0) {
            if (has_begun) {
                assert_int_equal(fseek(file, here, SEEK_SET), 0);
                return true;
            }
            begin(c, fields[1]);
            c->stats.stores_random = number(fields[3]) != 0;
            has_begun = true;
        } else if (count == 8 && strcmp(fields[0], "op") == 0) {
            read_op(c, fields);
        } else if (count > 0) {
            read_expected(c, fields);
        }
        here = ftell(file);
    }
    return has_begun;
}

void me_sac_case_of_module(const char *module, sac_case *c)
{
    begin(c, module);
    FILE *file = fopen(GOLDEN_DIR "/sac_stats.tsv", "r");
    assert_non_null(file);
    char line[LINE];
    while (fgets(line, sizeof line, file) != NULL) {
        char *f[FIELDS] = {NULL};
        if (cut(line, f) == 8 && strcmp(f[0], module) == 0) {
            assert_int_equal(number(f[1]), c->stats.n_ops);
            me_sac_op *op = add_op(c, f[2]);
            op->runtime_ms = strtod(f[3], NULL);
            op->bytes = strtoull(f[4], NULL, 10);
            op->is_view_like = number(f[5]) != 0;
            op->is_random = number(f[6]) != 0;
            op->is_saved = number(f[7]) != 0;
        }
    }
    assert_int_equal(fclose(file), 0);
    assert_true(c->stats.n_ops > 0);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/event.h"
#include "support/test.h"
#include "track/result.h"

#include <string.h>

enum {
    BYTES_MAX = 8192, /* of the largest struct */
    ALIGNED = 8
};

/** How many bytes of the struct a field is. */
static size_t width_of(const me_field *field)
{
    switch ((me_field_kind)field->kind) {
    case ME_FIELD_BYTES:
    case ME_FIELD_COUNT:
    case ME_FIELD_NS: return sizeof(uint64_t);
    case ME_FIELD_U32:
    case ME_FIELD_PARENT:
    case ME_FIELD_I32:
    case ME_FIELD_INDEX: return sizeof(uint32_t);
    case ME_FIELD_BOOL: return sizeof(bool);
    case ME_FIELD_CATEGORY: return sizeof(uint8_t);
    case ME_FIELD_NAME:
    case ME_FIELD_TEXT:
    case ME_FIELD_ITEMS: return sizeof(void *);
    case ME_FIELD_BY_CATEGORY: return ME_CATEGORY_COUNT * sizeof(uint64_t);
    case ME_FIELD_RECORD: return field->of->size;
    case ME_FIELD_ROWS: return field->count * field->of->size;
    case ME_FIELD_NONE:
    case ME_FIELD_KINDS: break;
    }
    return 0;
}

static void mark(bool *is_sent, size_t offset, size_t width)
{
    for (size_t i = 0; i < width; i++) {
        assert_false(is_sent[offset + i]); /* by one row */
        is_sent[offset + i] = true;
    }
}

/** Each row has what its kind needs; the bytes of those that are sent. */
static void walk(const me_schema *schema, bool *is_sent)
{
    for (size_t i = 0; i < schema->n_fields; i++) {
        const me_field *field = &schema->fields[i];
        assert_non_null(field->key);
        const size_t width = width_of(field);
        assert_true(width > 0 && field->offset + width <= schema->size);
        const bool has_records = field->kind == ME_FIELD_RECORD ||
                                 field->kind == ME_FIELD_ITEMS ||
                                 field->kind == ME_FIELD_ROWS;
        assert_int_equal(has_records, field->of != NULL);
        assert_true(field->csv == 0 || !has_records);
        assert_true(field->derive == NULL || field->kind == ME_FIELD_BYTES ||
                    field->kind == ME_FIELD_COUNT);
        assert_true(field->find == NULL || field->kind == ME_FIELD_RECORD);
        const bool is_elsewhere = field->derive != NULL || field->find != NULL;
        const bool is_field_sent = (field->left_out & ME_FIELD_NOT_SENT) == 0;
        assert_false(is_elsewhere && is_field_sent);
        if (is_field_sent) {
            mark(is_sent, field->offset, width);
        }
        if (is_field_sent && field->kind == ME_FIELD_ITEMS) {
            mark(is_sent, field->count, sizeof(uint32_t));
        }
    }
}

/** Each member is sent by one row: what lies between is padding. */
static void check_whole(const me_schema *schema)
{
    bool is_sent[BYTES_MAX] = {false};
    assert_true(schema->size <= BYTES_MAX);
    walk(schema, is_sent);
    size_t gap = 0;
    for (size_t i = 0; i < schema->size; i++) {
        gap = is_sent[i] ? 0 : gap + 1;
        assert_true(gap < ALIGNED);
    }
}

/** How many numbers an encoded record has, at least. */
static size_t count_numbers(const me_schema *schema)
{
    size_t count = 0;
    for (size_t i = 0; i < schema->n_fields; i++) {
        const me_field *field = &schema->fields[i];
        if ((field->left_out & ME_FIELD_NOT_SENT) == 0) {
            count += field->kind == ME_FIELD_BY_CATEGORY ? ME_CATEGORY_COUNT
                     : field->kind == ME_FIELD_RECORD ? count_numbers(field->of)
                                                      : 1;
        }
    }
    return count;
}

/** A record and those that its rows are of. */
static void check_all(const me_schema *schema)
{
    for (size_t i = 0; i < schema->n_fields; i++) {
        if (schema->fields[i].of != NULL) {
            check_whole(schema->fields[i].of);
            if (schema->fields[i].kind == ME_FIELD_ITEMS) { /* the codec's */
                assert_true(count_numbers(schema->fields[i].of) >=
                            schema->fields[i].of->n_fields);
            }
            check_all(schema->fields[i].of);
        }
    }
}

static void test_schema__has_a_row_for_each_member(void **state)
{
    (void)state;
    check_all(&me_result_schema);
    check_all(&me_result_optional_schema);
}

/** The result's own members stand in two records. */
static void test_schema__sends_the_result_but_its_times(void **state)
{
    (void)state;
    bool is_sent[BYTES_MAX] = {false};
    walk(&me_result_schema, is_sent);
    walk(&me_result_optional_schema, is_sent);
    mark(is_sent, offsetof(me_rank_result, time), sizeof(me_time_program));
    mark(is_sent, offsetof(me_rank_result, common), sizeof(void *));
    mark(is_sent, offsetof(me_rank_result, arena), sizeof(void *));
    size_t gap = 0;
    for (size_t i = 0; i < sizeof(me_rank_result); i++) {
        gap = is_sent[i] ? 0 : gap + 1;
        assert_true(gap < ALIGNED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schema__has_a_row_for_each_member),
        cmocka_unit_test(test_schema__sends_the_result_but_its_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

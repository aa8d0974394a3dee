/* SPDX-License-Identifier: BSD-3-Clause */
#include "script/record.h"
#include "support/test.h"

#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/** What was told: the words of all records, a bar between two words. */
typedef struct told {
    char text[1 << 17];
    size_t length;
    int n_records;
} told;

static me_status tell(void *self, const char *words, size_t length,
                      me_diag *diag)
{
    told *t = self;
    (void)diag;
    for (size_t i = 0; i < length && t->length < sizeof t->text - 1; i++) {
        t->text[t->length++] = words[i];
        if (words[i] == '\0') {
            t->text[t->length - 1] = '|';
        }
    }
    t->n_records++;
    return ME_OK;
}

/** Two processes send records of several frames; bytes come in any pieces. */
static void test_records_survive_pieces(void **state)
{
    (void)state;
    static told t;
    static char long_word[9000];
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(dup2(ends[1], ME_RECORD_FD), ME_RECORD_FD);
    (void)close(ends[1]);
    memset(long_word, 'x', sizeof long_word - 1);
    for (int i = 0; i < 2; i++) {
        const pid_t child = fork();
        if (child == 0) {
            me_words words = {.count = 0};
            me_words_add(&words, "launch");
            me_words_add(&words, "");
            me_words_add(&words, long_word);
            const bool is_sent = me_record_send(&words);
            me_words_fini(&words);
            _exit(is_sent ? 0 : 1);
        }
    }
    (void)close(ME_RECORD_FD);
    me_record_reader reader = {.filled = 0};
    me_diag diag = {.status = ME_OK};
    char piece[7];
    ssize_t n = 0;
    while ((n = read(ends[0], piece, sizeof piece)) > 0) {
        assert_int_equal(
            me_record_take(&reader, piece, (size_t)n, tell, &t, &diag), ME_OK);
    }
    int code = 0;
    for (int i = 0; i < 2; i++) {
        assert_true(wait(&code) > 0);
        assert_int_equal(code, 0);
    }
    assert_int_equal(t.n_records, 2);
    assert_int_equal(t.length, 2 * (strlen("launch||") + sizeof long_word));
    assert_memory_equal(t.text, "launch||x", 9);
    me_record_reader_fini(&reader);
    (void)close(ends[0]);
}

/** Whatever a script writes there, it is refused or no record. */
static void test_refuses_forgeries(void **state)
{
    (void)state;
    static told t;
    static const char no_end[] = {1, 0, 0, 0, 3, 0, 1, 0, 'a', 'b', 'c'};
    static const char empty[] = {1, 0, 0, 0, 0, 0, 1, 0};

    static const struct {
        const char *bytes;
        size_t length;
    } cases[] = {
        {"launch launch launch", 20},
        {no_end, sizeof no_end},
        {empty, sizeof empty},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_record_reader reader = {.filled = 0};
        me_diag diag = {.status = ME_OK};
        assert_int_equal(me_record_take(&reader, cases[i].bytes,
                                        cases[i].length, tell, &t, &diag),
                         ME_ERR_CONFIG);
        assert_non_null(strstr(diag.text, "wrote to what memest listens to"));
        me_record_reader_fini(&reader);
    }
    assert_int_equal(t.n_records, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records_survive_pieces),
        cmocka_unit_test(test_refuses_forgeries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

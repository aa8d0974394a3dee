/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/transport.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

static void test_transport__local_is_one_process(void **state)
{
    (void)state;
    me_transport *transport = NULL;
    assert_int_equal(me_transport_local_create(&transport), ME_OK);
    assert_int_equal(me_transport_rank(transport), 0);
    assert_int_equal(me_transport_size(transport), 1);
    me_blob *blobs = NULL;
    assert_int_equal(me_transport_all_gather(transport, "abc", 3, NULL, &blobs),
                     ME_OK);
    assert_int_equal(blobs[0].size, 3);
    assert_memory_equal(blobs[0].bytes, "abc", 3);
    me_blobs_free(blobs, 1);
    assert_int_equal(me_transport_gather(transport, NULL, 0, NULL, &blobs),
                     ME_OK);
    assert_int_equal(blobs[0].size, 0);
    me_blobs_free(blobs, 1);
    me_transport_abort(transport, 1);
    me_transport_destroy(transport);
    me_transport_destroy(NULL);
    me_blobs_free(NULL, 7);
}

static void test_transport__agreeing_alone_keeps_the_reason(void **state)
{
    (void)state;
    me_transport *transport = NULL;
    assert_int_equal(me_transport_local_create(&transport), ME_OK);
    me_diag diag = {0};
    assert_int_equal(me_transport_agree(transport, ME_OK, &diag), ME_OK);
    assert_int_equal(diag.status, ME_OK);
    (void)me_fail(&diag, ME_ERR_IO, "no such file");
    assert_int_equal(me_transport_agree(transport, ME_ERR_IO, &diag),
                     ME_ERR_IO);
    assert_string_equal(diag.text, "no such file");
    diag = (me_diag){0};
    assert_int_equal(me_transport_agree(transport, ME_ERR_NOMEM, &diag),
                     ME_ERR_NOMEM);
    assert_string_equal(diag.text, "out of host memory");
    me_transport_destroy(transport);
}

/* ctest starts this without a launcher. */
static void test_transport__without_a_launcher_is_local(void **state)
{
    (void)state;
    if (getenv("OMPI_COMM_WORLD_SIZE") != NULL || getenv("PMIX_RANK") != NULL ||
        getenv("PMI_RANK") != NULL) {
        skip();
    }
    me_transport *transport = NULL;
    assert_int_equal(me_transport_mpi_create(NULL, NULL, NULL, &transport),
                     ME_OK);
    assert_int_equal(me_transport_size(transport), 1);
    me_transport_destroy(transport);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transport__local_is_one_process),
        cmocka_unit_test(test_transport__agreeing_alone_keeps_the_reason),
        cmocka_unit_test(test_transport__without_a_launcher_is_local),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

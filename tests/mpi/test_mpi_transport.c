/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "support/mpi.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

static me_transport *transport;

/* Block of process p: p × 1000 + 3 bytes that depend on p and their place. */
static size_t block_size(int process)
{
    return process % 3 == 2 ? 0 : (size_t)process * 1000 + 3;
}

static unsigned char block_byte(int process, size_t at)
{
    return (unsigned char)((size_t)process * 31 + at * 7);
}

static unsigned char *make_block(int process)
{
    unsigned char *bytes = me_alloc(block_size(process), 1, "test");
    for (size_t i = 0; bytes != NULL && i < block_size(process); i++) {
        bytes[i] = block_byte(process, i);
    }
    return bytes;
}

static int is_block(const me_blob *blob, int process)
{
    if (blob->size != block_size(process)) {
        return 0;
    }
    for (size_t i = 0; i < blob->size; i++) {
        if (blob->bytes[i] != block_byte(process, i)) {
            return 0;
        }
    }
    return 1;
}

static void gather_blocks(size_t chunk_bytes, me_diag *verdict)
{
    const int rank = me_transport_rank(transport);
    const int size = me_transport_size(transport);
    me_transport_set_chunk(transport, chunk_bytes);
    unsigned char *own = make_block(rank);
    me_blob *blobs = NULL;
    me_status status =
        me_transport_gather(transport, own, block_size(rank), NULL, &blobs);
    MPI_EXPECT(verdict, status == ME_OK);
    MPI_EXPECT(verdict, (blobs != NULL) == (rank == 0));
    for (int i = 0; blobs != NULL && i < size; i++) {
        MPI_EXPECT(verdict, is_block(&blobs[i], i));
    }
    me_blobs_free(blobs, size);
    status =
        me_transport_all_gather(transport, own, block_size(rank), NULL, &blobs);
    MPI_EXPECT(verdict, status == ME_OK && blobs != NULL);
    for (int i = 0; blobs != NULL && i < size; i++) {
        MPI_EXPECT(verdict, is_block(&blobs[i], i));
    }
    me_blobs_free(blobs, size);
    me_free(own);
}

static void test_mpi_transport__gathers_blocks(void **state)
{
    (void)state;
    me_diag verdict = {0};
    gather_blocks((size_t)1 << 30, &verdict);
    assert_true(mpi_agree(transport, &verdict));
}

static void test_mpi_transport__gathers_in_chunks(void **state)
{
    (void)state;
    me_diag verdict = {0};
    gather_blocks(7, &verdict);
    gather_blocks(1003, &verdict);
    me_transport_set_chunk(transport, (size_t)1 << 30);
    assert_true(mpi_agree(transport, &verdict));
}

static void test_mpi_transport__agrees_on_the_worst(void **state)
{
    (void)state;
    const int rank = me_transport_rank(transport);
    const int last = me_transport_size(transport) - 1;
    me_diag verdict = {0};
    me_diag diag = {0};
    MPI_EXPECT(&verdict, me_transport_agree(transport, ME_OK, &diag) == ME_OK);
    MPI_EXPECT(&verdict, diag.status == ME_OK);
    me_status own = ME_OK;
    if (rank == last) {
        own = me_fail_at(&diag, ME_ERR_IO, "gpt.cfg", 7, "of process %d", rank);
    }
    MPI_EXPECT(&verdict,
               me_transport_agree(transport, own, &diag) == ME_ERR_IO);
    char text[64];
    (void)snprintf(text, sizeof text, "of process %d", last);
    MPI_EXPECT(&verdict, strcmp(diag.text, text) == 0);
    MPI_EXPECT(&verdict, strcmp(diag.where, "gpt.cfg") == 0 && diag.line == 7);
    own = me_fail(&diag, ME_ERR_MPI, "lowest is %d", rank);
    MPI_EXPECT(&verdict,
               me_transport_agree(transport, own, &diag) == ME_ERR_MPI);
    MPI_EXPECT(&verdict, strcmp(diag.text, "lowest is 0") == 0);
    MPI_EXPECT(&verdict, me_transport_agree(transport, ME_ERR_NOMEM, NULL) ==
                             ME_ERR_NOMEM);
    assert_true(mpi_agree(transport, &verdict));
}

/* The third request of the gathering is a block's; on one process it fails
 * and all give up together. */
static void test_mpi_transport__gives_up_together(void **state)
{
    (void)state;
    const int rank = me_transport_rank(transport);
    const uint64_t lost = me_alloc_lost();
    me_diag verdict = {0};
    for (uint64_t nth = 1; nth <= 3; nth++) {
        me_diag diag = {0};
        me_blob *blobs = NULL;
        me_alloc_fail_at(rank == 0 ? nth : 0);
        const me_status status =
            me_transport_gather(transport, "x", 1, &diag, &blobs);
        me_alloc_fail_at(0);
        me_alloc_set_lost(lost, NULL); /* the transport is used again */
        MPI_EXPECT(&verdict, status == ME_ERR_NOMEM);
        MPI_EXPECT(&verdict, blobs == NULL);
        MPI_EXPECT(&verdict, diag.status == ME_ERR_NOMEM);
    }
    assert_true(mpi_agree(transport, &verdict));
}

int main(int argc, char **argv)
{
    me_diag diag = {0};
    if (me_transport_mpi_create(&argc, &argv, &diag, &transport) != ME_OK) {
        (void)fprintf(stderr, "%s\n", diag.text);
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mpi_transport__gathers_blocks),
        cmocka_unit_test(test_mpi_transport__gathers_in_chunks),
        cmocka_unit_test(test_mpi_transport__agrees_on_the_worst),
        cmocka_unit_test(test_mpi_transport__gives_up_together),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    me_transport_destroy(transport);
    return failed;
}

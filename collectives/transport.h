/**
 * @file
 * How memest's own processes talk to each other: `local` is one process,
 * `mpi` is an MPI job. Every function is Collective unless it says otherwise.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_COLLECTIVES_TRANSPORT_H
#define MEMEST_COLLECTIVES_TRANSPORT_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct me_transport me_transport;

/** One process. @param transport_out owned by the caller. Local. */
me_status me_transport_local_create(me_transport **transport_out);

/**
 * All processes of the MPI job, or one if memest was not started by a launcher
 * (or was built without MPI). Initialises MPI.
 *
 * @param transport_out  owned by the caller
 * @return ME_OK, ME_ERR_MPI, ME_ERR_NOMEM
 */
me_status me_transport_mpi_create(int *argc, char ***argv, me_diag *diag,
                                  me_transport **transport_out);

/**
 * End the whole job at once, for failures after which the processes cannot
 * agree any more. With `mpi` the launcher ends every process; with `local`
 * there is nobody else to end and the call returns. Local.
 */
void me_transport_abort(me_transport *transport, int exit_code);

/** Leave; finalises MPI. NULL is allowed. */
void me_transport_destroy(me_transport *transport);

/** This process and how many there are. Local. */
int me_transport_rank(const me_transport *transport);
int me_transport_size(const me_transport *transport);

/**
 * This process's own result so far, before it is handed out: no answer on a
 * lost allocation (base/alloc.h). Local.
 *
 * @return @p status; ME_ERR_NOMEM where a request for host memory has been lost
 *         since the transport was made
 */
me_status me_transport_check(const me_transport *transport, me_status status,
                             me_diag *diag) ME_MUST_CHECK;

/**
 * Agree before anybody leaves: all processes get the worst status and the text
 * of the lowest process that has it. Nobody returns early from a section with
 * exchanges; everybody calls this and leaves together.
 *
 * @param status  this process's own result so far; checked as by
 *                me_transport_check()
 * @param diag    this process's reason; replaced by the agreed one
 * @return the agreed status
 */
me_status me_transport_agree(me_transport *transport, me_status status,
                             me_diag *diag);

/** A block of bytes from one process. */
typedef struct me_blob {
    unsigned char *bytes;
    size_t size;
} me_blob;

/**
 * Gather a block from every process on process 0.
 *
 * @param bytes      this process's block, @p size bytes, borrowed
 * @param blobs_out  on process 0 an array of me_transport_size() blobs in the
 *                   order of the processes, to be given back with
 *                   me_blobs_free(); NULL elsewhere
 */
me_status me_transport_gather(me_transport *transport, const void *bytes,
                              size_t size, me_diag *diag, me_blob **blobs_out);

/** As me_transport_gather(), but every process gets all blocks. */
me_status me_transport_all_gather(me_transport *transport, const void *bytes,
                                  size_t size, me_diag *diag,
                                  me_blob **blobs_out);

/**
 * For tests: the most bytes that one message carries; larger blocks travel in
 * several. The same on all processes. Local.
 */
void me_transport_set_chunk(me_transport *transport, size_t chunk_bytes);

/** Give back @p count blobs and the array; NULL is allowed. Local. */
void me_blobs_free(me_blob *blobs, int count);

#endif /* MEMEST_COLLECTIVES_TRANSPORT_H */

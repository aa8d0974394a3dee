/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/machine_impl.h"

#include <cuda_runtime_api.h>
#include <stdio.h>

/** No context is made: the properties are enough. */
const char *me_machine_cuda(me_machine_card *card_out)
{
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess) {
        return cudaGetErrorString(error);
    }
    if (count == 0) {
        return "no device";
    }
    struct cudaDeviceProp device;
    error = cudaGetDeviceProperties(&device, 0);
    if (error != cudaSuccess) {
        return cudaGetErrorString(error);
    }
    card_out->n_cards = count;
    (void)snprintf(card_out->name, sizeof card_out->name, "%.*s",
                   ME_MACHINE_TEXT - 1, device.name);
    card_out->total_bytes = device.totalGlobalMem;
    card_out->multiprocessors = (uint64_t)device.multiProcessorCount;
    card_out->threads_per_multiprocessor =
        (uint64_t)device.maxThreadsPerMultiProcessor;
    return NULL;
}

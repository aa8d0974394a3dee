/* SPDX-License-Identifier: BSD-3-Clause */
/* NVIDIA's runtime, loaded when it is asked: a program that links it does not
 * start on a login node, where it is not installed. */
#include "device/machine_impl.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/** X(member, name): what is called of it. The header gives some names a version. */
#define CUDA_LIST(X)                                                           \
    X(get_device_count, cudaGetDeviceCount)                                    \
    X(get_device_properties, cudaGetDeviceProperties)                          \
    X(get_error_string, cudaGetErrorString)

// NOLINTNEXTLINE(bugprone-macro-parentheses): a member is declared
#define CUDA_MEMBER(member, name) __typeof__(name) *member;
#define NAME_OF(name)             #name

typedef struct cuda {
    CUDA_LIST(CUDA_MEMBER)
} cuda;

#undef CUDA_MEMBER

/** Its function @p name. @return false if it has none */
static bool find(void *library, const char *name, void *function_out,
                 size_t size)
{
    void *symbol = dlsym(library, name);
    memcpy(function_out, &symbol, size); // no cast makes one of the other
    return symbol != NULL;
}

/** It stays loaded: texts of its errors are handed out. @return NULL, or why it
 *  cannot be; static */
static const char *load_library(cuda *c)
{
    void *library = dlopen(ME_CUDART_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) { // where it was when memest was built
        library = dlopen(ME_CUDART_PATH, RTLD_NOW | RTLD_LOCAL);
    }
    if (library == NULL) {
        return ME_CUDART_LIBRARY " is not installed here";
    }
    bool is_whole = true;
#define CUDA_FIND(member, name)                                                \
    is_whole = is_whole &&                                                     \
               find(library, NAME_OF(name), &c->member, sizeof c->member);
    CUDA_LIST(CUDA_FIND)
#undef CUDA_FIND
    return is_whole ? NULL : ME_CUDART_LIBRARY " lacks a function";
}

/** No context is made: the properties are enough. */
const char *me_machine_cuda(me_machine_card *card_out)
{
    cuda c;
    const char *why = load_library(&c);
    if (why != NULL) {
        return why;
    }
    int count = 0;
    cudaError_t error = c.get_device_count(&count);
    if (error != cudaSuccess) {
        return c.get_error_string(error);
    }
    if (count == 0) {
        return "no device";
    }
    struct cudaDeviceProp device;
    error = c.get_device_properties(&device, 0);
    if (error != cudaSuccess) {
        return c.get_error_string(error);
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

/* SPDX-License-Identifier: BSD-3-Clause */
/* Source: what PyTorch's torch/cuda/_memory_viz.py leaves out (_frame_filter),
 * and the functions between the allocator and the operation that asks it, as
 * stacks of PyTorch 2.x show them. */
#include "diff/snapshot_frames.h"

#include "base/pickle.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const char *const omitted_names[] = {
    // _frame_filter
    "unwind::unwind", "CapturedTraceback::gather", "gather_with_cpp",
    "__libc_start_", "PyEval_", "PyObject_", "PyFunction_",
    // the allocator, and what asks it for every operation
    "CUDACachingAllocator", "at::detail::empty_", "::create_out(",
    "::set_output_"};

/** Whole, since another function may have one in its name: the program's start,
 *  and what stands between every module or mode and what it calls. */
static const char *const omitted_whole_names[] = {
    "_start", "__torch_function__", "handle_torch_function", "_call_impl",
    "_wrapped_call_impl"};

static const char *const omitted_files[] = {"core/boxing",
                                            "/Register",
                                            "/Redispatch",
                                            "pythonrun.c",
                                            "Modules/main.c",
                                            "Objects/call.c",
                                            "Objects/methodobject.c",
                                            "pycore_ceval.h",
                                            "ceval.c",
                                            "cpython/abstract.h"};

enum {
    N_NAMES = sizeof omitted_names / sizeof omitted_names[0],
    N_WHOLE = sizeof omitted_whole_names / sizeof omitted_whole_names[0],
    N_FILES = sizeof omitted_files / sizeof omitted_files[0]
};

static bool has_one(const char *text, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strstr(text, list[i]) != NULL) {
            return true;
        }
    }
    return false;
}

uint8_t me_frame_class_of_name(const char *name)
{
    bool is_omitted = has_one(name, omitted_names, N_NAMES);
    for (size_t i = 0; i < N_WHOLE; i++) {
        is_omitted = is_omitted || strcmp(name, omitted_whole_names[i]) == 0;
    }
    return is_omitted ? ME_FRAME_LEFT_OUT : ME_FRAME_PYTHON;
}

uint8_t me_frame_class_of_file(const char *file)
{
    const size_t length = strlen(file);
    if (has_one(file, omitted_files, N_FILES)) {
        return ME_FRAME_LEFT_OUT;
    }
    // "<string>", "<frozen runpy>": code without a file
    const bool is_python =
        file[0] == '<' || (length > 3 && strcmp(file + length - 3, ".py") == 0);
    return is_python ? ME_FRAME_PYTHON : ME_FRAME_OTHER;
}

uint8_t me_frame_class(const char *key, const char *text)
{
    if (strcmp(key, "name") == 0) {
        return me_frame_class_of_name(text);
    }
    return strcmp(key, "filename") == 0 ? me_frame_class_of_file(text)
                                        : ME_PICKLE_NO_CLASS;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/pickle.h"
#include "diff/snapshot_frames.h"
#include "support/test.h"

static void test_snapshot_frames__names(void **state)
{
    (void)state;
    static const char *const left_out[] = {
        "torch::unwind::unwind()",
        "torch::CapturedTraceback::gather(bool, bool, bool)",
        "_PyEval_EvalFrameDefault",
        "_PyObject_MakeTpCall",
        "__libc_start_call_main",
        "_start",
        "c10::cuda::CUDACachingAllocator::Native::allocate(unsigned long)",
        "at::detail::empty_cuda(c10::ArrayRef<long>)",
        "__torch_function__",
        "_wrapped_call_impl"};
    for (size_t i = 0; i < sizeof left_out / sizeof left_out[0]; i++) {
        assert_int_equal(me_frame_class_of_name(left_out[i]),
                         ME_FRAME_LEFT_OUT);
    }
    static const char *const kept[] = {"step", "on_train_start",
                                       "at::_ops::gelu::call()", ""};
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        assert_int_equal(me_frame_class_of_name(kept[i]), ME_FRAME_PYTHON);
    }
}

static void test_snapshot_frames__files(void **state)
{
    (void)state;
    assert_int_equal(me_frame_class_of_file("/a/adam.py"), ME_FRAME_PYTHON);
    assert_int_equal(me_frame_class_of_file("<string>"), ME_FRAME_PYTHON);
    assert_int_equal(me_frame_class_of_file("??"), ME_FRAME_OTHER);
    assert_int_equal(me_frame_class_of_file(""), ME_FRAME_OTHER);
    assert_int_equal(me_frame_class_of_file(".py"), ME_FRAME_OTHER);
    assert_int_equal(me_frame_class_of_file("memest"), ME_FRAME_OTHER);
    assert_int_equal(me_frame_class_of_file("/b/Python/ceval.c"),
                     ME_FRAME_LEFT_OUT);
    assert_int_equal(me_frame_class_of_file("/b/aten/RegisterCUDA.cpp"),
                     ME_FRAME_LEFT_OUT);
}

static void test_snapshot_frames__keys(void **state)
{
    (void)state;
    assert_int_equal(me_frame_class("name", "_start"), ME_FRAME_LEFT_OUT);
    assert_int_equal(me_frame_class("filename", "??"), ME_FRAME_OTHER);
    assert_int_equal(me_frame_class("action", "_start"), ME_PICKLE_NO_CLASS);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_snapshot_frames__names),
        cmocka_unit_test(test_snapshot_frames__files),
        cmocka_unit_test(test_snapshot_frames__keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

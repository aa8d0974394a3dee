/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps and jobs that were measured on H200 cards, MiB for MiB as the model's
 * derivation gives them; measured values are within 2 of each. */
#include "alloc/device_memory.h"
#include "support/test.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)

static me_device_memory begin(void)
{
    me_diag diag = {0};
    me_device_card card;
    const me_status status =
        me_device_card_load(ME_CARDS_FOLDER "/h200-141gb.cfg", &diag, &card);
    if (status != ME_OK) {
        print_error("%s\n", diag.text);
    }
    assert_int_equal(status, ME_OK);
    const me_nccl_setup setup = me_nccl_setup_default();
    me_device_memory memory;
    me_device_memory_begin(&memory, &card, &setup);
    assert_int_equal(me_device_memory_bytes(&memory), 540928 * 1024);
    return memory;
}

static void call(me_device_memory *memory, me_group_kind group, int32_t size,
                 me_collective collective, int32_t peer, bool is_lone)
{
    const me_device_call c = {
        .group = group,
        .shape = {size, size},
        .collective = collective,
        .peer = peer,
        .is_lone = is_lone,
    };
    assert_int_equal(me_device_memory_call(memory, &c, NULL), ME_OK);
}

static void reduce(me_device_memory *memory, me_group_kind group, int32_t size)
{
    call(memory, group, size, ME_COLLECTIVE_ALL_REDUCE, 0, false);
}

/* MiB above the context. */
static uint64_t above_context(const me_device_memory *memory)
{
    return (me_device_memory_bytes(memory) - memory->context_bytes) / MIB;
}

static void test_device__one_gpu_job(void **state)
{
    (void)state;
    me_device_memory m = begin();
    me_device_memory_kernel(&m);
    reduce(&m, ME_GROUP_WORLD, 1);
    assert_int_equal(above_context(&m), 1179 - 528);
    reduce(&m, ME_GROUP_TENSOR, 1);
    me_device_memory_matmul(&m, ME_DEVICE_TRAINING_THREAD);
    me_device_memory_matmul(&m, ME_DEVICE_AUTOGRAD_THREAD);
    me_device_memory_matmul(&m, ME_DEVICE_AUTOGRAD_THREAD);
    me_device_memory_modules(&m);
    assert_int_equal(above_context(&m), 1698 - 528);
    reduce(&m, ME_GROUP_DATA, 1);
    assert_int_equal(above_context(&m), 2087 - 528);
    reduce(&m, ME_GROUP_MODEL, 1);
    assert_int_equal(above_context(&m), 2476 - 528);
    assert_int_equal(m.communicator_bytes, 4 * 389 * MIB);
}

static void test_device__four_gpu_pipeline_job(void **state)
{
    (void)state;
    me_device_memory m = begin();
    me_device_memory_kernel(&m);
    me_device_memory_kernel(&m);
    reduce(&m, ME_GROUP_WORLD, 4);
    assert_int_equal(above_context(&m), 1461 - 528);
    call(&m, ME_GROUP_WORLD, 4, ME_COLLECTIVE_BROADCAST, 0, false);
    assert_int_equal(above_context(&m), 1465 - 528);
    reduce(&m, ME_GROUP_TENSOR, 2);
    call(&m, ME_GROUP_PIPELINE, 2, ME_COLLECTIVE_SEND, 2, false);
    call(&m, ME_GROUP_PIPELINE, 2, ME_COLLECTIVE_RECV, 2, false);
    call(&m, ME_GROUP_PIPELINE, 2, ME_COLLECTIVE_SEND, 2, false);
    assert_int_equal(above_context(&m), 2593 - 528);
    me_device_memory_matmul(&m, ME_DEVICE_TRAINING_THREAD);
    me_device_memory_matmul(&m, ME_DEVICE_AUTOGRAD_THREAD);
    me_device_memory_modules(&m); /* fits in what send and receive took */
    assert_int_equal(above_context(&m), 2721 - 528);
    reduce(&m, ME_GROUP_DATA, 1);
    reduce(&m, ME_GROUP_MODEL, 4);
    assert_int_equal(above_context(&m), 3595 - 528);
    assert_int_equal(m.n_communicators, 5);
}

static void test_device__steps(void **state)
{
    (void)state;
    me_device_memory m = begin();
    reduce(&m, ME_GROUP_WORLD, 4);
    uint64_t before = above_context(&m);
    assert_int_equal(before, 841);
    for (int32_t peer = 1; peer <= 3; peer += 2) {
        call(&m, ME_GROUP_DATA, 4,
             peer == 1 ? ME_COLLECTIVE_SEND : ME_COLLECTIVE_RECV, peer, false);
    }
    assert_int_equal(above_context(&m) - before, 643);
    before = above_context(&m);
    call(&m, ME_GROUP_EXPERT, 4, ME_COLLECTIVE_ALL_TO_ALL, 0, false);
    call(&m, ME_GROUP_EXPERT, 4, ME_COLLECTIVE_ALL_TO_ALL, 0, false);
    call(&m, ME_GROUP_EXPERT, 4, ME_COLLECTIVE_SEND, 2, false);
    assert_int_equal(above_context(&m) - before, 1349);
    before = above_context(&m);
    call(&m, ME_GROUP_DATA, 4, ME_COLLECTIVE_ALL_TO_ALL, 0, false);
    assert_int_equal(above_context(&m) - before, 3 * 384 - 64 - 320);
    before = above_context(&m);
    call(&m, ME_GROUP_WORLD, 4, ME_COLLECTIVE_SEND, 1, true);
    assert_int_equal(above_context(&m) - before, 261);
    before = above_context(&m);
    call(&m, ME_GROUP_MODEL, 4, ME_COLLECTIVE_RECV, 1, true);
    assert_int_equal(above_context(&m) - before, 517);
    before = above_context(&m);
    me_device_memory_cudnn(&m, ME_DEVICE_TRAINING_THREAD);
    me_device_memory_cudnn(&m, ME_DEVICE_AUTOGRAD_THREAD);
    assert_int_equal(above_context(&m) - before, 16);
}

static void test_device__refuses_too_many_peers(void **state)
{
    (void)state;
    me_device_memory m = begin();
    me_status status = ME_OK;
    int32_t peer = 0;
    for (; status == ME_OK && peer < 1000; peer++) {
        const me_device_call c = {
            .group = ME_GROUP_PIPELINE,
            .shape = {1000, 1000},
            .collective = ME_COLLECTIVE_SEND,
            .peer = peer,
        };
        status = me_device_memory_call(&m, &c, NULL);
    }
    assert_int_equal(status, ME_ERR_UNSUPPORTED);
    assert_int_equal(peer, ME_DEVICE_MAX_PEERS + 1);
}

static void test_card__refuses(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        const char *says;
        me_status status;
    } cases[] = {
        {"card = ;", "syntax error", ME_ERR_SYNTAX},
        {"", "card is missing", ME_ERR_CONFIG},
        {"card = \"a\"; source = \"b\"; total_bytes = \"x\";",
         "total_bytes is missing", ME_ERR_CONFIG},
        {"card = \"a\"; source = \"b\"; total_bytes = -1;", "out of range",
         ME_ERR_CONFIG},
        {"card = \"\"; source = \"b\"; total_bytes = 1;",
         "card must be printable text", ME_ERR_CONFIG},
        {"card = \"a\"; source = \"b\"; total_bytes = 8589934592L; "
         "multiprocessors = 0;",
         "multiprocessors = 0 is out of range: must be 1 to 65536",
         ME_ERR_CONFIG},
        {"card = \"a\"; source = \"b\"; totalbytes = 1;",
         "totalbytes is no value", ME_ERR_CONFIG},
        {"card = \"a\"; source = \"b\"; nccl = { channels = 1; };",
         "nccl.channels is no value", ME_ERR_CONFIG},
        {"card = \"a\"; source = \"b\"; like = \"no-such-card\";",
         "cannot open", ME_ERR_IO},
        {"@include \".\"\n", "the file of a card stands for itself",
         ME_ERR_CONFIG},
        {"c = \"x\" 3 \"y\";", "must follow a '='", ME_ERR_SYNTAX},
        {"card = 99999999999999999999;", "more than 64 bits", ME_ERR_SYNTAX},
        {"card = \"a\"; source = \"b\"; not_measured = \"context_kib\";",
         "total_bytes is missing", ME_ERR_CONFIG},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static const char path[] = "test_device_memory.cfg";
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        (void)fputs(cases[i].text, file);
        (void)fclose(file);
        me_diag diag = {0};
        me_device_card card = {.total_bytes = 7};
        assert_int_equal(me_device_card_load(path, &diag, &card),
                         cases[i].status);
        assert_non_null(strstr(diag.text, cases[i].says));
        assert_int_equal(card.total_bytes, 7);
        (void)remove(path);
    }
    me_device_card card;
    assert_int_equal(me_device_card_load("no such file", NULL, &card),
                     ME_ERR_IO);
}

static me_device_card load_text(const char *text)
{
    static const char path[] = "test_card_rule.cfg";
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs(text, file);
    (void)fclose(file);
    me_diag diag = {0};
    me_device_card card = {0};
    const me_status status = me_device_card_load(path, &diag, &card);
    (void)remove(path);
    assert_string_equal(diag.text, "");
    assert_int_equal(status, ME_OK);
    return card;
}

static void assert_not_measured(const me_device_card *card, const char *names)
{
    me_str text = {0};
    (void)me_device_card_not_measured(card, &text);
    assert_string_equal(me_str_text(&text), names);
    me_str_fini(&text);
}

/* Files that were written before there were these values. */
static void test_card__te_workspace_follows_pytorchs(void **state)
{
    (void)state;
    static const char rest[] =
        "card = \"c\"; source = \"s\"; total_bytes = 17179869184; "
        "multiprocessors = 108; threads_per_multiprocessor = 2048; "
        "l2_cache_kib = 40960; context_kib = 1; first_kernel = 1; "
        "small_modules = 1; cublas_handle = 1; cudnn_handle = 1; "
        "nccl = { first_communicator = 1; first_collective = 1; "
        "first_broadcast = 1; first_send_recv = 1; bookkeeping = 1; "
        "granularity = 2; allocations_per_channel = 3; fixed_allocations = 2; "
        "channels_size1 = 64; coll_channels = 24; p2p_channels_per_peer = 32; "
        "has_peer_access = 1; reads_from_peer = 0; nvls_channels = 0; "
        "nvls_min_kib = 0; chunk_kib = 512; nodes_channels = 16; "
        "nodes_p2p_channels_per_peer = 2; };";

    static const struct {
        const char *head;
        uint64_t capability;
        uint64_t bytes;
        const char *not_measured;
    } cases[] = {
        {"cublas_workspace_kib = 32768;", 90, 33555456,
         "compute_capability, te_workspace_kib"},
        {"cublas_workspace_kib = 8320;", 80, 4194304,
         "compute_capability, te_workspace_kib"},
        {"cublas_workspace_kib = 8320; te_workspace_kib = 32769; "
         "compute_capability = 100;",
         100, 33555456, ""},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[2048];
        (void)snprintf(text, sizeof text, "%s %s", cases[i].head, rest);
        const me_device_card card = load_text(text);
        assert_int_equal(card.te_workspace_bytes, cases[i].bytes);
        assert_int_equal(card.compute_capability, cases[i].capability);
        assert_not_measured(&card, cases[i].not_measured);
    }
}

/* What a file gives itself goes before the card that stands in. */
static void test_card__te_workspace_is_not_the_stand_ins(void **state)
{
    (void)state;
    static const char head[] = "card = \"c\"; source = \"s\"; like = \"";
    char text[2048];
    (void)snprintf(text, sizeof text, "%s%s\";", head,
                   ME_CARDS_FOLDER "/h200-141gb");
    assert_int_equal(load_text(text).te_workspace_bytes, 33555456);
    (void)snprintf(text, sizeof text, "%s%s\"; cublas_workspace_kib = 8320;",
                   head, ME_CARDS_FOLDER "/h200-141gb");
    assert_int_equal(load_text(text).te_workspace_bytes, 4194304);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_device__one_gpu_job),
        cmocka_unit_test(test_device__four_gpu_pipeline_job),
        cmocka_unit_test(test_device__steps),
        cmocka_unit_test(test_device__refuses_too_many_peers),
        cmocka_unit_test(test_card__refuses),
        cmocka_unit_test(test_card__te_workspace_follows_pytorchs),
        cmocka_unit_test(test_card__te_workspace_is_not_the_stand_ins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

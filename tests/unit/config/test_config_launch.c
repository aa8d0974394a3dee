/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "job.h"
#include "launch_words.h"

#include <stdio.h>
#include <stdlib.h>

static const struct {
    const char *command;
    me_status status;
    const char *part;
} wrong_commands[] = {
    {"", ME_ERR_SYNTAX, "without a script"},
    {"torchrun --nproc-per-node 8", ME_ERR_SYNTAX, "without a script"},
    {"torchrun --nproc-per-node", ME_ERR_SYNTAX, "has no value"},
    {"srun -n 8 --test-only python pretrain_gpt.py", ME_ERR_CONFIG,
     "--test-only: nothing is started then"},
    {"srun -V python pretrain_gpt.py", ME_ERR_CONFIG,
     "version: nothing is started then"},
    {"torchrun --help pretrain_gpt.py", ME_ERR_CONFIG,
     "--help: nothing is started then"},
    {"python -V pretrain_gpt.py", ME_ERR_CONFIG, "-V: nothing is started then"},
    {"CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc-per-node 4 pretrain_gpt.py",
     ME_ERR_CONFIG,
     "torchrun starts 4 ranks a node, and CUDA_VISIBLE_DEVICES lists 2 cards"},
    {"torchrun --nnodes 16777216 --nproc-per-node 8 pretrain_gpt.py",
     ME_ERR_CONFIG, "parallel.world_size = 134217728"},
    {"torchrun --new-option 3 pretrain_gpt.py", ME_ERR_CONFIG,
     "does not know --new-option of torchrun"},
    {"torchrun --foo=3 pretrain_gpt.py", ME_ERR_CONFIG,
     "--foo=3 is no option of torchrun"},
    {"torchrun --n=4 pretrain_gpt.py", ME_ERR_CONFIG,
     "--n=4 is short for several options of torchrun"},
    {"deepspeed --num 4 pretrain_gpt.py", ME_ERR_CONFIG,
     "--num is short for several options of deepspeed"},
    {"mpirun --host a:auto,b python pretrain_gpt.py", ME_ERR_CONFIG,
     "mpirun --host a:auto,b: memest cannot tell how many ranks"},
    {"mpirun --map-by ppr:2:socket -H a,b python pretrain_gpt.py",
     ME_ERR_CONFIG, "mpirun --map-by ppr:2:socket: memest cannot tell"},
    {"deepspeed --include a:0 --exclude b pretrain_gpt.py", ME_ERR_CONFIG,
     "--include a:0 and --exclude b: one excludes the other"},
    {"deepspeed --include a --num_gpus 2 pretrain_gpt.py", ME_ERR_CONFIG,
     "deepspeed --include a: not beside --num_nodes or --num_gpus"},
    {"deepspeed --include worker-0 pretrain_gpt.py", ME_ERR_CONFIG,
     "/job/hostfile is not here: say the slots of each host"},
    {"deepspeed --exclude localhost:9 pretrain_gpt.py", ME_ERR_CONFIG,
     "NAME:SLOT,SLOT of the 8 slots"},
    {"accelerate launch --num_processes 2 --num_machines 4 pretrain_gpt.py",
     ME_ERR_CONFIG, "2 processes on 4 machines are none on each"},
    {"srun --gpus-per-task=1 python pretrain_gpt.py", ME_ERR_CONFIG,
     "--gpus-per-task 1: Slurm refuses it without --gpus or -n"},
    {"srun --gpus=8 --tres-per-task=gres/gpu:3 python pretrain_gpt.py",
     ME_ERR_CONFIG, "beside a --gpus that is no multiple of it"},
    {"srun -N 2 --gpus=16 --gpus-per-task=1 python pretrain_gpt.py",
     ME_ERR_CONFIG, "Slurm refuses them beside 2 tasks: give -n 16"},
    {"srun -N 2 --ntasks-per-node=4 --gpus-per-node=8 --gpus-per-task=1 "
     "python pretrain_gpt.py",
     ME_ERR_CONFIG, "than --ntasks-per-node times it"},
    {"srun --multi-prog python pretrain_gpt.py", ME_ERR_CONFIG,
     "srun --multi-prog is not read"},
    {"mpirun --map-by ppr:2:nodes -H a,b python pretrain_gpt.py", ME_ERR_CONFIG,
     "mpirun --map-by ppr:2:nodes: memest cannot tell"},
    {"srun -n 8 --gres=gpu:a100:2 --gpus=h100:8 python pretrain_gpt.py",
     ME_ERR_CONFIG, "GPUs of two types, h100 being the last"},
    {"flux alloc -N 2 python pretrain_gpt.py", ME_ERR_CONFIG,
     "'flux alloc' is not read: give `flux run` and what it starts"},
    {"nemo llm export", ME_ERR_UNSUPPORTED,
     "of its commands `nemo llm pretrain` and `nemo llm finetune` are"},
    {"nemo llm pretrain --factory llama3_8b data.seq_length=8192 "
     "trainer.strategy.tensor_model_parallel_size=1",
     ME_ERR_CONFIG,
     "nemo llm llama3_8b: the recipe is code that is not here: give "
     "trainer.strategy.pipeline_model_parallel_size, "
     "trainer.strategy.context_parallel_size, data.micro_batch_size, "
     "data.global_batch_size, or --model the YAML that it writes"},
    {"nemo llm pretrain", ME_ERR_CONFIG, "names no recipe: give --factory"},
    {"nemo llm pretrain --factory llama3_8b(a=1)", ME_ERR_CONFIG,
     "of a recipe's own arguments num_nodes"},
    {"nemo llm pretrain --factory", ME_ERR_CONFIG, "--factory: has no value"},
    {"nemo llm pretrain --other x", ME_ERR_CONFIG,
     "--other: is no option of it that memest knows"},
    {"nemo llm pretrain x", ME_ERR_SYNTAX, "'x' is no setting, such as"},
    {"torchrun run_recipe.py --recipe llama3_8b_pretrain_config -tp 2 -pp 1 "
     "-cp 1 -mb 1 -gb 8 -sl 64",
     ME_ERR_CONFIG, "give model.sequence_parallel, or --model"},
    {"torchrun run_recipe.py --model qwen3_next_80b -tp 1 -pp 1 -cp 1 -mb 1 "
     "-gb 8 -sl 64",
     ME_ERR_UNSUPPORTED, "its model has layers of gated delta nets, which"},
    {"torchrun run_recipe.py --model nobody_1b -tp 1 -pp 1 -cp 1 -mb 1 -gb 8 "
     "-sl 64",
     ME_ERR_CONFIG, "of this recipe's model nothing is known by its name"},
    {"python pretrain_recipe.py", ME_ERR_UNSUPPORTED,
     "of a job that Python code sets up (NeMo, Megatron-Bridge) give --model "
     "the YAML that it writes"},
    {"flux", ME_ERR_CONFIG, "'flux ' is not read"},
    {"bash -c x", ME_ERR_CONFIG, "'bash' is not read"},
    {"horovodrun pretrain_gpt.py", ME_ERR_UNSUPPORTED,
     "'horovodrun' is not read: Horovod's all-reduce is not modelled"},
    {"axolotl train x.yml", ME_ERR_UNSUPPORTED,
     "'axolotl' is not read: axolotl trains with Hugging Face's Trainer"},
    {"composer train.py", ME_ERR_UNSUPPORTED, "Composer's trainer"},
    {"deepspeed --numgpus 8 pretrain_gpt.py", ME_ERR_CONFIG,
     "does not know --numgpus of deepspeed"},
    {"srun -n 2 - python pretrain_gpt.py", ME_ERR_CONFIG,
     "does not know - of srun"},
    {"python -c x", ME_ERR_CONFIG, "command in quotes"},
    {"torchrun pretrain_t5.py", ME_ERR_UNSUPPORTED,
     "'pretrain_t5.py' builds no GPT"},
    {"torchrun pretrain_hybrid.py --hybrid-layer-pattern M*",
     ME_ERR_UNSUPPORTED, "state-space layers (Mamba's)"},
    {"accelerate launch --machine_rank --main_process_port 29500 "
     "pretrain_gpt.py",
     ME_ERR_SYNTAX, "--machine_rank of launch has no value"},
    {"torchrun --nnodes --node_rank 0 pretrain_gpt.py", ME_ERR_SYNTAX,
     "--nnodes of torchrun has no value"},
    {"deepspeed --num_gpus 8 --master_addr --master_port 3 pretrain_gpt.py",
     ME_ERR_SYNTAX, "--master_addr of deepspeed has no value"},
    {"torchrun --node-rank -1x pretrain_gpt.py", ME_ERR_SYNTAX,
     "--node-rank of torchrun has no value"},
    {"srun -n 8 python wrap.py pretrain_gpt.py --num-layers 2 --hidden-size 64",
     ME_ERR_UNSUPPORTED, "'wrap.py' is not read, which has 'pretrain_gpt.py'"},
    {"srun -n 8 --multi-prog tasks.conf", ME_ERR_CONFIG,
     "srun --multi-prog is not read: give the command"},
    {"srun -n 8 ./nothere.sh --num-layers 4", ME_ERR_UNSUPPORTED,
     "knows, and no file here: begin at"},
    {"fish pretrain_gpt.py", ME_ERR_UNSUPPORTED,
     "'fish' is no program that memest knows"},
    {"torchrun pretrain_t5.py --num-layers 2 --hidden-size 64",
     ME_ERR_UNSUPPORTED, "'pretrain_t5.py' builds no GPT"},
    {"torchrun pretrain_mamba.py --num-layers 2 --hidden-size 64",
     ME_ERR_UNSUPPORTED,
     "state-space layers (Mamba's), which are not modelled"},
    {"torchrun tools/run_text_generation_server.py --num-layers 2 "
     "--hidden-size 64",
     ME_ERR_UNSUPPORTED, "'run_text_generation_server.py' builds no GPT"},
    {"torchrun -m torchtitan.train --module llama3 --config llama3_8b "
     "--training.local_batch_size 2",
     ME_ERR_UNSUPPORTED,
     "'--module' picks a configuration that torchtitan has as a program "
     "since 2026"},
    {"torchrun -m torchtitan.train --config llama3_8b", ME_ERR_UNSUPPORTED,
     "'--config' picks a configuration"},
    {"torchrun -m torchtitan.train --modules llama3", ME_ERR_SYNTAX,
     "'--modules' is no flag of torchtitan's"},
    {"torchrun train.py --hidden-size 64", ME_ERR_UNSUPPORTED,
     "no flag of torchtitan's"},
    {"torchrun pretrain_qwen.py --micro-batch-size 1", ME_ERR_UNSUPPORTED,
     "'pretrain_qwen.py' is not modelled"},
    {"mpirun -genv=A=1 -n 2 python pretrain_gpt.py", ME_ERR_CONFIG,
     "does not know -genv=A=1 of mpirun"},
    {"python pretrain_gpt.py --hiden-size 4", ME_ERR_CONFIG,
     "--hiden-size: Megatron-LM core_v0.19.0 has no such flag (did you mean "
     "--hidden-size?)"},
    {"python pretrain_gpt.py --quite-another", ME_ERR_CONFIG,
     "has no such flag; --unknown warn"},
    {"python pretrain_gpt.py 4", ME_ERR_SYNTAX, "'4' belongs to no flag"},
};

static void test_launch__commands_that_are_wrong(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong_commands); i++) {
        me_diag diag = {0};
        me_config *config = me_config_create();
        const me_status status =
            read_command(config, wrong_commands[i].command, &diag);
        if (strstr(diag.text, wrong_commands[i].part) == NULL) {
            fail_msg("%s: %s", wrong_commands[i].command, diag.text);
        }
        assert_int_equal(status, wrong_commands[i].status);
        me_config_destroy(config);
    }
}

/* Scripts of forks are called as they like, but have Megatron-LM's flags. What a
 * name tells is assumed; what it does not is not modelled. */
static void test_launch__scripts_with_names_of_their_own(void **state)
{
    (void)state;

    static const struct {
        const char *script;
        int not_modelled;
    } cases[] = {
        {"pretrain_qwen.py", 0}, {"a/b/pretrain_mcore_llama.py", 0},
        {"train.py", 0},         {"finetune_mistral_7b.py", 0},
        {"start.py", 1},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char command[256];
        (void)snprintf(command, sizeof command,
                       "torchrun --nproc-per-node 2 %s --num-layers 2 "
                       "--hidden-size 64",
                       cases[i].script);
        me_config *config = me_config_create();
        assert_int_equal(read_command(config, command, NULL), ME_OK);
        assert_int_equal(config->model.num_layers, 2);
        assert_int_equal(config->not_modelled.count, cases[i].not_modelled);
        assert_int_equal(config->assumptions.count + cases[i].not_modelled, 1);
        me_config_destroy(config);
    }
}

static void test_launch__environment_is_kept(void **state)
{
    (void)state;
    me_config *config = me_config_create();
    assert_int_equal(
        read_command(config,
                     "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True "
                     "CUDA_DEVICE_MAX_CONNECTIONS=1 srun "
                     "--export=ALL,NCCL_A=1,NCCL_B=x=y -n 2 python "
                     "pretrain_gpt.py",
                     NULL),
        ME_OK);
    static const char *const expect[][2] = {
        {"PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"},
        {"CUDA_DEVICE_MAX_CONNECTIONS", "1"},
        {"NCCL_A", "1"},
        {"NCCL_B", "x=y"},
    };
    assert_int_equal(config->environment.count, COUNT_OF(expect));
    for (size_t i = 0; i < COUNT_OF(expect); i++) {
        assert_string_equal(config->environment.flags[i].flag, expect[i][0]);
        assert_string_equal(config->environment.flags[i].note, expect[i][1]);
    }
    assert_string_equal(config->device.alloc_conf, "expandable_segments:True");
    assert_string_equal(me_config_variable(config, "NCCL_A"), "1");
    assert_null(me_config_variable(config, "NCCL_C"));
    me_config_destroy(config);
}

/* srun's --export picks; mpirun has a parameter that sets. */
static void test_launch__environment_that_a_launcher_changes(void **state)
{
    (void)state;

    static const struct {
        const char *command;
        const char *a; /**< NULL: it is lost */
    } cases[] = {
        {"NCCL_A=1 srun -n 2 python pretrain_gpt.py", "1"},
        {"NCCL_A=1 srun --export=ALL -n 2 python pretrain_gpt.py", "1"},
        {"NCCL_A=1 srun -n 2 --export none python pretrain_gpt.py", NULL},
        {"NCCL_A=1 env NCCL_B=1 srun -n2 --export=NIL python pretrain_gpt.py",
         NULL},
        {"NCCL_A=1 srun --export=NCCL_AB,NCCL_A -n 2 python pretrain_gpt.py",
         "1"},
        {"NCCL_A=1 srun --export=NCCL_AB -n 2 python pretrain_gpt.py", NULL},
        {"NCCL_A=1 srun --export=NCCL_A=2 -n 2 python pretrain_gpt.py", "2"},
        {"NCCL_A=1 SLURM_EXPORT_ENV=NONE srun -n 2 python pretrain_gpt.py",
         NULL},
        {"NCCL_A=1 SLURM_EXPORT_ENV=NONE srun --export=ALL -n 2 python "
         "pretrain_gpt.py",
         "1"},
        {"NCCL_A=1 SLURM_EXPORT_ENV=NONE SRUN_EXPORT_ENV=ALL srun -n 2 python "
         "pretrain_gpt.py",
         "1"},
        {"srun -n 2 --export=NONE env NCCL_A=1 python pretrain_gpt.py", "1"},
        {"NCCL_A=1 SLURM_EXPORT_ENV=NONE python pretrain_gpt.py", "1"},
        {"mpirun -n 2 --mca mca_base_env_list NCCL_B=2;NCCL_A=1 python "
         "pretrain_gpt.py",
         "1"},
        {"mpirun -n 2 --mca btl NCCL_A=1 python pretrain_gpt.py", NULL},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        me_config *config = me_config_create();
        assert_int_equal(read_command(config, cases[i].command, NULL), ME_OK);
        const char *a = me_config_variable(config, "NCCL_A");
        if ((a == NULL) != (cases[i].a == NULL) ||
            (a != NULL && strcmp(a, cases[i].a) != 0)) {
            fail_msg("%s: NCCL_A is %s", cases[i].command,
                     a == NULL ? "lost" : a);
        }
        me_config_destroy(config);
    }
}

/* PyTorch looks at the older name only where the newer one is not set. */
static void test_launch__newer_allocator_variable_wins(void **state)
{
    (void)state;
    static const char *const commands[] = {
        "PYTORCH_ALLOC_CONF=max_split_size_mb:64 "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True "
        "python pretrain_gpt.py",
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True "
        "PYTORCH_ALLOC_CONF=max_split_size_mb:64 "
        "python pretrain_gpt.py",
    };
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        me_config *config = me_config_create();
        assert_int_equal(read_command(config, commands[i], NULL), ME_OK);
        assert_string_equal(config->device.alloc_conf, "max_split_size_mb:64");
        me_config_destroy(config);
    }
}

static void test_launch__innermost_launcher_fills_a_node(void **state)
{
    (void)state;
    me_config *config = me_config_create();
    assert_int_equal(read_command(config,
                                  "srun -N 2 --ntasks-per-node 1 torchrun "
                                  "--nnodes 2 --nproc-per-node 4 "
                                  "pretrain_gpt.py",
                                  NULL),
                     ME_OK);
    assert_int_equal(config->device.gpus_per_node, 4);
    me_config_destroy(config);
}

static void test_launch__several_jobs_are_mentioned(void **state)
{
    (void)state;
    me_config *config = me_config_create();
    assert_int_equal(read_command(config,
                                  "srun -N 4 torchrun --nproc-per-node 8 "
                                  "pretrain_gpt.py --transformer-impl local",
                                  NULL),
                     ME_OK);
    assert_int_equal(config->parallel.world_size, 8);
    assert_int_equal(config->assumptions.count, 1);
    assert_non_null(
        strstr(config->assumptions.flags[0].note, "4 torchrun processes"));
    me_config_destroy(config);
}

static void test_launch__survives_without_memory(void **state)
{
    (void)state;
    bool is_done = false;
    for (uint64_t nth = 1; nth < 500 && !is_done; nth++) {
        me_config *config = me_config_create();
        assert_non_null(config);
        me_config_take_unknown(config);
        me_alloc_fail_at(nth);
        const me_status status = read_command(
            config,
            "A=B torchrun --nproc-per-node=2 pretrain_gpt.py --num-layers=4 "
            "--context-parallel-size 2 --unknown --position-embedding-type "
            "yarn --recompute-activations --lr 1",
            NULL);
        me_alloc_fail_at(0);
        is_done = status == ME_OK;
        assert_true(is_done || status == ME_ERR_NOMEM);
        me_config_destroy(config);
    }
    assert_true(is_done);
}

/* Names of flags and values of variables go into reports as they are. */
static void test_launch__foreign_text_is_cleaned(void **state)
{
    (void)state;
    me_config *config = me_config_create();
    me_config_take_unknown(config);
    assert_int_equal(read_command(config,
                                  "A=x\xff pretrain_gpt.py --a\nb --c\xff=1 "
                                  "--c\xfe",
                                  NULL),
                     ME_OK);
    assert_int_equal(config->environment.count, 1);
    assert_string_equal(config->environment.flags[0].note, "x?");
    assert_true(list_has(&config->not_modelled, "--a b"));
    assert_true(list_has(&config->not_modelled, "--c?"));
    me_config_destroy(config);
}

static void expect_same_list(const me_flag_list *a, const me_flag_list *b)
{
    assert_int_equal(a->count, b->count);
    for (int32_t i = 0; i < a->count; i++) {
        assert_string_equal(a->flags[i].flag, b->flags[i].flag);
        assert_true((a->flags[i].note == NULL) == (b->flags[i].note == NULL));
        if (a->flags[i].note != NULL) {
            assert_string_equal(a->flags[i].note, b->flags[i].note);
        }
    }
}

/* What is refused of a launch is refused of its dump, and variables hold. */
static void test_launch__what_it_said_lives_on(void **state)
{
    (void)state;
    static const char *const words[] = {"A=x\"y\\z",       "NCCL_NVLS_ENABLE=2",
                                        "pretrain_gpt.py", JOB_FLAGS,
                                        "--fp4-format",    "e2m1",
                                        "--own-flag"};
    me_diag diag = {.status = ME_OK};
    me_diag again = {.status = ME_OK};
    me_config *config = me_config_create();
    me_config_take_unknown(config);
    assert_int_equal(
        me_config_read_launch(config, (int)(sizeof words / sizeof words[0]),
                              words, &diag),
        ME_OK);
    assert_int_equal(me_config_finish(config, 1, &diag), ME_OK);
    me_str text = {0};
    me_config_dump(config, &text);
    me_config *back = job_from_text(me_str_text(&text));
    assert_int_equal(me_config_finish(back, 1, &diag), ME_OK);
    assert_int_equal(me_config_check_strict(config, &diag), ME_ERR_CONFIG);
    assert_int_equal(me_config_check_strict(back, &again), ME_ERR_CONFIG);
    assert_string_equal(diag.text, again.text);
    assert_non_null(strstr(diag.text, "--fp4-format, --own-flag"));
    expect_same_list(&config->not_modelled, &back->not_modelled);
    expect_same_list(&config->environment, &back->environment);
    me_str second = {0};
    me_config_dump(back, &second);
    assert_string_equal(me_str_text(&text), me_str_text(&second));
    me_str_fini(&second);
    me_str_fini(&text);
    me_config_destroy(back);
    me_config_destroy(config);
}

int main(void)
{
    // accelerate takes a file of it
    assert_int_equal(setenv("HF_HOME", "/nonexistent", 1), 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_launch__environment_that_a_launcher_changes),
        cmocka_unit_test(test_launch__newer_allocator_variable_wins),
        cmocka_unit_test(test_launch__innermost_launcher_fills_a_node),
        cmocka_unit_test(test_launch__commands_that_are_wrong),
        cmocka_unit_test(test_launch__scripts_with_names_of_their_own),
        cmocka_unit_test(test_launch__environment_is_kept),
        cmocka_unit_test(test_launch__several_jobs_are_mentioned),
        cmocka_unit_test(test_launch__foreign_text_is_cleaned),
        cmocka_unit_test(test_launch__survives_without_memory),
        cmocka_unit_test(test_launch__what_it_said_lives_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

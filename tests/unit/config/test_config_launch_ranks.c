/* SPDX-License-Identifier: BSD-3-Clause */
/* How many ranks a launch command starts. */
#include "config/config_private.h"
#include "job.h"
#include "launch_words.h"

#include <stdlib.h>

static const struct {
    const char *command;
    int32_t world_size;
} world_sizes[] = {
    {"torchrun --nproc-per-node 8 --nnodes 2 pretrain_gpt.py", 16},
    {"torchrun --nproc_per_node=8 --nnodes=2 a/b/pretrain_gpt.py", 16},
    {"torchrun --nproc-per-n=4 --nnode 2 pretrain_gpt.py", 8},
    {"deepspeed --num_gpu=4 pretrain_gpt.py", 4},
    {"accelerate launch --num_process=4 pretrain_gpt.py", 4},
    {"torchrun --standalone --nproc-per-node 4 pretrain_gpt.py", 4},
    {"torchrun pretrain_gpt.py", 1},
    {"/usr/bin/python3.12 -u -m torch.distributed.run --nproc-per-node 4 "
     "pretrain_gpt.py",
     4},
    {"python -m torch.distributed.launch --nproc_per_node=2 --use_env "
     "--master_port 29500 pretrain_gpt.py",
     2},
    {"python pretrain_gpt.py", 0},
    {"python -m pretrain_gpt", 0},
    {"torchrun --nproc-per-node 2 -m my.pretrain_gpt", 2},
    {"deepspeed --num_gpus 4 --num_nodes 2 pretrain_gpt.py", 8},
    {"deepspeed --include localhost:0,1 pretrain_gpt.py", 2},
    {"deepspeed --include localhost pretrain_gpt.py", 8},
    {"deepspeed --exclude localhost:0,1,1 pretrain_gpt.py", 6},
    {"CUDA_VISIBLE_DEVICES=0,1,2 deepspeed pretrain_gpt.py", 3},
    {"CUDA_VISIBLE_DEVICES=0,1,-1,2 torchrun --nproc-per-node gpu pretrain_gpt.py",
     2},
    {"CUDA_VISIBLE_DEVICES=1,11,111 torchrun --nproc-per-node gpu pretrain_gpt.py",
     3},
    {"CUDA_VISIBLE_DEVICES=GPU-a,GPU-b,2 torchrun --nproc-per-node gpu pretrain_gpt.py",
     2},
    {"torchrun --nnodes 2:2 --nproc-per-node 4 pretrain_gpt.py", 8},
    {"PET_NNODES=2:2 torchrun --nproc-per-node 4 pretrain_gpt.py", 8},
    {"mpiexec.hydra -perhost 4 -hosts a,b python pretrain_gpt.py", 8},
    {"CUDA_VISIBLE_DEVICES=0,1,2 deepspeed --num_gpus 2 pretrain_gpt.py", 2},
    {"CUDA_VISIBLE_DEVICES=0,1,2 accelerate launch pretrain_gpt.py", 3},
    {"CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc-per-node gpu pretrain_gpt.py",
     2},
    {"deepspeed --num_nodes 2 --num_gpus 8 --hostfile no/where "
     "pretrain_gpt.py",
     16},
    {"deepspeed -H no/where --include a:0,1@b:0 pretrain_gpt.py", 3},
    {"accelerate launch --config_file no/where --num_processes 16 "
     "pretrain_gpt.py",
     16},
    {"accelerate launch --num_processes 7 --num_machines 2 pretrain_gpt.py", 6},
    {"PET_NNODES=2 PET_NPROC_PER_NODE=4 torchrun pretrain_gpt.py", 8},
    {"PET_NNODES=2 PET_NPROC_PER_NODE=4 torchrun --nnodes 1 pretrain_gpt.py",
     4},
    {"PET_NNODES=2 deepspeed --num_gpus 4 pretrain_gpt.py", 4},
    {"srun -w node[1-3],x --ntasks-per-node 4 python pretrain_gpt.py", 16},
    {"SLURM_NNODES=2 srun -w node1 python pretrain_gpt.py", 2},
    {"SLURM_NNODES=2 SLURM_NTASKS=16 srun --ntasks-per-node=4 python "
     "pretrain_gpt.py",
     16},
    {"SLURM_NNODES=2 SLURM_NTASKS=2 srun -N 2 --ntasks-per-node=4 python "
     "pretrain_gpt.py",
     8},
    {"SLURM_NNODES=2 SLURM_NTASKS=16 SLURM_NTASKS_PER_NODE=8 srun -N 1 python "
     "pretrain_gpt.py",
     8},
    {"PBS_NUM_NODES=2 PBS_NUM_PPN=4 mpirun python pretrain_gpt.py", 8},
    {"LSB_DJOB_NUMPROC=12 mpirun python pretrain_gpt.py", 12},
    {"mpirun -n 4 --hostfile no/where --rankfile r python pretrain_gpt.py", 4},
    {"accelerate launch --num_processes 6 --num_machines 3 "
     "pretrain_gpt.py",
     6},
    {"accelerate launch --multi_gpu pretrain_gpt.py", 8},
    {"srun --gpus-per-node h100:4 accelerate launch pretrain_gpt.py", 4},
    {"srun -n 4 ./launch.sh pretrain_gpt.py", 4},
    {"python3 elastic_launcher.py --nproc-per-node 8 --nnodes=2 --mine 3 -- "
     "python3 pretrain_gpt.py",
     16},
    {"WORLD_SIZE=8 python pretrain_gpt.py", 8},
    {"srun -n 16 python pretrain_gpt.py", 16},
    {"srun -n16 python pretrain_gpt.py", 16},
    {"srun --ntasks=16 -l --mpi=pmix python pretrain_gpt.py", 16},
    {"srun -N 2 --ntasks-per-node=8 python pretrain_gpt.py", 16},
    {"srun -N 2 --ntasks-per-node 1 --gpus-per-node 8 torchrun "
     "--nnodes 2 --nproc-per-node 8 pretrain_gpt.py",
     16},
    {"SLURM_NTASKS_PER_NODE=8 srun -N 2 python pretrain_gpt.py", 16},
    {"SLURM_NNODES=2 srun --ntasks-per-node 8 python pretrain_gpt.py", 16},
    {"SLURM_NTASKS=16 srun python pretrain_gpt.py", 16},
    {"SLURM_NTASKS=4 SLURM_NPROCS=8 srun python pretrain_gpt.py", 4},
    {"SLURM_NPROCS=8 SLURM_NTASKS=4 srun python pretrain_gpt.py", 4},
    {"SLURM_NPROCS=8 srun python pretrain_gpt.py", 8},
    {"SLURM_NTASKS=16 srun -n 8 python pretrain_gpt.py", 8},
    {"mpirun -np 8 python pretrain_gpt.py", 8},
    {"mpirun --npernode 4 -H a,b python pretrain_gpt.py", 8},
    {"mpirun -N 4 --host a:4,b:4 python pretrain_gpt.py", 8},
    {"mpirun --host a:4,b:4 python pretrain_gpt.py", 8},
    {"mpirun --host a:3 --host b,b,c:2 python pretrain_gpt.py", 7},
    {"mpirun --host a,a,a python pretrain_gpt.py", 3},
    {"mpirun -N 2 --host a,a,b python pretrain_gpt.py", 4},
    {"mpirun --map-by ppr:4:node -H a,b python pretrain_gpt.py", 8},
    {"mpirun --map-by ppr:4:node:pe=2 -H a,b python pretrain_gpt.py", 8},
    {"mpirun --map-by ppr:4:node -H a10,a1,a python pretrain_gpt.py", 12},
    {"mpirun --map-by slot -H a,b python pretrain_gpt.py", 2},
    {"mpirun --pernode -H a:8,b:8 python pretrain_gpt.py", 2},
    {"mpirun -n 3 --npernode 4 -H a:4 python pretrain_gpt.py", 3},
    {"mpirun -n 3 --map-by ppr:2:socket python pretrain_gpt.py", 3},
    {"mpirun --npernode 4 python pretrain_gpt.py", 4},
    {"SLURM_NNODES=2 mpirun --npernode 4 python pretrain_gpt.py", 8},
    {"srun -N 2 --gpus-per-node=4 --ntasks-per-gpu=1 python "
     "pretrain_gpt.py",
     8},
    {"srun --gpus=8 --ntasks-per-gpu=1 python pretrain_gpt.py", 8},
    {"srun -G h100:8 --ntasks-per-gpu=2 python pretrain_gpt.py", 16},
    {"srun --gres=gpu:4 --ntasks-per-gpu=1 python pretrain_gpt.py", 4},
    {"srun -n 2 --gpus=8 --ntasks-per-gpu=1 python pretrain_gpt.py", 8},
    {"srun -n 8 --gpus-per-node=4 --ntasks-per-gpu=1 python pretrain_gpt.py",
     8},
    {"srun --ntasks-per-gpu=1 -N 2 python pretrain_gpt.py", 2},
    {"srun -n 16 --gpus=16 --gpus-per-task=1 python pretrain_gpt.py", 16},
    {"srun -N 2 --gpus=16 --gpus-per-task=8 python pretrain_gpt.py", 2},
    {"srun --gpus=16 --gpus-per-node=8 python pretrain_gpt.py", 2},
    {"srun -N 2 --ntasks-per-node=8 --gpus=16 --gpus-per-task=1 python "
     "pretrain_gpt.py",
     16},
    {"srun -n 4 --tres-per-task=cpu=4,gres/gpu=1 python pretrain_gpt.py", 4},
    {"srun --gpus=16 torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py",
     16},
    {"SLURM_NNODES=2 srun --gpus-per-task=1 python pretrain_gpt.py", 2},
    {"deepspeed --module --num_gpus 4 torchtitan.train", 4},
    {"deepspeed --num_gpus 4 --module torchtitan.train", 4},
    {"accelerate launch -m --num_processes 4 torchtitan.train", 4},
    {"jsrun -n 4 -a 2 python pretrain_gpt.py", 8},
    {"jsrun -n4 -g1 -EA=B --smpiargs=-gpu python pretrain_gpt.py", 4},
    {"jsrun -n 4 -a 2 -p 6 python pretrain_gpt.py", 6},
    {"jsrun -n 2 -r 1 torchrun --nnodes 2 --nproc-per-node 6 pretrain_gpt.py",
     12},
    {"flux run -n 8 python pretrain_gpt.py", 8},
    {"flux submit -N2 -n16 -g1 -o x=y --env=A=B --env=-C python "
     "pretrain_gpt.py",
     16},
    {"flux run -N 2 --tasks-per-node=4 --gpus-per-node 4 python "
     "pretrain_gpt.py",
     8},
    {"flux run -N 4 python pretrain_gpt.py", 4},
    {"flux mini run python pretrain_gpt.py", 1},
    {"aprun -n 8 -N 4 -d 8 -cc none -e A=B python pretrain_gpt.py", 8},
    {"aprun python pretrain_gpt.py", 1},
    {"blaunch -z a torchrun --nproc-per-node 4 pretrain_gpt.py", 4},
    {"ibrun -n 4 -o 2 python pretrain_gpt.py", 4},
    {"SLURM_NTASKS=8 ibrun python pretrain_gpt.py", 8},
    {"torchrun --nproc-per-node 2 -- pretrain_gpt.py", 2},
    {"ft_launcher --nnodes 2 --nproc-per-node=2 --ft-cfg-path c.yaml "
     "--ft-param-rank_section_timeouts=setup:600 --max-restarts 3 "
     "pretrain_gpt.py",
     4},
    {"srun -n 4 -- python pretrain_gpt.py", 4},
    {"mpiexec -n 8 --bind-to none -x NCCL_DEBUG=INFO --mca btl self "
     "python pretrain_gpt.py",
     8},
    {"nohup env -u FOO A=B numactl --cpunodebind=0 torchrun "
     "--nproc-per-node=2 pretrain_gpt.py",
     2},
    {"--bf16", 0},
    {"mpirun -n 4 python pretrain_gpt.py --bf16 : -np 4 python pretrain_gpt.py "
     "--bf16",
     8},
    {"mpiexec --mca a b -n 1 -- python pretrain_gpt.py : -host c -n 2 -- "
     "python pretrain_gpt.py : -n=3 -- python pretrain_gpt.py",
     6},
};

/* Contexts of mpirun that make no job, and what is said of them. */
static const struct {
    const char *command;
    const char *said;
} contexts[] = {
    {"mpirun -n 4 python pretrain_gpt.py --bf16 : -n 4 python pretrain_gpt.py",
     "different words"},
    {"mpirun -n 4 python pretrain_gpt.py : -n 4 python other.py",
     "different words"},
    {"mpirun -n 4 python pretrain_gpt.py : python pretrain_gpt.py",
     "give each part"},
    {"mpirun -n 4 python pretrain_gpt.py :", "give each part"},
    {"mpirun -n 4 python pretrain_gpt.py : -n", "-n of mpirun beside ':'"},
    {"srun -n 4 python pretrain_gpt.py : -n 4 python pretrain_gpt.py",
     "starts several programs"},
};

/** Slots that hosts have not alike say nothing of a node. */
static void test_launch__uneven_hosts(void **state)
{
    (void)state;
    static const char *const commands[] = {
        "mpirun --host a:2,b:3 python pretrain_gpt.py",
        "mpirun --host a:2,b:2 python pretrain_gpt.py"};
    me_config *even = me_config_create();
    me_config *uneven = me_config_create();
    assert_int_equal(read_command(uneven, commands[0], NULL), ME_OK);
    assert_int_equal(read_command(even, commands[1], NULL), ME_OK);
    assert_false(me_config_is_set(uneven, "device.gpus_per_node"));
    assert_true(me_config_is_set(even, "device.gpus_per_node"));
    me_config_destroy(even);
    me_config_destroy(uneven);
}

static void test_launch__world_sizes(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(world_sizes); i++) {
        me_diag diag = {0};
        me_config *config = me_config_create();
        const me_status status =
            read_command(config, world_sizes[i].command, &diag);
        if (status != ME_OK) {
            fail_msg("%s: %s", world_sizes[i].command, diag.text);
        }
        assert_int_equal(config->parallel.world_size,
                         world_sizes[i].world_size);
        me_config_destroy(config);
    }
}

static void test_launch__contexts(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(contexts); i++) {
        me_diag diag = {0};
        me_config *config = me_config_create();
        assert_int_not_equal(read_command(config, contexts[i].command, &diag),
                             ME_OK);
        if (strstr(diag.text, contexts[i].said) == NULL) {
            fail_msg("%s: %s", contexts[i].command, diag.text);
        }
        me_config_destroy(config);
    }
}

/* What a later context sets is the job's as well. */
static void test_launch__variables_of_contexts(void **state)
{
    (void)state;
    me_config *config = me_config_create();
    assert_int_equal(
        read_command(config,
                     "mpirun -x CUDA_DEVICE_MAX_CONNECTIONS=1 -n 1 python "
                     "pretrain_gpt.py : -x "
                     "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True -n 1 "
                     "python pretrain_gpt.py",
                     NULL),
        ME_OK);
    assert_int_equal(config->parallel.world_size, 2);
    assert_string_equal(config->device.alloc_conf, "expandable_segments:True");
    me_config_destroy(config);
}

/** Of a script that no launcher starts; 0: nobody can tell. */
static const struct {
    const char *command;
    int32_t world_size;
    const char *said; /**< assumed, or why nobody can tell; NULL: not said */
} alone[] = {
    {"SLURM_STEP_NUM_TASKS=16 SLURM_STEP_NUM_NODES=2 python pretrain_gpt.py",
     16, "the world size is 16, SLURM_STEP_NUM_TASKS"},
    {"SLURM_STEP_NUM_TASKS=16 WORLD_SIZE=8 python pretrain_gpt.py", 8, NULL},
    {"SLURM_STEP_NUM_TASKS=16 torchrun --nproc-per-node 4 pretrain_gpt.py", 4,
     NULL},
    {"SLURM_STEP_NUM_TASKS=16 srun -n 4 python pretrain_gpt.py", 4, NULL},
    {"srun -n 4 ./bind.sh python pretrain_gpt.py", 4, "bind.sh, which is not"},
    {"torchrun --nproc-per-node 4 --no-python ./bind.sh python "
     "pretrain_gpt.py",
     4, "bind.sh, which is not"},
    {"SLURM_STEP_NUM_TASKS=abc python pretrain_gpt.py", 0,
     "SLURM_STEP_NUM_TASKS=abc: must be a whole number"},
    {"SLURM_NTASKS=4x srun python pretrain_gpt.py", 0,
     "SLURM_NTASKS=4x: must be a whole number"},
    {"PMI_SIZE=-1 python pretrain_gpt.py", 0, "PMI_SIZE=-1: must be"},
    {"SLURM_NTASKS=4x srun -n 2 python pretrain_gpt.py", 2, NULL},
    {"SLURM_NTASKS=4x WORLD_SIZE=2 python pretrain_gpt.py", 2, NULL},
    {"SLURM_NTASKS= torchrun --nproc-per-node 2 pretrain_gpt.py", 2, NULL},
    {"srun python pretrain_gpt.py", 1, "srun outside of a job starts one task"},
    {"srun -N 2 python pretrain_gpt.py", 2, "one task on each of 2 nodes"},
    {"SLURM_STEP_NUM_TASKS=1 SLURM_NNODES=1 python pretrain_gpt.py", 1,
     "the world size is 1"},
    {"SLURM_STEP_NUM_TASKS=1 SLURM_NNODES=2 python pretrain_gpt.py", 0,
     "Slurm's job has 2 tasks"},
    {"SLURM_NNODES=2 SLURM_NTASKS=16 python pretrain_gpt.py", 0,
     "Slurm's job has 16 tasks"},
    {"SLURM_NNODES=2 SLURM_NTASKS_PER_NODE=4 python pretrain_gpt.py", 0,
     "Slurm's job has 8 tasks"},
    {"SLURM_NTASKS=16 WORLD_SIZE=8 python pretrain_gpt.py", 8, NULL},
    {"SLURM_NTASKS=1 python pretrain_gpt.py", 1, "the world size is 1"},
    {"PBS_NP=16 python pretrain_gpt.py", 1, "the world size is 1"},
    {"OMPI_COMM_WORLD_SIZE=16 python pretrain_gpt.py", 16,
     "the world size is 16, OMPI_COMM_WORLD_SIZE"},
    {"PMI_SIZE=16 python pretrain_gpt.py", 16,
     "the world size is 16, PMI_SIZE"},
    {"PMI_SIZE=1 SLURM_STEP_NUM_TASKS=8 python pretrain_gpt.py", 8,
     "the world size is 8, SLURM_STEP_NUM_TASKS"},
    {"OMPI_COMM_WORLD_SIZE=2 mpirun -n 8 python pretrain_gpt.py", 8, NULL},
    {"WORLD_SIZE= python pretrain_gpt.py", 0, "WORLD_SIZE is empty"},
    {"WORLD_SIZE= torchrun --nproc-per-node 2 pretrain_gpt.py", 2, NULL},
};

static bool is_assumed(const me_config *config, const char *said)
{
    for (int32_t i = 0; i < config->assumptions.count; i++) {
        if (strstr(config->assumptions.flags[i].note, said) != NULL) {
            return true;
        }
    }
    return false;
}

static void expect_alone(const char *command, int32_t world_size,
                         const char *said)
{
    me_diag diag = {0};
    me_config *config = me_config_create();
    if (read_command(config, command, &diag) != ME_OK) {
        fail_msg("%s: %s", command, diag.text);
    }
    const me_status status = me_config_derive_world(config, 1, &diag);
    assert_int_equal(status, world_size == 0 ? ME_ERR_CONFIG : ME_OK);
    assert_int_equal(config->parallel.world_size, world_size);
    if (said != NULL && !is_assumed(config, said) &&
        strstr(diag.text, said) == NULL) {
        fail_msg("%s: not said: %s", command, said);
    }
    me_config_destroy(config);
}

static void test_launch__alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(alone); i++) {
        expect_alone(alone[i].command, alone[i].world_size, alone[i].said);
    }
}

/** Who gives the number goes before what memest runs in, also of a copy. */
static void test_launch__alone_gives_way(void **state)
{
    (void)state;
    me_diag diag = {0};
    me_config *config = me_config_create();
    assert_int_equal(
        read_command(config, "SLURM_STEP_NUM_TASKS=16 python pretrain_gpt.py",
                     &diag),
        ME_OK);
    me_config *copy = me_config_clone(config);
    assert_non_null(copy);
    assert_int_equal(me_config_set(config, "parallel.world_size", "4", &diag),
                     ME_OK);
    assert_int_equal(me_config_derive_world(config, 1, &diag), ME_OK);
    assert_int_equal(me_config_derive_world(copy, 1, &diag), ME_OK);
    assert_int_equal(config->parallel.world_size, 4);
    assert_int_equal(copy->parallel.world_size, 16);
    assert_false(is_assumed(config, "SLURM_STEP_NUM_TASKS"));
    me_config_destroy(copy);
    me_config_destroy(config);
}

/* Options of srun before variables; of a GPU or a CPU as often as a node has
 * them. */
static void test_launch__memory_of_a_node(void **state)
{
    static const struct {
        const char *command;
        uint64_t gib;
    } cases[] = {
        {"srun -n 8 --mem=1T python pretrain_gpt.py", 1024},
        {"srun -n 8 --mem 500G python pretrain_gpt.py", 500},
        {"srun -n 8 --mem=0 python pretrain_gpt.py", 0},
        {"srun -n 8 --gres=gpu:h100:8 --mem-per-gpu=64G python "
         "pretrain_gpt.py",
         512},
        {"srun -n 8 --mem-per-gpu=64G python pretrain_gpt.py", 0},
        {"SLURM_MEM_PER_NODE=2048 torchrun --nproc-per-node 8 pretrain_gpt.py",
         2},
        {"SLURM_MEM_PER_CPU=4096 SLURM_CPUS_ON_NODE=96 torchrun "
         "--nproc-per-node 8 pretrain_gpt.py",
         384},
        {"SLURM_MEM_PER_GPU=2048 SLURM_GPUS_ON_NODE=4 torchrun "
         "--nproc-per-node 4 pretrain_gpt.py",
         8},
        {"SLURM_MEM_PER_NODE=2048 srun -n 8 --mem=4G python pretrain_gpt.py",
         4},
        {"torchrun --nproc-per-node 8 pretrain_gpt.py", 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        me_diag diag = {0};
        me_config *config = me_config_create();
        const me_status status = read_command(config, cases[i].command, &diag);
        if (status != ME_OK) {
            fail_msg("%s: %s", cases[i].command, diag.text);
        }
        if (config->device.host_memory_bytes != cases[i].gib << 30) {
            fail_msg("%s: %llu bytes", cases[i].command,
                     (unsigned long long)config->device.host_memory_bytes);
        }
        me_config_destroy(config);
    }
}

int main(void)
{
    // accelerate takes a file of it
    assert_int_equal(setenv("HF_HOME", "/nonexistent", 1), 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_launch__world_sizes),
        cmocka_unit_test(test_launch__uneven_hosts),
        cmocka_unit_test(test_launch__contexts),
        cmocka_unit_test(test_launch__variables_of_contexts),
        cmocka_unit_test(test_launch__alone),
        cmocka_unit_test(test_launch__alone_gives_way),
        cmocka_unit_test(test_launch__memory_of_a_node),
    };
    return cmocka_run_group_tests_name("launch_ranks", tests, NULL, NULL);
}

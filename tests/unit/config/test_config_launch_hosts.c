/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that say how many ranks a launcher starts. */
#include "config/config_private.h"
#include "config/launch_hosts.h"
#include "job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    WORDS_MAX = 32
};

static const char hosts[] = "# two\na slots=8  max_slots=9\n\nb slots=4\r\n";
static const char accelerate[] = "compute_environment: LOCAL_MACHINE\n"
                                 "distributed_type: %s\n"
                                 "num_machines: 2\n"
                                 "num_processes: %s\n"
                                 "deepspeed_config:\n"
                                 "  deepspeed_hostfile: %s\n";

/** A launch command, `%` in place of the file's name; the file is written
 *  first. */
static me_status read_command(const char *command, const char *text,
                              me_config *config, me_diag *diag)
{
    char path[64];
    char line[512] = "";
    const char *words[WORDS_MAX];
    int count = 0;
    (void)snprintf(path, sizeof path, "/tmp/memest-hosts-%d", (int)getpid());
    for (size_t n = 0; *command != '\0'; command++) {
        n = strlen(line);
        assert_true(n + sizeof path + 2 < sizeof line);
        (void)snprintf(line + n, sizeof line - n, "%.*s%s", *command != '%',
                       command, *command == '%' ? path : "");
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    for (char *c = line; *c != '\0';) {
        assert_true(count < WORDS_MAX);
        words[count++] = c;
        c += strcspn(c, " ");
        if (*c == ' ') {
            *c++ = '\0';
        }
    }
    const me_status status = me_config_read_launch(config, count, words, diag);
    (void)unlink(path);
    return status;
}

static void check(const char *command, const char *text, int32_t ranks,
                  int32_t gpus_per_node)
{
    me_diag diag = {.status = ME_OK};
    me_config *config = me_config_create();
    if (read_command(command, text, config, &diag) != ME_OK ||
        config->parallel.world_size != ranks ||
        config->device.gpus_per_node != gpus_per_node) {
        fail_msg("%s: %d ranks, %d of a node; %s%s", command,
                 (int)config->parallel.world_size,
                 (int)config->device.gpus_per_node, diag.text,
                 config->own->world_is_open == NULL
                     ? ""
                     : config->own->world_is_open);
    }
    me_config_destroy(config);
}

/* Slurm's _task_layout_block() deals a step's tasks out to its nodes in turn;
 * mpirun fills the slots of a host. */
static void test_hosts__ranks_of_a_node(void **state)
{
    (void)state;
    static const char even[] = "a slots=4\nb slots=4\n";
    check("srun -N2 -n8 python pretrain_gpt.py", "", 8, 4);
    check("srun -N4 -n16 --gres=gpu:8 python pretrain_gpt.py", "", 16, 4);
    check("SLURM_NNODES=2 SLURM_NTASKS=8 srun python pretrain_gpt.py", "", 8,
          4);
    check("flux run -N2 -n8 python pretrain_gpt.py", "", 8, 4);
    check("mpirun -n 8 --host a:4,b:4 python pretrain_gpt.py", "", 8, 4);
    check("mpirun -n 8 --hostfile % python pretrain_gpt.py", even, 8, 4);
    check("mpirun -n 6 --hostfile % python pretrain_gpt.py", even, 6, 4);
    check("mpirun -n 12 --hostfile % python pretrain_gpt.py", hosts, 12, 8);
    check("srun -N3 -n8 python pretrain_gpt.py", "", 8, 8);
    check("srun -N8 -n8 python pretrain_gpt.py", "", 8, 1);
    check("srun -N8 --ntasks-per-node=1 python pretrain_gpt.py", "", 8, 1);
    check("mpirun -n 8 -N 1 python pretrain_gpt.py", "", 8, 1);
    check("torchrun --nnodes 8 --nproc-per-node 1 pretrain_gpt.py", "", 8, 1);
    check("torchrun --nproc-per-node 1 pretrain_gpt.py", "", 1, 8);
    check("SLURM_NTASKS_PER_NODE=1 SLURM_NNODES=2 srun torchrun --nnodes 2 "
          "--nproc-per-node 4 pretrain_gpt.py",
          "", 8, 4);
    check("srun -N2 -n2 torchrun --nnodes 2 --nproc-per-node 2 pretrain_gpt.py",
          "", 4, 2);
}

/* LSF's hosts with their slots, in one variable. */
static void test_hosts__lsf(void **state)
{
    (void)state;
    assert_int_equal(me_lsf_slots_each("a 8 b 8"), 8);
    assert_int_equal(me_lsf_slots_each(" a 8  b 8 "), 8);
    assert_int_equal(me_lsf_slots_each("a 6"), 6);
    assert_int_equal(me_lsf_slots_each("a 8 b 4"), 0);
    assert_int_equal(me_lsf_slots_each("a 8 b"), 0);
    assert_int_equal(me_lsf_slots_each("a 8 b 8x"), 0);
    assert_int_equal(me_lsf_slots_each("a 0"), 0);
    assert_int_equal(me_lsf_slots_each(""), 0);
}

/* deepspeed/launcher/runner.py. */
static void test_hosts__deepspeed(void **state)
{
    (void)state;
    check("deepspeed --hostfile % pretrain_gpt.py", hosts, 12, 8);
    check("deepspeed -H % --num_nodes 1 pretrain_gpt.py", hosts, 8, 8);
    check("deepspeed -H % --num_nodes 9 pretrain_gpt.py", hosts, 12, 8);
    check("deepspeed -H % --num_gpus 2 pretrain_gpt.py", hosts, 4, 2);
    check("deepspeed -H % --include a:0,1@b:0 pretrain_gpt.py", hosts, 3, 8);
    check("deepspeed -H % --include b pretrain_gpt.py", hosts, 4, 4);
    check("deepspeed -H % -e b pretrain_gpt.py", hosts, 8, 8);
    check("deepspeed -H % -e a:0,1,2,3 pretrain_gpt.py", hosts, 8, 4);
    check("python -m deepspeed.launcher.runner -H % pretrain_gpt.py", hosts, 12,
          8);
    check("CUDA_VISIBLE_DEVICES=0 deepspeed -H % pretrain_gpt.py", hosts, 12,
          8);
}

/* accelerate/commands/launch.py. */
static void test_hosts__accelerate(void **state)
{
    (void)state;
    char text[512];
    (void)snprintf(text, sizeof text, accelerate, "FSDP", "16", "null");
    check("accelerate launch --config_file % pretrain_gpt.py", text, 16, 8);
    check("accelerate launch --config_file=% --num_processes 8 pretrain_gpt.py",
          text, 8, 4);
    check("accelerate launch --config_file % --num_machines 1 pretrain_gpt.py",
          text, 16, 16);
    (void)snprintf(text, sizeof text, accelerate, "'NO'", "16", "null");
    check("accelerate launch --config_file % pretrain_gpt.py", text, 1, 8);
    check("accelerate launch --multi_gpu --config_file % pretrain_gpt.py", text,
          16, 8);
    (void)snprintf(text, sizeof text, accelerate, "NO", "16", "null");
    check("accelerate launch --config_file % pretrain_gpt.py", text, 1, 8);
    check("accelerate launch --num_processes 8 --num_machines 2 "
          "--use_deepspeed --deepspeed_hostfile % pretrain_gpt.py",
          "a slots=8\nb slots=8\nc slots=8\n", 12, 4);
    check("accelerate launch --num_processes 8 --num_machines 2 "
          "--use_deepspeed --deepspeed_hostfile % "
          "--deepspeed_inclusion_filter a:0,1 pretrain_gpt.py",
          hosts, 2, 2);
    check("accelerate launch --num_processes 8 --num_machines 2 "
          "--use_deepspeed --deepspeed_multinode_launcher standard "
          "--deepspeed_hostfile % pretrain_gpt.py",
          hosts, 8, 4);
}

/** HF_HOME/accelerate/default_config.yaml, of a folder under /tmp. */
static void write_default(const char *home, const char *text)
{
    char path[160];
    (void)snprintf(path, sizeof path, "%s/accelerate", home);
    assert_int_equal(mkdir(home, 0700), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/accelerate/default_config.yaml",
                   home);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void remove_default(const char *home)
{
    char path[160];
    (void)snprintf(path, sizeof path, "%s/accelerate/default_config.yaml",
                   home);
    assert_int_equal(unlink(path), 0);
    (void)snprintf(path, sizeof path, "%s/accelerate", home);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(home), 0);
}

/* accelerate/commands/config/config_args.py: the file that `accelerate config`
 * leaves counts where no option names one, and the job says so. */
static void test_hosts__default_of_accelerate(void **state)
{
    (void)state;
    static const char said[] = "accelerate launch takes /tmp/memest-home-";

    static const struct {
        const char *command; /**< %s: the folder */
        int32_t ranks;
        bool is_taken;
    } rows[] = {
        {"HF_HOME=%s accelerate launch pretrain_gpt.py", 16, true},
        {"HF_HOME=%s accelerate launch --num_processes 4 pretrain_gpt.py", 4,
         true},
        {"HF_HOME=%s accelerate launch --multi_gpu pretrain_gpt.py", 16, true},
        {"HF_HOME=%s accelerate launch --config_file % pretrain_gpt.py", 6,
         false},
        {"HF_HOME=%s accelerate launch --cpu pretrain_gpt.py", 8, false},
        {"HF_HOME=%s/no accelerate launch pretrain_gpt.py", 8, false},
        {"HF_HOME=~ HOME=%s accelerate launch pretrain_gpt.py", 16, true},
        {"HF_HOME=%s torchrun --nproc-per-node 2 pretrain_gpt.py", 2, false},
    };

    char home[64];
    char text[512];
    (void)snprintf(home, sizeof home, "/tmp/memest-home-%d", (int)getpid());
    (void)snprintf(text, sizeof text, accelerate, "FSDP", "16", "null");
    write_default(home, text);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char command[256];
        me_diag diag = {.status = ME_OK};
        me_config *config = me_config_create();
        bool is_said = false;
        const char *at = strstr(rows[i].command, "%s");
        (void)snprintf(command, sizeof command, "%.*s%s%s",
                       (int)(at - rows[i].command), rows[i].command, home,
                       at + 2);
        assert_int_equal(read_command(command,
                                      "distributed_type: FSDP\n"
                                      "num_processes: 6\n",
                                      config, &diag),
                         ME_OK);
        for (int32_t n = 0; n < config->assumptions.count; n++) {
            is_said |= strncmp(config->assumptions.flags[n].note, said,
                               sizeof said - 1) == 0;
        }
        if (config->parallel.world_size != rows[i].ranks ||
            is_said != rows[i].is_taken) {
            fail_msg("%s: %d ranks", command, (int)config->parallel.world_size);
        }
        me_config_destroy(config);
    }
    remove_default(home);
}

static void test_hosts__mpirun(void **state)
{
    (void)state;
    check("mpirun --hostfile % python pretrain_gpt.py", hosts, 12, 6);
    check("mpirun --hostfile % -np 4 python pretrain_gpt.py", hosts, 4, 8);
    check("mpirun -machinefile % --npernode 2 python pretrain_gpt.py", hosts, 4,
          2);
    check("mpirun --hostfile % python pretrain_gpt.py", "a slots = 2\nb\nb\n",
          4, 2);
    check("mpiexec.hydra -f % python pretrain_gpt.py", "a:4\nb:4\n", 8, 4);
    check("mpiexec.hydra -f % python pretrain_gpt.py", "a\nb\n", 2, 1);
    check("PBS_NODEFILE=% mpirun python pretrain_gpt.py", "a\na\nb\n", 3, 8);
}

static const struct {
    const char *command;
    const char *text;
    const char *part; /**< of the error, or of why the world is open */
    bool is_open;
} untold[] = {
    {"deepspeed --hostfile no/where pretrain_gpt.py", "",
     "deepspeed --hostfile no/where: cannot open: No such file or directory; it "
     "says how many ranks there are: give --num_nodes and --num_gpus, or "
     "memest's --world-size",
     true},
    {"deepspeed --hostfile no/where --num_nodes 2 pretrain_gpt.py", "",
     "give --num_nodes and --num_gpus", true},
    {"deepspeed --hostfile no/where --num_gpus 2 pretrain_gpt.py", "",
     "give --num_nodes, or", true},
    {"deepspeed -H % pretrain_gpt.py", "a\n", "a has no slots, where deepspeed",
     false},
    {"deepspeed -H % pretrain_gpt.py", "a slots=2\na slots=2\n",
     "a comes twice", false},
    {"deepspeed -H % pretrain_gpt.py", "# none\n", "names no host", false},
    {"deepspeed -H % pretrain_gpt.py", "a slots=many\n",
     "'a slots=many' is no host with its slots", false},
    {"deepspeed -H % --include c pretrain_gpt.py", hosts, "names no such host",
     false},
    {"deepspeed -H % --exclude b:4 pretrain_gpt.py", hosts,
     "of the 4 slots that the host has", false},
    {"deepspeed -H % --exclude a@b pretrain_gpt.py", hosts, "leaves no GPU",
     false},
    {"accelerate launch --config_file no/where pretrain_gpt.py", "",
     "it says how many ranks there are: give --num_processes", true},
    {"accelerate launch --config_file % pretrain_gpt.py",
     "distributed_type: FSDP\nnum_processes: -1\n", "has no num_processes",
     true},
    {"accelerate launch --config_file % pretrain_gpt.py",
     "distributed_type: FSDP\nnum_processes: many\n",
     "num_processes = many must be a whole number", false},
    {"mpirun --hostfile no/where python pretrain_gpt.py", "",
     "it says how many ranks there are: give mpirun's -n", true},
    {"mpirun --hostfile % python pretrain_gpt.py", "a slots=2\nb\n",
     "a rank on each core of b", true},
    {"mpirun --hostfile % -H a python pretrain_gpt.py", hosts,
     "memest cannot tell how many ranks that are", true},
    {"mpirun -rf % python pretrain_gpt.py", "", "mpirun -rf says how many",
     true},
    {"PET_NNODES=1:4 torchrun pretrain_gpt.py", "",
     "PET_NNODES=1:4: memest cannot tell how many ranks torchrun starts", true},
    {"PET_NPROC_PER_NODE=gpu torchrun pretrain_gpt.py", "",
     "PET_NPROC_PER_NODE=gpu: memest cannot tell", true},
    {"srun --gpus=16 --gpus-per-task=1 python pretrain_gpt.py", "",
     "srun --gpus 16 without -n starts one task on each node, of which nobody "
     "says how many there are: give -n 16",
     true},
    {"srun -G 4 python pretrain_gpt.py", "", "give -n 4", true},
    {"mpirun python pretrain_gpt.py", "",
     "mpirun starts a rank on each slot or core that it finds, which nobody "
     "says: give its -n",
     true},
    {"jsrun -r 6 -a 1 python pretrain_gpt.py", "",
     "jsrun starts as many ranks as its job has room for, which nobody says: "
     "give its -n and -a, or -p",
     true},
    {"jsrun -U % python pretrain_gpt.py", "",
     "jsrun -U says how many ranks there are, and is not read", true},
    {"flux run -N 2 --tasks-per-core 1 python pretrain_gpt.py", "",
     "flux run --tasks-per-core says how many", true},
    {"aprun -B python pretrain_gpt.py", "", "aprun -B says how many", true},
    {"blaunch -u % python pretrain_gpt.py", "", "blaunch -u says how many",
     true},
    {"blaunch python pretrain_gpt.py", "",
     "blaunch starts as many ranks as its job has room for", true},
    {"nemo llm pretrain --factory llama3_8b "
     "trainer.strategy.tensor_model_parallel_size=1 "
     "trainer.strategy.pipeline_model_parallel_size=1 "
     "trainer.strategy.context_parallel_size=1 data.micro_batch_size=1 "
     "data.global_batch_size=64 data.seq_length=64",
     "",
     "nemo llm llama3_8b: the recipe says how many ranks there are: give "
     "trainer.num_nodes and trainer.devices",
     true},
    {"srun --ntasks-per-gpu=1 python pretrain_gpt.py", "",
     "cannot tell how many GPUs there are: give --gpus or --ntasks", true},
    {"torchrun --nnodes 1:4 pretrain_gpt.py", "",
     "--nnodes 1:4: must be a whole number from 1 to 16777216; a range decides "
     "nothing: give the number that will run, or give memest's --world-size",
     true},
    {"torchrun --nnodes 2 --nproc-per-node 4:4 pretrain_gpt.py", "",
     "--nproc-per-node 4:4: must be a whole number", true},
    {"CUDA_VISIBLE_DEVICES=0,1,0 torchrun --nproc-per-node gpu pretrain_gpt.py",
     "", "--nproc-per-node gpu: must be a whole number", true},
    {"torchrun --nnodes 4 --nproc-per-node gpu pretrain_gpt.py", "",
     "number of GPUs of a node, or give memest's --world-size", true},
    {"torchrun --nnodes $N pretrain_gpt.py", "", "the shell has not put in",
     true},
    {"SLURM_NTASKS=8 mpirun -np 0 python pretrain_gpt.py", "",
     "-np 0: must be a whole number", true},
    {"mpirun -np --npernode python pretrain_gpt.py", "",
     "-np: must be a whole number", true},
    {"jsrun -n 0 python pretrain_gpt.py", "", "-n 0: must be a whole number",
     true},
    {"srun -N -n 8 python pretrain_gpt.py", "",
     "--nodes: must be a whole number", true},
    {"srun -N2 -n python pretrain_gpt.py", "",
     "--ntasks: must be a whole number", true},
    {"srun --ntasks-per-node -N 2 python pretrain_gpt.py", "",
     "--ntasks-per-node: must be a whole number", true},
    {"mpirun -np -x A=1 python pretrain_gpt.py", "",
     "-np: must be a whole number", true},
    {"flux run -N -n 8 python pretrain_gpt.py", "",
     "-N: must be a whole number", true},
    {"jsrun -n -a 1 python pretrain_gpt.py", "", "-n: must be a whole number",
     true},
};

/* No number is made up; --world-size says it in the end. */
static void test_hosts__what_nobody_can_tell(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(untold); i++) {
        me_diag diag = {.status = ME_OK};
        me_config *config = me_config_create();
        const me_status status =
            read_command(untold[i].command, untold[i].text, config, &diag);
        const char *open = config->own->world_is_open;
        const char *said = untold[i].is_open ? open : diag.text;
        if (said == NULL || strstr(said, untold[i].part) == NULL) {
            fail_msg("%s: %s%s", untold[i].command, diag.text,
                     open == NULL ? "" : open);
        }
        assert_int_equal(status, untold[i].is_open ? ME_OK : ME_ERR_CONFIG);
        assert_int_equal(config->parallel.world_size, 0);
        me_config *copy = me_config_clone(config);
        assert_int_equal(me_config_derive_world(copy, 4, &diag),
                         untold[i].is_open ? ME_ERR_CONFIG : ME_OK);
        me_config_destroy(copy);
        assert_int_equal(
            me_config_set(config, "parallel.world_size", "16", &diag), ME_OK);
        assert_int_equal(me_config_derive_world(config, 1, &diag), ME_OK);
        me_config_destroy(config);
    }
}

static void test_hosts__lists_of_slurm(void **state)
{
    (void)state;

    static const struct {
        const char *list;
        uint64_t count;
    } cases[] = {
        {"node1", 1},
        {"node[1-4]", 4},
        {"node[01-04,7],x", 6},
        {"a,b,c", 3},
        {"r[1-2]n[1-8]", 16},
        {"node[1-4", 0},
        {"node[4-1]", 0},
        {"node[a]", 0},
        {"", 0},
        {"n[1-16777216]x[1-16777216]", 0},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(me_host_list_count(cases[i].list), cases[i].count);
    }
}

int main(void)
{
    assert_int_equal(setenv("HF_HOME", "/nonexistent", 1), 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts__ranks_of_a_node),
        cmocka_unit_test(test_hosts__lsf),
        cmocka_unit_test(test_hosts__deepspeed),
        cmocka_unit_test(test_hosts__accelerate),
        cmocka_unit_test(test_hosts__default_of_accelerate),
        cmocka_unit_test(test_hosts__mpirun),
        cmocka_unit_test(test_hosts__what_nobody_can_tell),
        cmocka_unit_test(test_hosts__lists_of_slurm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

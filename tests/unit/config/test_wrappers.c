/* SPDX-License-Identifier: BSD-3-Clause */
/* Every program that may stand before a script, and every option of one that says
 * nothing of the job: by their own manuals, with as many words behind them. */
#include "config/wrappers.h"
#include "job.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    WORDS_MAX = 16,
    WORD_BYTES = 64
};

/** The next word of @p list; false: that was the last. */
static bool take_word(const char **list, char word[WORD_BYTES])
{
    *list += strspn(*list, " ");
    const size_t n = strcspn(*list, " ");
    assert_true(n < WORD_BYTES);
    memcpy(word, *list, n);
    word[n] = '\0';
    *list += n;
    return n > 0;
}

static me_status read_words(const char *command, me_diag *diag,
                            int32_t *world_size_out)
{
    char text[WORDS_MAX][WORD_BYTES];
    const char *words[WORDS_MAX];
    int count = 0;
    while (count < WORDS_MAX && take_word(&command, text[count])) {
        words[count] = text[count];
        count++;
    }
    me_config *config = me_config_create();
    assert_non_null(config);
    *diag = (me_diag){.status = ME_OK};
    const me_status status = me_config_read_launch(config, count, words, diag);
    *world_size_out = config->parallel.world_size;
    me_config_destroy(config);
    return status;
}

static void check_name(const char *name, me_wrapper_kind kind)
{
    char path[WORD_BYTES + 16];
    (void)snprintf(path, sizeof path, "/usr/bin/%s", name);
    const me_wrapper *wrapper = me_wrapper_find(path);
    if (wrapper == NULL || wrapper->kind != kind) {
        fail_msg("%s is another wrapper, or none", name);
    }
}

static void test_wrappers__names(void **state)
{
    (void)state;

    static const struct {
        me_wrapper_kind kind;
        const char *names;
    } rows[] = {
        {ME_WRAPPER_PLAIN, "env nohup exec time setsid command numactl "
                           "accelerate accelerate.commands.accelerate_cli"},
        {ME_WRAPPER_SRUN, "srun"},
        {ME_WRAPPER_MPIRUN,
         "mpirun mpiexec mpiexec.hydra mpirun.openmpi mpiexec.openmpi "
         "mpirun.mpich mpiexec.mpich mpiexec_mpt orterun prterun prun ibrun"},
        {ME_WRAPPER_JSRUN, "jsrun"},
        {ME_WRAPPER_FLUX, "flux"},
        {ME_WRAPPER_APRUN, "aprun"},
        {ME_WRAPPER_BLAUNCH, "blaunch"},
        {ME_WRAPPER_TORCHRUN,
         "torchrun torch.distributed.run torch.distributed.launch"},
        {ME_WRAPPER_DEEPSPEED, "deepspeed deepspeed.launcher.runner"},
        {ME_WRAPPER_ACCELERATE,
         "launch accelerate.commands.launch accelerate-launch"},
        {ME_WRAPPER_PYTHON, "python python2 python3 python3.9 python3.12 "
                            "cProfile profile pdb ipdb debugpy"},
        {ME_WRAPPER_SHELL, "bash sh zsh dash ksh"},
        {ME_WRAPPER_FOREIGN,
         "sbatch salloc bsub nsys ncu nvprof vtune perf strace ltrace docker podman "
         "podman-hpc nerdctl singularity apptainer enroot shifter sarus ch-run "
         "uv poetry pipenv hatch pdm pixi conda mamba micromamba timeout nice "
         "ionice chrt stdbuf taskset numawrap xvfb-run ssh pdsh clush pssh ray "
         "kubectl py-spy compute-sanitizer tmux tini likwid-pin"},
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char *names = rows[i].names;
        char name[WORD_BYTES];
        while (take_word(&names, name)) {
            check_name(name, rows[i].kind);
        }
    }
}

/* What starts a command that is not read says so, by its name. */
static void test_wrappers__what_is_not_read(void **state)
{
    (void)state;
    const char *names = "bash timeout uv docker nsys nice";
    char name[WORD_BYTES];
    while (take_word(&names, name)) {
        char command[256];
        char expected[256];
        me_diag diag;
        int32_t world = 0;
        (void)snprintf(command, sizeof command,
                       "%s torchrun --nproc-per-node 2 pretrain_gpt.py", name);
        (void)snprintf(expected, sizeof expected, "'%s' is not read: ", name);
        assert_int_equal(read_words(command, &diag, &world), ME_ERR_CONFIG);
        assert_non_null(strstr(diag.text, expected));
    }
}

/** Options, all with as many words behind them. */
static const struct {
    const char *program;
    int n_values;
    const char *options;
} options_of[] = {
    {"env", 0, "-i --ignore-environment"},
    {"env", 1, "-u --unset -C --chdir"},
    {"time", 0, "-a --append -p --portability -q --quiet -v --verbose"},
    {"/usr/bin/time", 1, "-f --format -o --output"},
    {"exec", 0, "-c -l"},
    {"exec", 1, "-a"},
    {"command", 0, "-p"},
    {"setsid", 0, "-c --ctty -f --fork -w --wait"},
    {"numactl", 0, "-l --localalloc -s --show"},
    {"numactl", 1,
     "-i --interleave -N --cpunodebind -C --physcpubind -m --membind -p "
     "--preferred"},
    {"srun", 0,
     "-l --label -u -v --exclusive --overlap -k --pty -I --nice --propagate "
     "-X --x11 -K -Z --stepmgr --container-writable --no-container-mount-home"},
    {"srun", 1,
     "-A --account -c -d -D -e -i -J -L -m -M -o -q -r -S -t -T -w -W -x -B -F "
     "--cpu-bind --gpu-bind --mem --mpi --ntasks-per-core --signal --comment "
     "--container-image --container-mounts --mem-per-gpu --network"},
    {"mpirun", 2, "--mca -mca --gmca -gmca --pmca --prtemca"},
    {"mpirun", 0,
     "--allow-run-as-root -allow-run-as-root --oversubscribe "
     "-oversubscribe --nooversubscribe --report-bindings -report-bindings "
     "--tag-output -tag-output --display-map -display-map "
     "--display-allocation -v --verbose -q --quiet --nolocal -nolocal "
     "--bynode --byslot -bynode --use-hwthread-cpus "
     "--merge-stderr-to-stdout -print-rank-map -l --enable-recovery "
     "--timestamp-output -genvall"},
    {"mpirun", 1,
     "--host -host -H --hosts -hosts --hostfile -hostfile --machinefile "
     "-machinefile --map-by -map-by --bind-to -bind-to --rank-by -rank-by "
     "--prefix -prefix --wdir -wdir --wd -wd --output-filename --timeout "
     "-f --cpus-per-rank --cpu-set --cpu-list --output --display "
     "--rankfile -rf --stdin --path --tune -genvlist -iface -launcher "
     "-bootstrap"},
    {"mpiexec", 2, "-env -genv"},
    {"mpiexec", 0,
     "--no-oversubscribe -no-oversubscribe --noprefix --leave-session-attached "
     "--bind-to-core --bycore --disable-recovery --xml -genvnone -envall -rr "
     "--prepend-rank -prepend-rank -ordered-output -disable-auto-cleanup "
     "--label --line-buffer --no-transfer --genvall -exclusive --no-vni"},
    {"mpiexec", 1,
     "--cpus-per-proc -cpus-per-proc --am -am --report-pid --forward-signals "
     "--runtime-options --personality --dvm --pset --max-restarts -envlist "
     "-outfile-pattern -errfile-pattern -membind -rmk -bootstrap-exec "
     "-launcher-exec -localhost -usize -d --depth --cpu-bind -cpu-bind "
     "--gpu-bind --mem-bind --rlimits --pmi --umask --hostlist --env --genv"},
    {"jsrun", 0, "-i --immediate -L --use-spindle -C -u"},
    {"jsrun", 1,
     "-b --bind -c --cpu-per-rs --cpu_per_rs -d --launch-distribution -D -e "
     "--stdio-mode -F --env-eval -g --gpu_per_rs -h --chdir -k -l "
     "--latency-priority -m -M --smpiargs -o -P -S -J -t -X --exit-on-error"},
    {"flux run", 0,
     "-u --unbuffered -l --label-io -x --exclusive -v --verbose --dry-run "
     "--quiet --watch"},
    {"flux submit", 1,
     "-c --cores-per-task -g --gpus-per-task --gpus-per-node -q --queue -B -t "
     "--time-limit --urgency --job-name -o --setopt -S --setattr --env-remove "
     "--env-file --rlimit --input --output --error --cwd --flags --taskmap "
     "--cc"},
    {"aprun", 0, "-b -C -q -ss -T"},
    {"aprun", 1,
     "-a -cc -cp -d -D -F -j -k -L -m -M -p -P -r -R -S -sn -sl -t"},
    {"blaunch", 0, "-no-wait -no-shell -use-login-shell"},
    {"torchrun", 0,
     "-m --module --standalone --no-python --run-path --use-env "
     "--use-agent-store --virtual-local-rank"},
    {"torchrun", 1,
     "--node-rank --rdzv-backend --rdzv-endpoint --rdzv-id --rdzv-conf "
     "--max-restarts --monitor-interval --start-method --role --log-dir "
     "-r --redirects -t --tee --local-ranks-filter --master-addr "
     "--master-port --local-addr --logs-specs --numa-binding "
     "--signals-to-handle --event-log-handler --duplicate-stdout-filters "
     "--duplicate-stderr-filters"},
    {"deepspeed", 0,
     "--module --no-python --no-local-rank --no-ssh --no-ssh-check --force-multi "
     "--save-pid --elastic-training --bind-cores-to-rank -q --quiet"},
    {"deepspeed", 1,
     "--min-elastic-nodes --log-level "
     "--max-elastic-nodes --master-port --master-addr --node-rank "
     "--launcher --launcher-args --enable-each-rank-log --autotuning "
     "--bind-core-list --ssh-port --venv-script"},
    {"accelerate launch --num-processes 2", 0,
     "-m --module -q --quiet --cpu --multi-gpu --use-deepspeed --use-fsdp "
     "--use-megatron-lm --no-python --debug --same-network "
     "--enable-cpu-affinity --use-parallelism-config "
     "--dynamo-use-fullgraph --dynamo-use-dynamic "
     "--dynamo-use-regional-compilation"},
    {"accelerate launch --num-processes 2", 1,
     "--mixed-precision --machine-rank --main-process-ip "
     "--main-process-port --num-cpu-threads-per-process --dynamo-backend "
     "--rdzv-backend --rdzv-conf --role --log-dir --gpu-ids "
     "--max-restarts --monitor-interval --deepspeed-config-file "
     "--zero-stage --deepspeed-hostfile --deepspeed-multinode-launcher "
     "--deepspeed-inclusion-filter --deepspeed-exclusion-filter -t --tee "
     "--gradient-accumulation-steps --gradient-clipping --fsdp-version "
     "--fsdp-sharding-strategy --fsdp-auto-wrap-policy --dynamo-mode"},
    {"python", 0, "-b -bb -B -d -E -i -I -O -OO -P -q -s -S -u -v -x"},
    {"python", 1, "-W -X --check-hash-based-pycs"},
    {"python -m cProfile", 1, "-o --outfile -s --sort"},
    {"python -m debugpy", 0, "--wait-for-client --log-to-stderr"},
    {"python -m debugpy", 1, "--listen --connect --log-to"},
    {"python -m pdb", 1, "-c --command"},
};

static void check_option(const char *program, const char *option, int n_values)
{
    static const char *const values[] = {"", "value", "value value"};
    char command[256];
    me_diag diag;
    int32_t world = 0;
    (void)snprintf(command, sizeof command,
                   "%s %s %s python -m torch.distributed.run "
                   "--nproc-per-node 2 pretrain_gpt.py",
                   program, option, values[n_values]);
    if (read_words(command, &diag, &world) != ME_OK || world != 2) {
        fail_msg("%s: %d ranks; %s", command, world, diag.text);
    }
}

static void test_wrappers__options_that_say_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(options_of); i++) {
        const char *options = options_of[i].options;
        char option[WORD_BYTES];
        while (take_word(&options, option)) {
            check_option(options_of[i].program, option, options_of[i].n_values);
        }
    }
}

int main(void)
{
    // accelerate takes a file of it
    assert_int_equal(setenv("HF_HOME", "/nonexistent", 1), 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrappers__names),
        cmocka_unit_test(test_wrappers__what_is_not_read),
        cmocka_unit_test(test_wrappers__options_that_say_nothing),
    };
    return cmocka_run_group_tests_name("wrappers", tests, NULL, NULL);
}

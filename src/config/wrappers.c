/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/wrappers.h"

#include "base/parse.h"

#include <stdio.h>
#include <string.h>

/** clang-format off */
static const me_wrapper_option no_options[] = {{.names = NULL}};

static const me_wrapper_option env_options[] = {
    {"-i --ignore-environment", 0, ME_WRAPPER_NOTHING},
    {"-u --unset -C --chdir", 1, ME_WRAPPER_NOTHING},
    {"-S --split-string", 1, ME_WRAPPER_COMMAND},
    {.names = NULL},
};

/** GNU time's; the shell's keyword has -p alone. */
static const me_wrapper_option time_options[] = {
    {"-a --append -p --portability -q --quiet -v --verbose", 0,
     ME_WRAPPER_NOTHING},
    {"-f --format -o --output", 1, ME_WRAPPER_NOTHING},
    {"--help -h --version -V", 0, ME_WRAPPER_ENDS},
    {.names = NULL},
};

/** The shell's */
static const me_wrapper_option exec_options[] = {
    {"-c -l", 0, ME_WRAPPER_NOTHING},
    {"-a", 1, ME_WRAPPER_NOTHING},
    {.names = NULL},
};

static const me_wrapper_option command_options[] = {
    {"-p", 0, ME_WRAPPER_NOTHING},
    {"-v -V", 0, ME_WRAPPER_ENDS},
    {.names = NULL},
};

static const me_wrapper_option setsid_options[] = {
    {"-c --ctty -f --fork -w --wait", 0, ME_WRAPPER_NOTHING},
    {"--help -h --version -V", 0, ME_WRAPPER_ENDS},
    {.names = NULL},
};

static const me_wrapper_option numactl_options[] = {
    {"-l --localalloc -s --show", 0, ME_WRAPPER_NOTHING},
    {"-i --interleave -N --cpunodebind -C --physcpubind -m --membind "
     "-p --preferred",
     1, ME_WRAPPER_NOTHING},
    {.names = NULL},
};

/** Those that say something here: config/slurm_options.h has them all. */
static const me_wrapper_option srun_options[] = {
    {"ntasks", 1, ME_WRAPPER_RANKS},
    {"nodes", 1, ME_WRAPPER_NODES},
    {"ntasks-per-node tasks-per-node", 1, ME_WRAPPER_PER_NODE},
    {"export", 1, ME_WRAPPER_ASSIGNMENTS},
    {"gres gpus-per-node gpus-per-task tres-per-task gpus constraint", 1,
     ME_WRAPPER_GPUS},
    {"partition", 1, ME_WRAPPER_PARTITION},
    {"mem mem-per-gpu mem-per-cpu", 1, ME_WRAPPER_HOST_MEMORY},
    {"ntasks-per-gpu ntasks-per-tres", 1, ME_WRAPPER_PER_GPU},
    {"nodelist", 1, ME_WRAPPER_NODE_LIST},
    {"multi-prog", 0, ME_WRAPPER_UNREAD},
    {"help test-only usage version", 0, ME_WRAPPER_ENDS},
    {"het-group pack-group nodefile", 1, ME_WRAPPER_UNREAD},
    {.names = NULL},
};

/** Open MPI's, MPICH's and Intel MPI's, for which two dashes are one, and PALS'. */
static const me_wrapper_option mpirun_options[] = {
    {"--help -h --version -V", 0, ME_WRAPPER_ENDS},
    {"-n -np --n --np -c", 1, ME_WRAPPER_RANKS},
    {"-N -ppn --npernode -npernode --ppn -perhost -grr", 1,
     ME_WRAPPER_PER_NODE},
    {"--pernode -pernode", 0, ME_WRAPPER_ONE_PER_NODE},
    {"--host -host -H --hosts -hosts --hostlist", 1, ME_WRAPPER_HOSTS},
    {"--hostfile -hostfile --machinefile -machinefile --default-hostfile -f", 1,
     ME_WRAPPER_HOST_FILE},
    {"--rankfile -rankfile -rf --npersocket --app --configfile --file", 1,
     ME_WRAPPER_UNREAD},
    {"--map-by -map-by", 1, ME_WRAPPER_MAP},
    {"-x --env --genv", 1, ME_WRAPPER_ASSIGNMENT},
    {"-genv -env", 2, ME_WRAPPER_PAIR},
    {"--mca -mca --gmca -gmca", 2, ME_WRAPPER_PARAMETER},
    {"--pmca --prtemca", 2, ME_WRAPPER_NOTHING},
    {"--allow-run-as-root -allow-run-as-root --oversubscribe -oversubscribe "
     "--nooversubscribe --report-bindings -report-bindings --tag-output "
     "-tag-output --display-map -display-map --display-allocation -v "
     "--verbose -q --quiet --nolocal -nolocal --bynode --byslot -bynode "
     "--use-hwthread-cpus --merge-stderr-to-stdout -print-rank-map -l "
     "--enable-recovery --timestamp-output -genvall "
     // Open MPI
     "--no-oversubscribe --nooverload --noprefix --novm --xml "
     "--leave-session-attached --debug-daemons --debug-daemons-file "
     "--debug-devel --do-not-launch --do-not-resolve --bind-to-core "
     "--bind-to-socket --bind-to-none --bycore --bysocket --disable-recovery "
     "--continuous --display-devel-map --display-devel-allocation "
     "--display-topo --display-diffable-map --get-stack-traces "
     "--report-state-on-timeout --report-child-jobs-separately "
     "--set-cwd-to-session-dir --keep-fqdn-hostnames --show-progress "
     "--index-argv-by-rank --preload-binary "
     // MPICH, Intel MPI
     "--genvnone --envall --envnone --rr --prepend-rank --ordered-output "
     "--disable-auto-cleanup --silent-abort --info --enable-x --disable-x "
     // PALS
     "--label --line-buffer --transfer --no-transfer --exclusive --no-vni",
     0, ME_WRAPPER_NOTHING},
    {"--bind-to -bind-to --rank-by -rank-by "
     "--prefix -prefix --wdir -wdir --wd -wd --output-filename --timeout "
     "--cpus-per-rank --cpu-set --cpu-list --output --display "
     "--stdin --path --tune -genvlist -iface -launcher -bootstrap "
     // Open MPI
     "--cpus-per-proc --am --report-pid --report-uri --report-events "
     "--forward-signals --runtime-options --stream-buffering --personality "
     "--dvm --dvm-uri --pset --max-restarts --max-vm-size --ompi-server "
     "--output-directory --output-proctable --preload-files --tmpdir "
     "--launch-agent --num-connect-retries "
     // MPICH, Intel MPI
     "--envlist --outfile-pattern --errfile-pattern --prepend-pattern "
     "--membind --binding --rmk --bootstrap-exec --launcher-exec --demux "
     "--usize --localhost --arch --soft --gpus-per-proc --gpu-subdevs-per-proc "
     "--pmi-port --hosts-group --topolib "
     // PALS
     "-d --depth --cpu-bind --gpu-bind --mem-bind --umask --rlimits --pmi "
     "--fanout",
     1, ME_WRAPPER_NOTHING},
    {.names = NULL},
};

/** TACC's, before Open MPI's or MPICH's. */
static const me_wrapper_option ibrun_options[] = {
    {"-n -np", 1, ME_WRAPPER_RANKS},
    {"-o", 1, ME_WRAPPER_NOTHING},
    {.names = NULL},
};

static const me_wrapper_option jsrun_options[] = {
    {"-n --nrs", 1, ME_WRAPPER_SETS},
    {"-a --tasks-per-rs", 1, ME_WRAPPER_PER_SET},
    {"-r --rs-per-host", 1, ME_WRAPPER_SETS_OF_HOST},
    {"-p --np", 1, ME_WRAPPER_RANKS},
    {"-E --env", 1, ME_WRAPPER_ASSIGNMENT},
    {"-f --appfile -U --erf-input -K --rs-per-socket", 1, ME_WRAPPER_UNREAD},
    {"-b --bind -c --cpu-per-rs -d --launch-distribution "
     "-D --env-no-propagate -e --stdio-mode -F --env-eval -g --gpu-per-rs "
     "-h --chdir -k --stdio-stderr -l --latency-priority -m --memory-per-rs "
     "-M --smpiargs -o --stdio-stdout -P --pre-post-exec -S --save-resources "
     "-J --use-resources -t --stdio-input -X --exit-on-error --progress",
     1, ME_WRAPPER_NOTHING},
    {"-i --immediate -L --use-spindle -C --use-reservation -u --unbuffered", 0,
     ME_WRAPPER_NOTHING},
    {.names = NULL},
};

/** flux-core's cli/base.py, run.py and submit.py */
static const me_wrapper_option flux_options[] = {
    {"-n --ntasks", 1, ME_WRAPPER_RANKS},
    {"-N --nodes", 1, ME_WRAPPER_NODES},
    {"--tasks-per-node", 1, ME_WRAPPER_PER_NODE},
    {"--tasks-per-core --cores", 1, ME_WRAPPER_UNREAD},
    {"--env", 1, ME_WRAPPER_ASSIGNMENT},
    {"-c --cores-per-task -g --gpus-per-task --gpus-per-node -q --queue "
     "-B --bank -t --time-limit --urgency --job-name -o --setopt -S --setattr "
     "--add-file --dependency --requires --begin-time --env-remove --env-file "
     "--rlimit --input --output --error --cwd --flags --signal --taskmap "
     "--wait-event --cc --bcc --log --log-stderr",
     1, ME_WRAPPER_NOTHING},
    {"-u --unbuffered -l --label-io -x --exclusive -v --verbose -vv --dry-run "
     "--quiet --watch --wait --progress --jps",
     0, ME_WRAPPER_NOTHING},
    {.names = NULL},
};

static const me_wrapper_option aprun_options[] = {
    {"-n --pes", 1, ME_WRAPPER_RANKS},
    {"-N --pes-per-node", 1, ME_WRAPPER_PER_NODE},
    {"-e --environment-override", 1, ME_WRAPPER_ASSIGNMENT},
    {"-B --batch-args", 0, ME_WRAPPER_UNREAD},
    {"-a -cc -cp -d -D -F -j -k -L -m -M -p -P -r -R -S -sn -sl -t "
     "--architecture --cpu-binding --depth --debug --access-mode "
     "--cpus-per-cu --node-list --memory-per-pe --protection-domain "
     "--specialized-cpus --relaunch --pes-per-numa-node --cpu-time-limit",
     1, ME_WRAPPER_NOTHING},
    {"-b -C -q -ss -T --bypass-app-transfer --reconnect --quiet "
     "--strict-memory-containment --sync-output",
     0, ME_WRAPPER_NOTHING},
    {.names = NULL},
};

static const me_wrapper_option blaunch_options[] = {
    {"-n -z -u", 1, ME_WRAPPER_UNREAD},
    {"-no-wait -no-shell -use-login-shell -q", 0, ME_WRAPPER_NOTHING},
    {.names = NULL},
};

static const me_wrapper_option torchrun_options[] = {
    {"--help -h", 0, ME_WRAPPER_ENDS},
    {"--nproc-per-node", 1, ME_WRAPPER_PER_NODE},
    {"--nnodes", 1, ME_WRAPPER_NODES},
    {"-m --module --standalone --no-python --run-path --use-env "
     "--use-agent-store --virtual-local-rank",
     0, ME_WRAPPER_NOTHING},
    {"--node-rank --rdzv-backend --rdzv-endpoint --rdzv-id --rdzv-conf "
     "--max-restarts --monitor-interval --start-method --role --log-dir -r "
     "--redirects -t --tee --local-ranks-filter --master-addr --master-port "
     "--local-addr --logs-specs --numa-binding --signals-to-handle "
     "--event-log-handler --duplicate-stdout-filters "
     "--duplicate-stderr-filters --ft-*",
     1, ME_WRAPPER_NOTHING},
    {.names = NULL},
};

/** deepspeed/launcher/runner.py, parse_args() */
static const me_wrapper_option deepspeed_options[] = {
    {"--help -h", 0, ME_WRAPPER_ENDS},
    {"--num-gpus --num-accelerators", 1, ME_WRAPPER_PER_NODE},
    {"--num-nodes", 1, ME_WRAPPER_NODES},
    {"-H --hostfile", 1, ME_WRAPPER_HOST_FILE},
    {"-i --include", 1, ME_WRAPPER_INCLUDE},
    {"-e --exclude", 1, ME_WRAPPER_EXCLUDE},
    {"--module --no-python --no-local-rank --no-ssh --no-ssh-check --force-multi "
     "--save-pid --elastic-training --bind-cores-to-rank -q --quiet",
     0, ME_WRAPPER_NOTHING},
    {"--min-elastic-nodes --log-level "
     "--max-elastic-nodes --master-port --master-addr --node-rank --launcher "
     "--launcher-args --enable-each-rank-log --autotuning --bind-core-list "
     "--ssh-port --venv-script",
     1, ME_WRAPPER_NOTHING},
    {.names = NULL},
};

/** accelerate/commands/launch.py, launch_command_parser() */
static const me_wrapper_option accelerate_options[] = {
    {"--help -h", 0, ME_WRAPPER_ENDS},
    {"--num-processes", 1, ME_WRAPPER_RANKS},
    {"--num-machines", 1, ME_WRAPPER_NODES},
    {"--config-file", 1, ME_WRAPPER_CONFIG_FILE},
    {"--multi-gpu --use-fsdp --use-megatron-lm", 0, ME_WRAPPER_SEVERAL},
    {"--use-deepspeed", 0, ME_WRAPPER_DEEPSPEED_TOO},
    {"--cpu", 0, ME_WRAPPER_CPU},
    {"--deepspeed-hostfile", 1, ME_WRAPPER_HOST_FILE},
    {"--deepspeed-inclusion-filter", 1, ME_WRAPPER_INCLUDE},
    {"--deepspeed-exclusion-filter", 1, ME_WRAPPER_EXCLUDE},
    {"--deepspeed-multinode-launcher", 1, ME_WRAPPER_STARTER},
    {"-m --module -q --quiet --no-python --debug --same-network "
     "--enable-cpu-affinity --use-parallelism-config --dynamo-use-fullgraph "
     "--dynamo-use-dynamic --dynamo-use-regional-compilation",
     0, ME_WRAPPER_NOTHING},
    {"--mixed-precision --machine-rank --main-process-ip "
     "--main-process-port --num-cpu-threads-per-process --dynamo-backend "
     "--rdzv-backend --rdzv-conf --role --log-dir --gpu-ids --max-restarts "
     "--monitor-interval --deepspeed-config-file --zero-stage -t --tee "
     "--offload-optimizer-device --offload-param-device "
     "--offload-optimizer-nvme-path --offload-param-nvme-path "
     "--gradient-accumulation-steps --gradient-clipping --zero3-init-flag "
     "--zero3-save-16bit-model --deepspeed-moe-layer-cls-names --dynamo-mode "
     "--fsdp-version --fsdp-offload-params --fsdp-min-num-params "
     "--fsdp-sharding-strategy --fsdp-reshard-after-forward "
     "--fsdp-auto-wrap-policy --fsdp-transformer-layer-cls-to-wrap "
     "--fsdp-backward-prefetch --fsdp-state-dict-type --fsdp-forward-prefetch "
     "--fsdp-use-orig-params --fsdp-cpu-ram-efficient-loading "
     "--fsdp-sync-module-states --fsdp-activation-checkpointing",
     1, ME_WRAPPER_NOTHING},
    {.names = NULL},
};

static const me_wrapper_option python_options[] = {
    {"--help -h --version -V", 0, ME_WRAPPER_ENDS},
    {"-m", 0, ME_WRAPPER_MODULE},
    {"-c", 1, ME_WRAPPER_COMMAND},
    {"-b -bb -B -d -E -i -I -O -OO -P -q -s -S -u -v -x", 0,
     ME_WRAPPER_NOTHING},
    {"-W -X --check-hash-based-pycs", 1, ME_WRAPPER_NOTHING},
    {.names = NULL},
};

/** Modules that run a script or another module: profilers and debuggers. */
static const me_wrapper_option runner_options[] = {
    {"-m", 0, ME_WRAPPER_MODULE},
    {"-o --outfile -s --sort -c --command --listen --connect --log-to", 1,
     ME_WRAPPER_NOTHING},
    {"--wait-for-client --log-to-stderr", 0, ME_WRAPPER_NOTHING},
    {.names = NULL},
};

static const me_wrapper wrappers[] = {
    {"env", ME_WRAPPER_PLAIN, env_options},
    {"nohup", ME_WRAPPER_PLAIN, no_options},
    {"time", ME_WRAPPER_PLAIN, time_options},
    {"exec", ME_WRAPPER_PLAIN, exec_options},
    {"command", ME_WRAPPER_PLAIN, command_options},
    {"setsid", ME_WRAPPER_PLAIN, setsid_options},
    {"numactl", ME_WRAPPER_PLAIN, numactl_options},
    {"srun", ME_WRAPPER_SRUN, srun_options},
    {"mpirun mpiexec mpiexec.hydra mpirun.openmpi mpiexec.openmpi "
     "mpirun.mpich mpiexec.mpich mpiexec_mpt orterun prterun prun",
     ME_WRAPPER_MPIRUN, mpirun_options},
    {"ibrun", ME_WRAPPER_MPIRUN, ibrun_options},
    {"jsrun", ME_WRAPPER_JSRUN, jsrun_options},
    {"flux", ME_WRAPPER_FLUX, flux_options},
    {"aprun", ME_WRAPPER_APRUN, aprun_options},
    {"blaunch", ME_WRAPPER_BLAUNCH, blaunch_options},
    {"torchrun torch.distributed.run torch.distributed.launch ft_launcher",
     ME_WRAPPER_TORCHRUN, torchrun_options},
    {"deepspeed deepspeed.launcher.runner", ME_WRAPPER_DEEPSPEED,
     deepspeed_options},
    {"accelerate accelerate.commands.accelerate_cli", ME_WRAPPER_PLAIN,
     no_options},
    {"launch accelerate.commands.launch accelerate-launch",
     ME_WRAPPER_ACCELERATE, accelerate_options},
    {"python python2 python3", ME_WRAPPER_PYTHON, python_options},
    {"cProfile profile pdb ipdb debugpy", ME_WRAPPER_PYTHON, runner_options},
    {"bash sh zsh dash ksh", ME_WRAPPER_SHELL, no_options},
    {"sbatch salloc bsub nsys ncu nvprof vtune perf strace ltrace docker podman "
     "podman-hpc nerdctl singularity apptainer enroot shifter sarus ch-run uv "
     "poetry pipenv hatch pdm pixi conda mamba micromamba timeout nice ionice "
     "chrt stdbuf taskset numawrap xvfb-run ssh pdsh clush pssh ray "
     "sudo doas su runuser pyxis charliecloud hpcrun tau_exec scorep catchsegv "
     "flock screen tmux parallel-ssh nvidia-docker kubectl oc py-spy gdb "
     "cuda-gdb valgrind heaptrack compute-sanitizer cuda-memcheck dlprof "
     "rocprof rocprofv2 rocprofv3 rocprof-sys-run omnitrace-run likwid-pin "
     "likwid-perfctr hwloc-bind prlimit unbuffer tini dumb-init gosu "
     "systemd-run cgexec firejail proot nix direnv",
     ME_WRAPPER_FOREIGN, no_options},
};

/* clang-format on */

/** `_` counts as `-`, on both sides. */
static char folded(char c)
{
    if (c == '_') {
        return '-';
    }
    return c;
}

static bool has_name(const char *names, const char *name, size_t length)
{
    size_t n = 0;
    for (const char *one = me_name_next(&names, &n); one != NULL;
         one = me_name_next(&names, &n)) {
        n -= one[n - 1] == '*'; // any rest
        bool is_equal = one[n] == '*' ? n < length : n == length;
        for (size_t i = 0; is_equal && i < n; i++) {
            is_equal = folded(one[i]) == folded(name[i]);
        }
        if (is_equal) {
            return true;
        }
    }
    return false;
}

const me_wrapper *me_wrapper_find(const char *word)
{
    const char *slash = strrchr(word, '/');
    const char *name = slash == NULL ? word : slash + 1;
    size_t length = strlen(name);
    if (strncmp(name, "python3.", 8) == 0 &&
        strspn(name + 8, "0123456789") == length - 8) {
        length = 7; // python3.12 is python3
    }
    for (size_t i = 0; i < sizeof wrappers / sizeof wrappers[0]; i++) {
        if (has_name(wrappers[i].names, name, length)) {
            return &wrappers[i];
        }
    }
    return NULL;
}

const me_wrapper_option *me_wrapper_option_find(const me_wrapper *wrapper,
                                                const char *name, size_t length)
{
    for (const me_wrapper_option *option = wrapper->options;
         option->names != NULL; option++) {
        if (has_name(option->names, name, length)) {
            return option;
        }
    }
    return NULL;
}

/** Python's argparse and getopt_long() take a long name's beginning. */
static bool takes_short_names(const me_wrapper *wrapper)
{
    return wrapper->kind == ME_WRAPPER_TORCHRUN ||
           wrapper->kind == ME_WRAPPER_DEEPSPEED ||
           wrapper->kind == ME_WRAPPER_ACCELERATE ||
           wrapper->kind == ME_WRAPPER_FLUX ||
           wrapper->kind == ME_WRAPPER_PLAIN;
}

/** The option whose long name begins as @p name does. @return how many do */
static int find_short(const me_wrapper *wrapper, const char *name,
                      size_t length, const me_wrapper_option **option_out)
{
    int count = 0;
    if (!takes_short_names(wrapper) || length < 3 || name[1] != '-') {
        return 0;
    }
    for (const me_wrapper_option *option = wrapper->options;
         option->names != NULL; option++) {
        const char *names = option->names;
        size_t n = 0;
        for (const char *one = me_name_next(&names, &n); one != NULL;
             one = me_name_next(&names, &n)) {
            size_t same = 0;
            while (same < n && same < length &&
                   folded(one[same]) == folded(name[same])) {
                same++;
            }
            if (same == length) {
                *option_out = option;
                count++;
            }
        }
    }
    return count;
}

/** Open MPI and MPICH take a long name behind one dash or two, which mean the same
 *  but where a row says otherwise. */
static const me_wrapper_option *find_dashed(const me_wrapper *wrapper,
                                            const char *word, size_t length)
{
    char other[64];
    if (wrapper->kind != ME_WRAPPER_MPIRUN || length < 3 ||
        length + 2 > sizeof other) {
        return NULL;
    }
    const bool is_double = word[1] == '-';
    (void)snprintf(other, sizeof other, "-%.*s",
                   (int)length - (is_double ? 2 : 0),
                   word + (is_double ? 2 : 0));
    return me_wrapper_option_find(wrapper, other, strlen(other));
}

/** Can a letter's value stand in its word? Open MPI's and MPICH's long names begin
 *  as a letter with one would. */
static bool may_hold_value(const me_wrapper *wrapper, const char *word)
{
    return word[1] != '-' && word[1] != '\0' && word[2] != '\0' &&
           (wrapper->kind != ME_WRAPPER_MPIRUN ||
            strspn(word + 2, "0123456789") == strlen(word + 2));
}

bool me_wrapper_is_ambiguous(const me_wrapper *wrapper, const char *word)
{
    const me_wrapper_option *option = NULL;
    const size_t length = strcspn(word, "=");
    return me_wrapper_option_find(wrapper, word, length) == NULL &&
           find_short(wrapper, word, length, &option) > 1;
}

const me_wrapper_option *me_wrapper_option_of(const me_wrapper *wrapper,
                                              const char *word,
                                              const char **attached_out)
{
    const size_t length = strcspn(word, "=");
    const me_wrapper_option *option =
        me_wrapper_option_find(wrapper, word, length);
    *attached_out = word[length] == '=' ? word + length + 1 : NULL;
    if (option == NULL) {
        option = find_dashed(wrapper, word, length);
    }
    if (option == NULL && find_short(wrapper, word, length, &option) != 1) {
        option = NULL;
    }
    if (option != NULL || !may_hold_value(wrapper, word)) {
        return option;
    }
    option = me_wrapper_option_find(wrapper, word, 2);
    if (option == NULL || option->n_values != 1) {
        return NULL;
    }
    *attached_out = word + 2;
    return option;
}

int me_wrapper_subcommand(const me_wrapper *wrapper, int argc,
                          const char *const *argv)
{
    int at = 0;
    if (wrapper->kind != ME_WRAPPER_FLUX) {
        return 0;
    }
    at += at < argc && strcmp(argv[at], "mini") == 0; // before flux-core 0.48
    return at < argc && (strcmp(argv[at], "run") == 0 ||
                         strcmp(argv[at], "submit") == 0)
               ? at + 1
               : -1;
}

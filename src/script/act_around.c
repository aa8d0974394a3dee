/* SPDX-License-Identifier: BSD-3-Clause */
/* Containers, profilers and their like: their options are many and say nothing of
 * memory but by the variables that what they start has. */
#include "base/parse.h"
#include "script/act_lsf.h"
#include "script/act_private.h"
#include "script/guise.h"
#include "script/inherit.h"

#include <stdio.h>
#include <string.h>

/** Words of a program's own that stand before what it starts, and may be called as
 *  a program is: names of environments and images, values of options. */
typedef struct around {
    const char *programs;
    const char *commands; /**< its own; "": none */
    const char *images; /**< those of them behind which an image or a container
                               is named; "-": it is so without one */
    const char *valued; /**< options whose value is the next word */
} around;

/* clang-format off */

/** By the programs' manuals. What is not here has values that no program is called
 *  as, or is written with `=`. */
static const around arounds[] = {
    {"docker podman podman-hpc nerdctl nvidia-docker", "run exec compose container create start",
     "run exec create start",
     "--add-host --annotation -a --attach --blkio-weight --cap-add --cap-drop "
     "--cgroup-parent --cgroupns --cidfile -c --context --config --cpu-period "
     "--cpu-quota --cpu-shares --cpus --cpuset-cpus --cpuset-mems --detach-keys "
     "--device --dns --dns-option --dns-search --domainname -e --entrypoint --env "
     "--env-file --expose -f --file --gpus --group-add --hooks-dir -h --host "
     "--hostname -H --index --ip --ip6 --ipc --isolation -l --label --label-file "
     "--link --log-driver --log-level --log-opt --mac-address -m --memory "
     "--memory-reservation --memory-swap --memory-swappiness --mount --name "
     "--net --network --network-alias --oom-score-adj --pid --pids-limit "
     "--platform -p --profile --project-name --publish --pull --requires "
     "--restart --runtime --secret --security-opt --shm-size --stop-signal "
     "--stop-timeout --storage-opt --sysctl --tmpfs --ulimit -u --user --userns "
     "--uts -v --volume --volume-driver --volumes-from -w --workdir"},
    {"apptainer singularity", "exec run shell", "exec run shell",
     "--add-caps --app --apply-cgroups -B --bind --blkio-weight --cpus --cwd "
     "--dns --drop-caps --env --env-file --fusemount -H --home --hostname "
     "--memory --mount --network --network-args -o --overlay --pem-path --pwd "
     "-S --scratch --security -W --workdir"},
    {"enroot", "start", "start", "-c --conf -e --env -m --mount --rc"},
    {"sarus", "run", "run",
     "-e --env --device --mount --ssh-key --name -w --workdir"},
    {"shifter", "", "",
     "-e --env --env-file -i --image -m --module -V --volume -w --workdir"},
    {"ch-run", "", "-",
     "-b --bind -c --cd -g --gid --home -u --uid --set-env --unset-env"},
    {"conda mamba micromamba", "run", "",
     "-a --attach --cwd -e --env -n --name -p --prefix -r --root-prefix"},
    {"pixi hatch pdm poetry uv", "run", "",
     "-C --cache-dir --color --config-file --default-index --directory -e "
     "--environment --env-file --exclude-newer --extra -f --feature "
     "--find-links --group --index --index-url --link-mode --manifest-path "
     "--no-extra --no-group --only-group -p --package --prerelease --project "
     "-P --python --resolution --venv --with --with-editable "
     "--with-requirements"},
    {"nsys", "profile launch start", "",
     "-b --backtrace -c --capture-range --capture-range-end "
     "--cuda-graph-trace --cuda-memory-usage --cudabacktrace --cpuctxsw -d "
     "--duration -e --env-var -f --force-overwrite --flush-on-cudaprofilerstop "
     "--gpu-metrics-device --gpu-metrics-devices --gpu-metrics-set --kill -n "
     "--inherit-environment --nic-metrics -o --output -p --nvtx-capture "
     "--python-backtrace --python-sampling --pytorch -s --sample --session "
     "--session-new --stats -t --trace -w --show-output --wait -x "
     "--stop-on-exit -y --delay"},
    {"ncu", "", "",
     "-c --launch-count --cache-control --clock-control --config-file-path "
     "--export -k --kernel-name --log-file --metrics --nvtx-include -o "
     "--replay-mode -s --launch-skip --section --set --target-processes"},
    {"perf strace ltrace", "record stat trace", "",
     "-e --event -F --freq -o --output -P -u"},
    {"vtune", "", "",
     "-app-working-dir -collect -data-limit -duration -knob -r -result-dir"},
    {"bsub", "", "",
     "-a -app -b -cwd -data -E -env -eo -e -Ep -ext -F -f -freq -g -G -gpu -hostfile "
     "-i -is -J -Jd -jsdl -k  -L -Lp -M -m -mig -n -notify -network -o -oo "
     "-outdir -P -p -pack -q -R -rcacct -rnc -S -s -sla -sp -T -t -U -u -v "
     "-W -We -w -wa -wt"},
    {"xvfb-run", "", "", "-e --error-file -f --auth-file -n --server-num -p "
     "--xauth-protocol -s --server-args -w --wait"},
    {"kubectl oc", "exec run", "exec run",
     "--as --cluster -c --container --context --env -f --filename --image "
     "--kubeconfig -l --labels -n --namespace --overrides --pod-running-timeout "
     "-s --server --token --user"},
    {"py-spy", "record", "", "-d --duration -f --format -o --output -r --rate"},
    {"compute-sanitizer cuda-memcheck", "", "",
     "--launch-count --launch-skip --log-file --print-limit --save --tool"},
    {"hpcrun tau_exec", "", "", "-e --event -o --output -T"},
};

/* clang-format on */

static bool is_among(const char *words, const char *word)
{
    return word != NULL && me_names_have(words, word, strlen(word));
}

static const around *find_around(const char *program)
{
    for (size_t i = 0; i < sizeof arounds / sizeof arounds[0]; i++) {
        if (is_among(arounds[i].programs, program)) {
            return &arounds[i];
        }
    }
    return NULL;
}

/** What a command's words have said so far. */
typedef struct seen {
    const around *row;   /**< NULL: nothing is known of the program */
    const char *command; /**< its own, the last that was there */
    char *entry;  /**< `--entrypoint`: starts in the image's place; NULL */
    char **image; /**< NULL: none yet */
} seen;

/** Is a word that is no option the program's own, or its image's? */
static bool is_own(seen *p, char **at)
{
    if (p->row == NULL || p->image != NULL) {
        return false;
    }
    if (is_among(p->row->commands, *at)) {
        p->command = *at;
        return true;
    }
    if (strcmp(p->row->images, "-") == 0 ||
        is_among(p->row->images, p->command)) {
        p->image = at;
    }
    return p->image != NULL;
}

/** Words of an option that me_inherit_option() does not know. */
static int skip_option(seen *p, int argc, char **argv)
{
    static const char entry[] = "--entrypoint";
    if (p->row == NULL || argv[0][0] != '-') {
        return 1;
    }
    const bool has_value = argc > 1 && is_among(p->row->valued, argv[0]);
    if (strncmp(argv[0], entry, sizeof entry - 1) == 0) {
        p->entry = has_value                          ? argv[1]
                   : argv[0][sizeof entry - 1] == '=' ? argv[0] + sizeof entry
                                                      : NULL;
    }
    return has_value ? 2 : 1;
}

static int start(me_inherit *inherit, bool is_container, char **argv)
{
    static char bash[] = "bash";
    if (inherit->wrong != NULL) {
        return me_guise_fail(inherit->wrong,
                             "cannot be read, or is not a regular file: "
                             "variables of a container or an environment stand "
                             "in it (--env-file)");
    }
    me_inherit_apply(inherit);
    if (is_container && strcmp(me_guise_base(argv[0]), "sh") == 0) {
        argv[0] = bash; // which takes functions from outside
    }
    return me_guise_start(argv);
}

/** A command in one word, as LSF takes it. */
static int start_text(me_inherit *inherit, char *text)
{
    static char bash[] = "bash";
    static char option[] = "-c";
    char *words[] = {bash, option, text, NULL};
    return start(inherit, false, words);
}

/** `uv run FILE.py` and `uv run -m MODULE` start Python with it, whose words go
 *  into those of uv from the one before on. @return the command; NULL: another */
static char **find_python(const char *program, const seen *p, char **at)
{
    static char python[] = "python";
    static char module[] = "-m";
    const bool is_run = p->command != NULL && strcmp(p->command, "run") == 0 &&
                        is_among("uv pdm", program);
    const bool is_module = is_among("-m --module", *at);
    if (!is_run || !(is_module || (**at != '-' && me_ends_with(*at, ".py")))) {
        return NULL;
    }
    at[0] = is_module ? module : at[0];
    at[-1] = python; // behind the program's own name: `run`, or an option
    return at - 1;
}

/** Does a word begin what is started? LSF takes a command in one word. */
static bool is_command(const char *program, char **at)
{
    return at[0][0] != '-' &&
           ((strcmp(program, "bsub") == 0 && strchr(at[0], ' ') != NULL) ||
            me_guise_is_started(at[0], at[1]));
}

/** Start what begins at @p at; a job of LSF's that submits itself is left. */
static int start_command(me_inherit *inherit, int argc, char **argv, int at)
{
    static char bsub[] = "bsub";
    char *by[] = {bsub, NULL};
    const bool is_bsub = strcmp(me_guise_base(argv[0]), bsub) == 0;
    if (is_bsub && me_again(me_again_words(ME_AGAIN_SEED, by),
                            me_again_words(ME_AGAIN_SEED, argv + at))) {
        return me_guise_nothing(argc, argv);
    }
    return is_bsub && strchr(argv[at], ' ') != NULL
               ? start_text(inherit, argv[at])
               : start(inherit, me_guise_is_container(argv[0]), argv + at);
}

int me_guise_around(int argc, char **argv)
{
    const char *program = me_guise_base(argv[0]);
    const bool is_container = me_guise_is_container(argv[0]);
    seen p = {.row = find_around(program)};
    me_inherit inherit = {.is_clean = false};
    me_lsf lsf = {.slots = 0};
    if (is_container) {
        me_guise_enter_elsewhere();
    }
    me_inherit_begin(&inherit, program);
    for (int at = 1; at < argc;) {
        const bool is_option = argv[at][0] == '-';
        if (!is_option && is_own(&p, argv + at)) {
            if (p.image != NULL && p.entry != NULL && *p.entry != '\0') {
                argv[at] = p.entry;
                return start(&inherit, is_container, argv + at);
            }
            at++;
            continue;
        }
        if (is_command(program, argv + at)) {
            return start_command(&inherit, argc, argv, at);
        }
        char **python = find_python(program, &p, argv + at);
        if (python != NULL) {
            return start(&inherit, false, python);
        }
        me_lsf_option(&lsf, program, argc - at, argv + at);
        const int n =
            me_inherit_option(&inherit, program, argc - at, argv + at);
        const int own = skip_option(&p, argc - at, argv + at);
        at += n > own ? n : own;
    }
    if (p.image != NULL && is_among("shell", p.command) &&
        me_guise_has_input()) {
        return start(&inherit, is_container, me_guise_input_shell());
    }
    // an image whose variable is empty: the command stands in its place
    return p.image != NULL && me_guise_is_started(p.image[0], p.image[1])
               ? start(&inherit, is_container, p.image)
               : me_guise_nothing(argc, argv);
}

int me_guise_start_with(me_inherit *inherit, char **argv)
{
    return start(inherit, false, argv);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "script/guise.h"

#include "base/parse.h"

#include <stdbool.h>
#include <string.h>

/** clang-format off */
static const me_guise rows[] = {
    {"python python2 python3 python3.8 python3.9 python3.10 python3.11 python3.12 "
     "python3.13 python3.14 torchrun ft_launcher deepspeed accelerate colossalai composer "
     "horovodrun torchx megatron nemo swift llamafactory-cli axolotl litgpt tune "
     "lightning xtuner",
     ME_GUISE_LAUNCH, true},
    {"srun mpirun mpiexec mpiexec.hydra mpirun.openmpi mpiexec.openmpi "
     "mpirun.mpich mpiexec.mpich mpiexec_mpt orterun prterun prun ibrun jsrun "
     "flux aprun blaunch",
     ME_GUISE_COUNT, true},
    {"singularity apptainer enroot docker podman podman-hpc nerdctl shifter "
     "sarus charliecloud ch-run pyxis nsys ncu nvprof vtune perf strace ltrace "
     "numactl numawrap taskset ionice chrt uv poetry pipenv hatch pdm pixi "
     "conda mamba micromamba ray bsub xvfb-run hpcrun tau_exec scorep catchsegv "
     "time flock screen nvidia-docker kubectl oc py-spy gdb cuda-gdb valgrind "
     "heaptrack compute-sanitizer cuda-memcheck dlprof rocprof rocprofv2 "
     "rocprofv3 rocprof-sys-run omnitrace-run likwid-pin likwid-perfctr "
     "hwloc-bind prlimit unbuffer tini dumb-init gosu systemd-run cgexec "
     "firejail proot nix direnv",
     ME_GUISE_AROUND, true},
    {"sudo doas su runuser", ME_GUISE_AS, true},
    {"ssh pdsh clush pssh parallel-ssh tmux", ME_GUISE_REMOTE, true},
    {"parallel", ME_GUISE_PARALLEL, true},
    {"dsh qsub", ME_GUISE_ELSEWHERE, false},
    {"sbatch salloc", ME_GUISE_SBATCH, false},
    {"sleep usleep clear reset tput stty sync", ME_GUISE_QUIET, false},
    {"nvidia-smi", ME_GUISE_CARDS, false},
    {"scontrol", ME_GUISE_HOSTS, false},
    {"hostname", ME_GUISE_HOSTNAME, false},
    {"bash sh dash zsh ksh", ME_GUISE_SHELL, true},
    {"env", ME_GUISE_WORK, true},
    {"awk gawk mawk nawk basename bc cat cmp column comm cut date dc diff "
     "dirname du df echo egrep envsubst expand expr factor false fgrep "
     "file find fmt fold free getconf getent getopt grep groups head hostid "
     "id join jq locale logname ls lsb_release lscpu md5sum namei "
     "nice nl nohup nproc numfmt od paste pathchk pr printenv printf pwd "
     "readlink realpath rev sed seq setsid sha1sum sha256sum sha512sum shuf "
     "sort stat stdbuf sum tac tail test timeout tr true tsort tty uname "
     "unexpand uniq uptime users wc which who whoami xargs xxd base64 base32 "
     "arch [ cksum ldd md5 ps pgrep strings tee yq",
     ME_GUISE_WORK, false},
    {"mkdir touch cp mv ln mktemp install split rmdir tar gzip gunzip zcat "
     "mkfifo truncate",
     ME_GUISE_WRITE, false},
    {"rm unlink shred dd chmod chown chgrp chattr setfacl git git-lfs hg svn "
     "pip pip3 pipx npm cargo make cmake ninja gcc g++ cc nvcc wget curl aria2c "
     "module ml spack easybuild lmod conda-env apt apt-get yum dnf zypper apk "
     "rpm dpkg snap scp sftp rsync rclone gsutil gcloud aws "
     "az azcopy s3cmd s5cmd mc hf huggingface-cli wandb tensorboard mlflow "
     "modelscope squeue sinfo sacct scancel sacctmgr sbcast sattach srun_cr "
     "sprio sstat strigger qstat qdel bjobs bkill helm "
     "nvidia-cuda-mps-control nvidia-modprobe nvidia-persistenced dcgmi "
     "rocm-smi rocminfo npu-smi mthreads-gmi hy-smi ibstat ibstatus ibv_devinfo "
     "ibv_devices ip ifconfig ping nc ncat nslookup dig host telnet ss netstat "
     "lsof fuser kill killall pkill systemctl service crontab at mail sendmail "
     "notify-send mount umount fusermount modprobe sysctl swapoff swapon "
     "vim vi nano less more watch top "
     "htop lspci lsmod dmesg logger ulimit renice chroot unshare nsenter "
     "losetup reboot shutdown poweroff useradd usermod passwd pkexec dos2unix "
     "unzip zip cd",
     ME_GUISE_NOTHING, false},
};

/* clang-format on */

const me_guise *me_guise_rows(size_t *count_out)
{
    *count_out = sizeof rows / sizeof rows[0];
    return rows;
}

const char *me_guise_base(const char *word)
{
    const char *slash = strrchr(word, '/');
    return slash == NULL ? word : slash + 1;
}

/** NULL: it is no name of the table. */
static const me_guise *find_row(const char *word)
{
    const char *name = me_guise_base(word);
    size_t length = strlen(name);
    if (strncmp(name, "python3.", 8) == 0 &&
        strspn(name + 8, "0123456789") == length - 8) {
        length = 7;
    }
    for (size_t i = 0; length > 0 && i < sizeof rows / sizeof rows[0]; i++) {
        if (me_names_have(rows[i].names, name, length)) {
            return &rows[i];
        }
    }
    return NULL;
}

me_guise_kind me_guise_find(const char *word)
{
    const me_guise *row = find_row(word);
    return row == NULL ? ME_GUISE_UNKNOWN : row->kind;
}

bool me_guise_is_started(const char *word, const char *next)
{
    static const char commands[] = "sft pt rlhf infer export";
    const char *name = me_guise_base(word);
    const me_guise *row = find_row(word);
    if (row == NULL || !row->is_started) {
        return me_ends_with(word, ".sh");
    }
    const bool is_ambiguous =
        strcmp(name, "megatron") == 0 || strcmp(name, "swift") == 0;
    return !is_ambiguous ||
           (next != NULL && me_names_have(commands, next, strlen(next)));
}

#!/bin/bash
# is WANTED NAME: a variable of the step, or the script ends with what it is.
is() {
    [ "${!2-unset}" = "$1" ] || { echo "$2 is ${!2-unset}, not $1"; exit 1; }
}
export -f is
srun -N 2 -n 3 --gres=gpu:h100:4 -c 2 -J name bash -c '
    is 3 SLURM_NTASKS; is 3 SLURM_NPROCS; is 3 SLURM_STEP_NUM_TASKS
    is 2 SLURM_NNODES; is 2 SLURM_JOB_NUM_NODES; is 2 SLURM_STEP_NUM_NODES
    is 2,1 SLURM_TASKS_PER_NODE; is 2,1 SLURM_STEP_TASKS_PER_NODE
    is "node[1-2]" SLURM_JOB_NODELIST; is "node[1-2]" SLURM_STEP_NODELIST
    is 0 SLURM_PROCID; is 0 SLURM_NODEID; is 0 SLURM_LOCALID; is 0,1 SLURM_GTIDS
    is 4 SLURM_GPUS_ON_NODE; is 0,1,2,3 SLURM_STEP_GPUS; is 0,1,2,3 CUDA_VISIBLE_DEVICES
    is 2 SLURM_CPUS_PER_TASK; is 4 SLURM_CPUS_ON_NODE; is 4,2 SLURM_JOB_CPUS_PER_NODE
    is name SLURM_JOB_NAME; is unset SLURM_NTASKS_PER_NODE; is unset SLURM_GPUS_PER_NODE' &&
srun -n 16 --gpus-per-task=1 bash -c '
    is "node[1-2]" SLURM_NODELIST; is "8(x2)" SLURM_STEP_TASKS_PER_NODE
    is 8 SLURM_GPUS_ON_NODE; is 0 CUDA_VISIBLE_DEVICES' &&
srun -N 2 --ntasks-per-node=4 bash -c '
    is 8 SLURM_NTASKS; is 4 SLURM_NTASKS_PER_NODE; is bash SLURM_JOB_NAME
    srun -N 1 -n 2 bash -c "is 1 SLURM_NNODES && is 2 SLURM_NTASKS && is 2 SLURM_TASKS_PER_NODE &&
        is 2 SLURM_JOB_NUM_NODES && is node1 SLURM_STEP_NODELIST"' &&
[ "${SLURM_NTASKS-unset}" = unset ] &&
echo "all as Slurm has them"

#!/bin/bash
IMAGE=/images/pytorch_24.10.sif
BIND="$PWD:/workspace,/data:/data"
export SINGULARITYENV_NCCL_DEBUG=WARN
singularity pull --force $IMAGE docker://pytorch
mpirun -n 16 -npernode 8 \
    singularity exec --nv --env NCCL_NVLS_ENABLE=2 -B "$BIND" --pwd /workspace $IMAGE \
    numactl --interleave=all ./inner.sh --bf16
echo "exit: $?"

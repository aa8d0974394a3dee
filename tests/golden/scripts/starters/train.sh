#!/bin/bash
# Names of environments, images and files that programs have as well: each line
# launches the one job.
JOB="torchrun --nproc-per-node 4 pretrain_gpt.py --num-layers 2 --hidden-size 64
  --num-attention-heads 4 --seq-length 128 --max-position-embeddings 128
  --micro-batch-size 1 --global-batch-size 8 --train-iters 10 --lr 1e-4 --bf16
  --mock-data --vocab-size 1000 --tokenizer-type NullTokenizer"
JOB=$(echo $JOB)
conda run -n nemo $JOB
conda run --name env --no-capture-output $JOB
micromamba run -p /opt/lightning $JOB
docker run --rm --name nemo image $JOB
docker run --rm --gpus all nemo $JOB
docker run -w /workspace/python -v /a:/b image bash -c "$JOB"
docker run --entrypoint bash image -c "$JOB"
docker run --entrypoint=/bin/bash image -c "$JOB"
docker exec -it nemo $JOB
docker run --rm $IMAGE_THAT_IS_NOT_SET $JOB
apptainer exec --nv /images/nemo $JOB
enroot start --rw nemo $JOB
ch-run -w /images/nemo -- $JOB
nsys profile -o nemo -w true $JOB
bsub -J nemo -W 4 "cd /tmp; $JOB"
uv run --extra nemo --python python3.12 $JOB

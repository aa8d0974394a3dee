#!/bin/bash
train() { torchrun --nproc-per-node "$1" pretrain_gpt.py --num-layers 2 --hidden-size 128 --num-attention-heads 4 --seq-length 64 --max-position-embeddings 64 --micro-batch-size 1 --global-batch-size 48 --train-iters 10 --lr 1e-4 --bf16 --mock-data --vocab-size 500 --tokenizer-type NullTokenizer; }
export -f train
sudo -u user -D job bash -c '[ "${PWD##*/}" = job ] && python -V' || exit
sudo --chdir=job bash -c '[ "${PWD##*/}" = job ]' || exit
srun -D job bash -c '[ "${PWD##*/}" = job ]' || exit
VALUE=1 su user -c 'test "$VALUE" = 1' || exit
VALUE=1 su - user -c 'test -z "$VALUE"' || exit
runuser -u user -- test 1 = 1 || exit
runuser -l user -c 'exit 3'; [ $? = 3 ] || exit
su user <<END || exit
exit 0
END
exec su -s /bin/bash user -c 'train 8'

torchrun --nproc-per-node 1 pretrain_gpt.py --num-layers 1 \
  --hidden-size 64 --num-attention-heads 2

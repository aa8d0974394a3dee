export CUDA_DEVICE_MAX_CONNECTIONS=1
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
GPUS_PER_NODE=${GPUS_PER_NODE:-8}
NNODES=${NNODES:-2}
WORLD=$((GPUS_PER_NODE * NNODES))
SIZE() { case $1 in 7b) echo "4 256 8" ;; 13b) echo "8 512 16" ;; *) return 1 ;; esac; }

/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/environment_names.h"

#include "base/parse.h"

#include <stdbool.h>
#include <string.h>

/** LanguageModule._set_attention_backend() sets all three by --attention-backend,
 *  and stops where one was set to anything else. */
static bool is_attention_backend(const me_config *config, const char *name,
                                 const char *value)
{
    static const struct {
        const char *name;
        me_attention_backend backend;
    } variables[] = {
        {"NVTE_FLASH_ATTN", ME_ATTENTION_BACKEND_FLASH},
        {"NVTE_FUSED_ATTN", ME_ATTENTION_BACKEND_FUSED},
        {"NVTE_UNFUSED_ATTN", ME_ATTENTION_BACKEND_UNFUSED},
    };

    const me_attention_backend backend = config->impl.attention_backend;
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        if (strcmp(variables[i].name, name) == 0) {
            const bool is_on = backend == variables[i].backend ||
                               backend == ME_ATTENTION_BACKEND_AUTO;
            return strcmp(value, is_on ? "1" : "0") == 0;
        }
    }
    return false;
}

static bool is_without_fp8(const me_config *config, const char *name,
                           const char *value)
{
    (void)name;
    (void)value;
    return config->fp8.format == ME_FP8_NONE;
}

static bool is_without_experts(const me_config *config, const char *name,
                               const char *value)
{
    (void)name;
    (void)value;
    return config->moe.num_experts == 0;
}

/** @} */

/* The first rule that matches counts, so the last of a program's are those for
 * what nobody has looked up. What Megatron-LM's --deterministic-mode sets by
 * itself is DETERMINISM_ENV_VAR_DEFAULTS of core_v0.19.0's
 * training/determinism.py. */
/* clang-format off */
#define NO_EFFECT(names, note) \
    {names, NULL, ME_VARIABLE_NO_EFFECT, note, ME_EITHER(NONE), NULL, NULL}
#define ASKED(names, note) \
    {names, NULL, ME_VARIABLE_ASKED, note, ME_EITHER(NONE), NULL, NULL}
#define MODELLED(names, note, deterministic) \
    {names, NULL, ME_VARIABLE_MODELLED, note, ME_EITHER(NONE), NULL, \
     deterministic}
#define NOT_MODELLED(names, neutral, effect, note) \
    {names, neutral, ME_VARIABLE_NOT_MODELLED, note, effect, NULL, NULL}
#define DETERMINISTIC(name, neutral, effect, note, value) \
    {name, neutral, ME_VARIABLE_NOT_MODELLED, note, effect, NULL, value}

static const me_variable_rule rules[] = {
NO_EFFECT("NCCL_DEBUG*", "what is printed"),
NO_EFFECT("NCCL_PROTO",
    "graph/tuning.cc takes kernels by it; p2pRecvSetup() and the network's "
    "proxies allocate for all protocols"),
NO_EFFECT("NCCL_SOCKET_* NCCL_NSOCKS_* NCCL_IB_* NCCL_OOB_* NCCL_NET "
    "NCCL_NET_PLUGIN NCCL_CROSS_NIC",
    "what joins nodes, and the host's buffers"),
NO_EFFECT("NCCL_CHECKS_DISABLE NCCL_CHECK_POINTERS NCCL_LAUNCH_MODE "
    "NCCL_IGNORE_CPU_AFFINITY NCCL_SET_THREAD_NAME",
    "checks and threads of the host"),
NO_EFFECT("NCCL_ASYNC_ERROR_HANDLING NCCL_BLOCKING_WAIT NCCL_TIMEOUT",
    "who waits, and how long"),
NO_EFFECT("NCCL_WORK_FIFO_BYTES", "pinned memory of the host"),
NO_EFFECT("NCCL_COMM_SPLIT_SHARE_RESOURCES",
    "groups are new communicators, not splits, unless a device is bound"),
ASKED("NCCL_GRAPH_REGISTER", "read while a CUDA graph is captured"),
DETERMINISTIC("NCCL_ALGO", NULL, ME_EITHER(SMALL),
    "rings alone, or other connections", "Ring"),
{"NCCL_*", NULL, ME_VARIABLE_NCCL, "a variable of NCCL", ME_EITHER(SMALL),
    NULL, NULL},

NO_EFFECT("TORCH_NCCL_AVOID_RECORD_STREAMS",
    "what PyTorch does anyway since 2.8, which reads it no longer"),
NO_EFFECT("TORCH_NCCL_ASYNC_ERROR_HANDLING TORCH_NCCL_BLOCKING_WAIT "
    "TORCH_NCCL_ENABLE_MONITORING TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC "
    "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC TORCH_NCCL_COORD_CHECK_MILSEC "
    "TORCH_NCCL_PROPAGATE_ERROR TORCH_NCCL_RETHROW_CUDA_ERRORS",
    "threads of the host, and how long they wait"),
NO_EFFECT("TORCH_NCCL_DUMP_ON_TIMEOUT TORCH_NCCL_TRACE_BUFFER_SIZE "
    "TORCH_NCCL_DEBUG_INFO_* TORCH_NCCL_DESYNC_DEBUG "
    "TORCH_NCCL_EXTRA_DUMP_ON_EXEC TORCH_NCCL_LOG_* TORCH_FR_* "
    "TORCH_INCLUDE_*", "records of the host"),
NO_EFFECT("TORCH_NCCL_ENABLE_TIMING TORCH_NCCL_CUDA_EVENT_CACHE* "
    "TORCH_NCCL_HIGH_PRIORITY TORCH_NCCL_NAN_CHECK "
    "TORCH_NCCL_USE_COMM_NONBLOCKING TORCH_NCCL_NONBLOCKING_TIMEOUT",
    "events, priorities and checks that allocate nothing"),
NOT_MODELLED("TORCH_NCCL_*", NULL, ME_EITHER(SMALL),
    "a variable of PyTorch's collectives"),

MODELLED("TORCH_COMPILE_DISABLE TORCHDYNAMO_DISABLE",
    "compiled functions run op by op", NULL),
NO_EFFECT("TORCH_LOGS* TORCH_TRACE TORCH_CPP_LOG_LEVEL TORCH_SHOW_* TORCH_HOME "
    "TORCH_EXTENSIONS_DIR TORCH_CUDA_ARCH_LIST TORCH_DISTRIBUTED_DEBUG "
    "TORCH_WARN_ACCUMULATE_GRAD_STREAM_MISMATCH TORCH_COMPILE_DEBUG* "
    "TORCH_COMPILE_CPROFILE TORCH_CUDA_SANITIZER TORCH_FORCE_WEIGHTS_ONLY_LOAD "
    "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD TORCH_DEVICE_BACKEND_AUTOLOAD",
    "what is printed, checked or found on the host"),
NO_EFFECT("TORCHELASTIC_* TORCH_ELASTIC_*", "processes of the host"),
NO_EFFECT("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE NVIDIA_TF32_OVERRIDE",
    "cuBLAS multiplies in another type, in the same workspace"),
NOT_MODELLED("TORCH_BLAS_PREFER_CUBLASLT TORCH_LINALG_* TORCH_CUDNN_*", NULL,
    ME_EITHER(SMALL), "another library's workspaces"),
NO_EFFECT("TORCHDYNAMO_VERBOSE TORCHDYNAMO_REPRO_* TORCHDYNAMO_EXTENDED_* "
    "TORCHDYNAMO_INLINE_INBUILT_NN_MODULES",
    "how graphs are found or reported"),
MODELLED("TORCHINDUCTOR_FORCE_DISABLE_CACHES",
    "every run times the compiled kernels", "0"),
NO_EFFECT("TORCHINDUCTOR_CACHE_DIR TORCHINDUCTOR_FX_GRAPH_* "
    "TORCHINDUCTOR_AUTOGRAD_* TORCHINDUCTOR_AUTOTUNE_REMOTE_CACHE "
    "TORCHINDUCTOR_COMPILE_THREADS "
    "TORCHINDUCTOR_WORKER_* TORCHINDUCTOR_DEBUG* TORCHINDUCTOR_TRACE",
    "how the host compiles, and what it keeps of it"),
NOT_MODELLED("TORCHDYNAMO_* TORCHINDUCTOR_* TORCH_COMPILE_*", NULL,
    ME_EITHER(SOME), "another compilation of the fused functions"),
NOT_MODELLED("TORCH_* ATEN_*", NULL, ME_EITHER(SMALL),
    "a variable of PyTorch"),
MODELLED("PYTORCH_ALLOC_CONF PYTORCH_CUDA_ALLOC_CONF",
    "device.alloc_conf, which the launch command's reader sets", NULL),
NOT_MODELLED("PYTORCH_NO_CUDA_MEMORY_CACHING", NULL, ME_EITHER(ANY),
    "every block is CUDA's own"),
NO_EFFECT("PYTORCH_NVML_BASED_CUDA_CHECK PYTORCH_KERNEL_CACHE_PATH "
    "PYTORCH_NO_NVML_*", "what the host asks and keeps"),
NO_EFFECT("PYTORCH_JIT*",
    "TorchScript, which no function of Megatron-LM is since PyTorch 2.2"),
NOT_MODELLED("PYTORCH_*", NULL, ME_EITHER(SMALL), "a variable of PyTorch"),

MODELLED("CUBLAS_WORKSPACE_CONFIG", "cuBLAS's workspace", ":4096:8"),
NO_EFFECT("CUBLAS_LOG* CUBLASLT_LOG* CUDNN_LOG* CUDNN_FRONTEND_LOG*",
    "what is printed"),
NO_EFFECT("CUDNN_FRONTEND_ATTN_DP_WORKSPACE_LIMIT",
    "cuDNN since 9.0 has no such choice, which Transformer Engine sets itself for "
    "8.9.5 and on"),
NO_EFFECT("CUBLAS_HOME CUBLAS_PATH CUBLAS_VERSION CUDNN_HOME CUDNN_PATH "
    "CUDNN_INCLUDE_DIR CUDNN_INCLUDE_PATH CUDNN_ROOT CUDNN_ROOT_DIR "
    "CUDNN_LIB_DIR CUDNN_LIBRARY CUDNN_LIBRARY_PATH CUDNN_VERSION",
    "where a library lies, and which one an image has"),
NOT_MODELLED("CUBLAS* CUDNN_*", NULL, ME_EITHER(SMALL),
    "a library's workspaces"),
ASKED("CUDA_DEVICE_MAX_CONNECTIONS",
    "none seen between 1 and the default"),
NO_EFFECT("CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER", "which cards a job has"),
NO_EFFECT("CUDA_HOME CUDA_PATH CUDA_CACHE_* CUDA_BIN_PATH CUDA_ROOT "
    "CUDA_VERSION CUDA_DRIVER_VERSION CUDA_INC_PATH CUDA_TOOLKIT_PATH",
    "where things lie on the host"),
NO_EFFECT("CUDA_LAUNCH_BLOCKING",
    "the host waits, and blocks come back as early as is estimated"),
NO_EFFECT("CUDA_ENABLE_COREDUMP_* CUDA_COREDUMP_* CUDA_DEVICE_WAITS_ON_* "
    "CUDA_LOG_FILE", "what is left of a job that dies"),
NO_EFFECT("CUDA_GRAPHS_USE_NODE_PRIORITY CUDA_GRAPH_*", "of CUDA graphs only"),
NOT_MODELLED("CUDA_MODULE_LOADING", "LAZY", ME_HIGHER(SOME),
    "all kernels are loaded at the start"),
NOT_MODELLED("CUDA_*", NULL, ME_EITHER(SMALL), "a variable of CUDA"),

NO_EFFECT("NVTE_DEBUG* NVTE_PRINT_* NVTE_NVTX_ENABLED NVTE_UBDEBUG "
    "NVTE_CUTLASS_GROUPED_GEMM_WARN_FALLBACK", "what is printed"),
NO_EFFECT("NVTE_CUDA_INCLUDE_DIR NVTE_EXT_MARGIN_SM NVTE_USE_FAST_MATH "
    "NVTE_RADIX_TOPK_THRESHOLD NVTE_USE_CUTLASS_GROUPED_GEMM",
    "which kernels run, and on how many SMs: their workspaces are the same"),
MODELLED("NVTE_FWD_LAYERNORM_SM_MARGIN NVTE_BWD_LAYERNORM_SM_MARGIN "
    "NVTE_INF_LAYERNORM_SM_MARGIN",
    "how many blocks of a norm's kernel have sums of their own", NULL),
MODELLED("NVTE_MASKED_SOFTMAX_FUSION",
    "whose softmax unfused attention has", NULL),
MODELLED("NVTE_TORCH_COMPILE",
    "functions between the steps of context parallelism op by op", NULL),
NO_EFFECT("NVTE_RS_STRIDED_ATOMIC NVTE_AG_P2P_MULTI_ATOMIC NVTE_NODOUBLE "
    "NVTE_DOPIN", "how user buffers are copied, and by which cores"),
NO_EFFECT("NVTE_BIAS_DROPOUT_FUSION NVTE_GEMM_GELU_FUSION "
    "NVTE_DPA_FP8_RECIPE_DPA NVTE_DPA_FP8_RECIPE_MHA",
    "of Transformer Engine's own layers, which Megatron-LM does not build"),
NO_EFFECT("NVTE_DPA_FP8* NVTE_FP8_DPA_BWD NVTE_UnfusedDPA_Emulate_FP8",
    "of attention in FP8, which no flag of core_v0.19.0 asks for"),
NO_EFFECT("NVTE_ALLOW_UNSAFE_PICKLE_EXTRA_STATE",
    "how a checkpoint's extra states are read"),
NO_EFFECT("NVTE_JAX_* NVTE_FUSED_RING_ATTENTION_USE_SCAN "
    "NVTE_USE_PYTORCH_TRITON", "of JAX only"),
NO_EFFECT("NVTE_TEST_* NVTE_ONNX_KVCACHE_MAX_SEQ_LEN",
    "of Transformer Engine's tests and exporters"),
NO_EFFECT("NVTE_FUSED_ATTN_BACKEND NVTE_FLASH_ATTN_V2 NVTE_FLASH_ATTN_V3 "
    "NVTE_FLASH_ATTN_V4", "read by other versions than 2.17.1"),
ASKED("NVTE_APPLY_QK_LAYER_SCALING",
    "what --apply-query-key-layer-scaling asks for"),
{"NVTE_BACKWARD_OVERRIDE", NULL, ME_VARIABLE_NOT_MODELLED,
    "FP8's backward takes inputs that are kept in another form",
    ME_HIGHER(MUCH), is_without_fp8, NULL},
{"NVTE_UNFUSED_FP8_UPDATE", "0", ME_VARIABLE_NOT_MODELLED,
    "scales are updated by single operations of PyTorch", ME_HIGHER(SMALL),
    is_without_fp8, NULL},
{"NVTE_GROUPED_LINEAR_SINGLE_PARAM NVTE_GROUPED_LINEAR_USE_FUSED_GROUPED_GEMM",
    "0", ME_VARIABLE_NOT_MODELLED, "weights of experts as one tensor",
    ME_EITHER(SOME), is_without_experts, NULL},
{"NVTE_CUTEDSL_FUSED_GROUPED_MLP "
    "NVTE_CUTEDSL_FUSED_GROUPED_MLP_FC1_GLU_RHT_AMAX_TMEM "
    "NVTE_DISABLE_CUTEDSL_WGRAD_FUSED_GROUPED_MLP",
    "0", ME_VARIABLE_NOT_MODELLED, "experts' two products as one kernel",
    ME_EITHER(SOME), is_without_experts, NULL},
{"NVTE_EP_HANDLE_CACHE_SIZE", NULL, ME_VARIABLE_NOT_MODELLED,
    "handles of Transformer Engine's dispatch of experts", ME_EITHER(SMALL),
    is_without_experts, NULL},
MODELLED("NVTE_BATCH_MHA_P2P_COMM",
    "context ranks exchange over their group's communicator, or one a pair",
    NULL),
MODELLED("NVTE_CPU_OFFLOAD_V1",
    "which code path offloads activations",
    NULL),
NO_EFFECT("NVTE_DISABLE_NVRTC NVTE_DISABLE_TRITON_AUTOTUNING",
    "how kernels are made"),
NO_EFFECT("NVTE_FRAMEWORK NVTE_BUILD_* NVTE_CMAKE_* NVTE_CUDA_ARCHS "
    "NVTE_WITH_NCCL_EP NVTE_WITH_CUBLASMP NVTE_WITH_CUSOLVERMP "
    "NVTE_UB_WITH_MPI NVTE_ENABLE_NVSHMEM NVTE_USE_CCACHE NVTE_CCACHE_BIN "
    "NVTE_PYTORCH_FORCE_BUILD NVTE_PYTORCH_FORCE_CXX11_ABI "
    "NVTE_PYTORCH_SKIP_CUDA_BUILD NVTE_NO_LOCAL_VERSION "
    "NVTE_SKIP_SUBMODULE_CHECKS_DURING_BUILD NVTE_RELEASE_BUILD "
    "NVTE_PROJECT_BUILDING",
    "how Transformer Engine was built"),
NO_EFFECT("NVTE_BIAS_GELU_NVFUSION",
    "of a norm with a whole MLP in it, which Megatron-LM does not build"),
NO_EFFECT("NVTE_NVFP4_*", "of numbers of 4 bits only"),
NO_EFFECT("NVTE_FP8_BLOCK_SCALING_FP32_SCALES "
    "NVTE_FP8_CURRENT_SCALING_POWER_2_SCALES "
    "NVTE_ZERO_CENTERED_GAMMA_IN_WTYPE",
    "values inside of kernels: scales are float32 with them and without"),
MODELLED("NVTE_NORM_FWD_USE_CUDNN NVTE_NORM_BWD_USE_CUDNN",
    "the workspace of norms", NULL),
{"NVTE_FLASH_ATTN NVTE_FUSED_ATTN NVTE_UNFUSED_ATTN", NULL,
    ME_VARIABLE_NOT_MODELLED,
    "Megatron-LM stops where --attention-backend says another attention",
    ME_EITHER(SOME), is_attention_backend, NULL},
MODELLED("NVTE_ALLOW_NONDETERMINISTIC_ALGO",
    "the workspace of fused attention", "0"),
NO_EFFECT("NVTE_FUSED_ATTN_FORCE_WORKSPACE_OPT",
    "read with cuDNN before 9.0 only"),
ASKED("NVTE_FUSED_ATTN_USE_FAv2_BWD",
    "on a card of capability 9.0 the first backward of fused attention stops"),
NOT_MODELLED("NVTE_*", NULL, ME_EITHER(SOME),
    "a variable that Transformer Engine 2.17.1 does not read"),
MODELLED("UB_SKIPMC",
    "how user buffers of --tp-comm-overlap reach other cards", NULL),
NO_EFFECT("UB_TIMEOUT", "how long kernels wait for other cards"),

NO_EFFECT("MEGATRON_LOGGING_LEVEL", "what is printed"),
NO_EFFECT("MAMBA_DETERMINISTIC", "of state-space layers only"),
NOT_MODELLED("MEGATRON_*", NULL, ME_EITHER(SMALL),
    "a variable of Megatron-LM"),
NO_EFFECT("TRITON_CACHE_* TRITON_PRINT_* TRITON_HOME TRITON_DUMP_*",
    "how the host makes kernels"),
NOT_MODELLED("TRITON_*", NULL, ME_EITHER(SMALL), "a variable of Triton"),
NO_EFFECT("UCC_* UCX_*", "of the ucc backend only"),
NOT_MODELLED("NVSHMEM_*", NULL, ME_EITHER(SMALL), "a variable of NVSHMEM"),
};

/* clang-format on */

static bool matches(const char *name, const char *pattern, size_t length)
{
    return pattern[length - 1] == '*'
               ? strncmp(name, pattern, length - 1) == 0
               : strlen(name) == length && memcmp(name, pattern, length) == 0;
}

static bool is_among(const char *name, const char *names)
{
    size_t length = 0;
    for (const char *one = me_name_next(&names, &length); one != NULL;
         one = me_name_next(&names, &length)) {
        if (matches(name, one, length)) {
            return true;
        }
    }
    return false;
}

const me_variable_rule *me_variable_rules(size_t *count_out)
{
    *count_out = sizeof rules / sizeof rules[0];
    return rules;
}

const me_variable_rule *me_variable_rule_find(const char *name)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (is_among(name, rules[i].names)) {
            return &rules[i];
        }
    }
    return NULL;
}

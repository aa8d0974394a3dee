/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/megatron/megatron_rules.h"
#include "config/said.h"

/* What moves the numbers most, nothing gives and a report has to say. */

/** Type of training. Megatron-LM's own is float32, which a launch command means by
 *  silence; another is a default of a model's file. */
static me_status assume_dtype(me_config *config, me_diag *diag)
{
    const me_dtype dtype = config->train.params_dtype;
    if (me_config_is_set(config, "train.params_dtype") ||
        dtype == ME_DTYPE_FLOAT32) {
        return ME_OK;
    }
    return me_config_assume_of(
        config, "train.params_dtype", diag,
        "parameters are %s, since nothing gives the type of training "
        "(train.params_dtype); the model's file says at most how its "
        "checkpoint is stored",
        me_choice_title(me_params_dtype_choices, (int)dtype));
}

/** A launch command means by silence what Megatron-LM takes; a file may leave it to
 *  the command that is not there. */
static me_status assume_implementation(me_config *config, me_diag *diag)
{
    if (config->own->has_launch ||
        me_config_is_set(config, "impl.transformer") ||
        me_config_is_set(config, "impl.core_attention")) {
        return ME_OK;
    }
    return me_config_assume_of(
        config, "impl.transformer impl.core_attention", diag,
        "layers are Transformer Engine's with core attention %s, Megatron-LM's "
        "defaults, since nothing says otherwise (impl.transformer, "
        "impl.core_attention)",
        me_choice_title(me_core_attention_kind_choices,
                        (int)config->impl.core_attention));
}

/** Local layers' fused weight gradients hand autograd a dummy: that of
 *  Transformer Engine, kept, where it can be imported (HAVE_TE of
 *  tensor_parallel/layers.py). */
static me_status assume_dummy_gradients(me_config *config, me_diag *diag)
{
    return config->train.gradient_accumulation_fusion
               ? me_config_assume(
                     config, diag,
                     "Apex and Transformer Engine are installed: weight "
                     "gradients are fused, and one dummy of each weight's "
                     "shape is kept (--no-gradient-accumulation-fusion: "
                     "without)")
               : ME_OK;
}

/** FusedScaleMaskSoftmax asks Apex's kernel how many rows it takes at once, before
 *  it knows whether it takes any. */
static me_status assume_softmax_kernel(me_config *config, me_diag *diag)
{
    const me_model_config *m = &config->model;
    const uint64_t matrices = config->train.micro_batch_size *
                              m->num_attention_heads /
                              (uint64_t)config->parallel.tensor;
    const bool asks =
        config->impl.core_attention == ME_CORE_ATTENTION_UNFUSED &&
        config->train.masked_softmax_fusion &&
        m->softmax_type == ME_SOFTMAX_VANILLA &&
        config->train.params_dtype != ME_DTYPE_FLOAT32 && m->seq_length > 16 &&
        m->seq_length <= 4096 && m->seq_length % 4 == 0 && matrices % 4 == 0;
    return asks ? me_config_assume(
                      config, diag,
                      "Apex's softmax kernel is installed: Megatron-LM stops "
                      "without its module scaled_masked_softmax_cuda "
                      "(--no-masked-softmax-fusion: without)")
                : ME_OK;
}

/** What local layers take from Transformer Engine, and why it is there. */
static me_status assume_importable(me_config *config, me_diag *diag)
{
    const bool is_given = me_config_is_set(config, "impl.importable") &&
                          !me_said_assumes(config, "impl.importable");
    if (config->impl.importable == ME_IMPORTABLE_NONE) {
        return is_given || !config->own->has_launch
                   ? ME_OK
                   : me_config_assume_of(
                         config, "impl.importable", diag,
                         "Transformer Engine cannot be imported: the optimizer "
                         "is PyTorch's, the gradients' norm Megatron-LM's own "
                         "(impl.importable = transformer_engine: its)");
    }
    if (config->impl.importable == ME_IMPORTABLE_APEX) {
        return me_config_assume(config, diag,
                                "Apex can be imported, and Transformer Engine "
                                "cannot: the gradients' norm and, if fused, "
                                "the optimizer are Apex's");
    }
    static const char *const parts[2][2] = {
        {"nothing is its", "the gradients' norm and the optimizer are its"},
        {"the last norm is its",
         "the last norm, the gradients' norm and the optimizer are its"}};
    const int has_norm = config->moe.num_experts == 0;
    const int has_optimizer = config->impl.optimizer == ME_OPTIMIZER_FUSED;
    return me_config_assume_of(
        config, "impl.importable", diag,
        "Transformer Engine can be imported%s: beside local layers %s",
        is_given ? "" : ", which the job needs (impl.importable)",
        parts[has_norm][has_optimizer]);
}

/** What has to be installed beside Megatron-LM's own layers. */
static me_status assume_installed(me_config *config, me_diag *diag)
{
    if (config->impl.transformer != ME_TRANSFORMER_LOCAL) {
        return ME_OK;
    }
    me_status status = assume_importable(config, diag);
    if (status == ME_OK) {
        status = assume_dummy_gradients(config, diag);
    }
    return status == ME_OK ? assume_softmax_kernel(config, diag) : status;
}

/** TEDotProductAttention stops where the variable that Transformer Engine reads
 *  does not say what the flag says. */
static me_status assume_layer_scaling(me_config *config, me_diag *diag)
{
    static const char name[] = "NVTE_APPLY_QK_LAYER_SCALING";
    return config->model.query_key_layer_scaling &&
                   config->impl.transformer != ME_TRANSFORMER_LOCAL &&
                   me_config_variable(config, name) == NULL
               ? me_config_assume(config, diag,
                                  "%s=1 is set, without which Megatron-LM "
                                  "stops at --apply-query-key-layer-scaling",
                                  name)
               : ME_OK;
}

me_status me_config_assume_defaults(me_config *config, me_diag *diag)
{
    me_status status = assume_dtype(config, diag);
    if (status == ME_OK) {
        status = assume_implementation(config, diag);
    }
    if (status == ME_OK) {
        status = assume_layer_scaling(config, diag);
    }
    return status == ME_OK ? assume_installed(config, diag) : status;
}

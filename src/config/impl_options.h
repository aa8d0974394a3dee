/**
 * @file
 * Rows of the table in options.c that say which code runs a part, written in that
 * table's macros.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_IMPL_OPTIONS_H
#define MEMEST_CONFIG_IMPL_OPTIONS_H

/* clang-format off */
#define ME_IMPL_OPTIONS \
    ENUM("impl.transformer", "transformer_engine", me_transformer_impl_choices, \
        impl.transformer, \
        "Modules of the layers: Transformer Engine's, or Megatron-LM's own, local; " \
        "impl.core_attention, if given, names whose they are."), \
    ENUM("impl.importable", "none", me_importable_choices, impl.importable, \
        "What Megatron-LM can import; layers of its own take the last norm, the gradients' " \
        "norm and the optimizer from it. The default is what the job cannot do without."), \
    STRING("impl.te_version", "2.17.1", impl.te_version, \
        "Version of Transformer Engine, of which sizes are known."), \
    ENUM("impl.attention_backend", "auto", me_attention_backend_choices, \
        impl.attention_backend, \
        "Which attention Transformer Engine may take, as --attention-backend."), \
    ENUM("impl.flash_attn", "none", me_flash_attn_choices, impl.flash_attn, \
        "Versions of flash-attn that are installed. Transformer Engine prefers 2 before " \
        "Hopper; the default is 2 there, and where impl.attention_backend is flash. On " \
        "Hopper 3 goes before 4, which goes before 2, and cuDNN's kernel before all."), \
    ENUM("impl.core_attention", "te_fused", me_core_attention_kind_choices, \
        impl.core_attention, \
        "Core attention: Megatron-LM's own, unfused; PyTorch's flash kernel; or " \
        "Transformer Engine's. The default is what impl.transformer would take."), \
    ENUM("impl.norm", "torch", me_norm_impl_choices, impl.norm, \
        "Norm kernels: PyTorch's, the only ones that are modelled."), \
    ENUM("impl.optimizer", "torch_foreach", me_optimizer_impl_choices, impl.optimizer, \
        "Optimizer kernels: PyTorch's; or Transformer Engine's, fused, the default " \
        "where it can be imported."),
/* clang-format on */

#endif /* MEMEST_CONFIG_IMPL_OPTIONS_H */

/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/event.h"
#include "time/rates.h"

/*
 * What PyTorch 2.11 takes on the host, in two tables. That of Megatron-LM's
 * jobs, with its Python, was read off recorded host times of them, less what
 * recording took. That of plain PyTorch is of layers, optimizers, wrappers and
 * schedules of next to no size, timed alone. Neither is fitted to the time of a
 * job. With the launch that each host takes they scale to others. docs/time.md
 * says of each which code it is.
 */
/** Microseconds in a forward (or outside of both) and in a backward. */
typedef struct cost {
    double forward_us;
    double backward_us;
} cost;

/** What one kind of program takes. */
typedef struct host_costs {
    double launch_s; /**< of the host it was measured on */
    cost kernel[ME_KERNEL_COUNT];
    cost work[ME_HOST_COUNT];
    cost collective;
    double exchange_us;
    double transfer_us; /**< each send and receive of an exchange */
} host_costs;

static const host_costs megatron = {
    .launch_s = 9.476595499999974e-06,
    .kernel =
        {
            [ME_KERNEL_LINEAR] = {145, 145}, // module and custom function
            [ME_KERNEL_LINEAR_DGRAD] = {95, 95},
            [ME_KERNEL_LINEAR_WGRAD] = {62, 62},
            [ME_KERNEL_ROUTER] = {145, 145}, // as of other products
            [ME_KERNEL_ROUTER_DGRAD] = {95, 95},
            [ME_KERNEL_ROUTER_WGRAD] = {62, 62},
            [ME_KERNEL_BMM] = {60, 60},
            [ME_KERNEL_FLASH] = {155, 155},
            [ME_KERNEL_FLASH_BACKWARD] = {150, 150},
            [ME_KERNEL_FUSED_ATTENTION] = {155, 155}, // as of flash kernels
            [ME_KERNEL_FUSED_ATTENTION_BACKWARD] = {150, 150},
            [ME_KERNEL_COPY] = {17, 24},
            [ME_KERNEL_STRIDED] = {32, 32}, // with the view that it needs
            [ME_KERNEL_ELEMENTWISE] = {17, 24},
            [ME_KERNEL_CAST] = {17, 24},
            [ME_KERNEL_QUANTIZE] = {179,
                                    179}, // what a quantised layer takes more
            [ME_KERNEL_ACCUMULATE] = {60, 60}, // AccumulateGrad and its hook
            [ME_KERNEL_SILU] = {17, 24},
            [ME_KERNEL_GELU] = {17, 24},
            [ME_KERNEL_DROPOUT] = {17, 24},
            [ME_KERNEL_SOFTMAX] = {40, 40},
            [ME_KERNEL_MASKED_FILL] = {60, 60},
            [ME_KERNEL_NORM] = {105, 110},
            [ME_KERNEL_REDUCE] = {17, 24},
            [ME_KERNEL_EMBEDDING] = {17, 24},
            [ME_KERNEL_INDEX] = {17, 24},
            [ME_KERNEL_COMPILED] = {100, 70}, // entering a compiled function
            [ME_KERNEL_OPTIMIZER] = {17, 17},
            [ME_KERNEL_ADAMW] = {36, 36}, // its foreach passes, of one tensor
        },
    .work =
        {
            [ME_HOST_MICROBATCH] = {700, 350},
            [ME_HOST_EMBEDDING] = {500, 400},
            [ME_HOST_ATTENTION] = {110,
                                   0}, // views and splits around the kernels
            [ME_HOST_ROTARY] = {45, 0},
            [ME_HOST_ACTIVATION] = {49, 0},
            [ME_HOST_RESIDUAL] = {98, 0},
            [ME_HOST_CHECKPOINT] = {250, 450},
            [ME_HOST_HEAD] = {600, 0},
            [ME_HOST_LOSS] = {700, 600},
            [ME_HOST_STEP] = {1500, 1500},
            [ME_HOST_ROUTER] = {200, 120},
            [ME_HOST_AUX_LOSS] = {300, 140},
            [ME_HOST_ALL_GATHER_DISPATCHER] = {800, 80},
            [ME_HOST_ALL_TO_ALL_DISPATCHER] = {1150, 570},
            [ME_HOST_EXPERT_RANKS] = {650, 180}, // where there are several
            [ME_HOST_EXPERTS] = {110, 0},        // splits and puts together
            [ME_HOST_EXPERT] = {17, 0},          // of several, each
        },
    .collective = {115, 105},
    .exchange_us = 80,
    .transfer_us = 110,
};

static const host_costs torch = {
    .launch_s = 7.5e-06,
    .kernel =
        {
            [ME_KERNEL_LINEAR] = {45, 45}, // module, addmm, views
            [ME_KERNEL_LINEAR_DGRAD] = {34, 34},
            [ME_KERNEL_LINEAR_WGRAD] = {28, 28}, // and AccumulateGrad
            [ME_KERNEL_BMM] = {29, 35},
            [ME_KERNEL_FLASH] = {31, 31},
            [ME_KERNEL_FLASH_BACKWARD] = {50, 50},
            [ME_KERNEL_COPY] = {13, 17},
            [ME_KERNEL_STRIDED] = {19, 17},
            [ME_KERNEL_ELEMENTWISE] = {13, 19},
            [ME_KERNEL_CAST] = {13, 19},
            [ME_KERNEL_ACCUMULATE] = {13, 13},
            [ME_KERNEL_SILU] = {15, 21},
            [ME_KERNEL_GELU] = {15, 21},
            [ME_KERNEL_DROPOUT] = {23, 22},
            [ME_KERNEL_SOFTMAX] = {13, 30},
            [ME_KERNEL_MASKED_FILL] = {13, 19},
            [ME_KERNEL_NORM] = {30, 52},
            [ME_KERNEL_REDUCE] = {12, 12},
            [ME_KERNEL_EMBEDDING] = {20, 30},
            [ME_KERNEL_INDEX] = {13, 19},
            [ME_KERNEL_OPTIMIZER] = {4, 4}, // fused or SGD, of one tensor
            [ME_KERNEL_ADAMW] = {7.5, 7.5}, // its foreach passes, of one tensor
        },
    .work =
        {
            [ME_HOST_CHECKPOINT] = {183, 177},
            [ME_HOST_STEP] = {190, 190},
            [ME_HOST_PARAMETER] = {72,
                                   72}, // of an optimizer's loop, beyond that
            [ME_HOST_BACKWARD] = {70, 70},
            [ME_HOST_ACTION] = {60, 200},
            [ME_HOST_INPUT_GROUP] = {30, 30},
            [ME_HOST_WEIGHT_GROUP] = {280, 280},
            [ME_HOST_DDP] = {150, 0},
            [ME_HOST_FSDP] = {900, 1300}, // of a group
        },
    .collective = {28, 28},
    .exchange_us = 95,
    .transfer_us = 14,
};

static const host_costs *const programs[ME_HOST_PROGRAMS] = {
    [ME_HOST_OF_MEGATRON] = &megatron,
    [ME_HOST_OF_TORCH] = &torch,
};

static double pick(const cost *c, bool is_backward)
{
    return is_backward ? c->backward_us : c->forward_us;
}

static int count_bits(unsigned bits)
{
    int n = 0;
    for (; bits != 0; bits &= bits - 1) {
        n++;
    }
    return n;
}

int64_t me_host_ns(const me_rates *rates, me_host_program program,
                   const me_launch *launch)
{
    const host_costs *costs = programs[program];
    const bool is_backward = launch->phase == ME_PHASE_BACKWARD;
    double us = 0;
    if (launch->kind == ME_LAUNCH_KERNEL) {
        us = pick(&costs->kernel[launch->kernel], is_backward);
    } else if (launch->kind == ME_LAUNCH_HOST) {
        us = pick(&costs->work[launch->host], is_backward);
    } else if (launch->kind == ME_LAUNCH_COLLECTIVE) {
        us = pick(&costs->collective, is_backward);
    } else if (launch->kind == ME_LAUNCH_EXCHANGE) {
        us = costs->exchange_us +
             costs->transfer_us * count_bits(launch->transfers);
    }
    return (int64_t)(us * 1e3 * rates->launch_s / costs->launch_s + 0.5);
}

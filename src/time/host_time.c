/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/event.h"
#include "time/rates.h"

/*
 * What PyTorch 2.11 and Megatron-LM's Python take on the host that the H200
 * was measured with. Read off recorded host times, less what recording took,
 * not fitted to any job's; with the launch that host takes, they scale to
 * others. docs/time.md says of each which code it is.
 */
static const double MEASURED_LAUNCH_S = 9.476595499999974e-06;

/** Microseconds in a forward (or outside of both) and in a backward. */
typedef struct cost {
    double forward_us;
    double backward_us;
} cost;

static const cost kernel_costs[ME_KERNEL_COUNT] = {
    [ME_KERNEL_LINEAR] = {145, 145}, // module and custom function
    [ME_KERNEL_LINEAR_DGRAD] = {95, 95},
    [ME_KERNEL_LINEAR_WGRAD] = {62, 62},
    [ME_KERNEL_ROUTER] = {145, 145}, // as of other products
    [ME_KERNEL_ROUTER_DGRAD] = {95, 95},
    [ME_KERNEL_ROUTER_WGRAD] = {62, 62},
    [ME_KERNEL_BMM] = {60, 60},
    [ME_KERNEL_FLASH] = {155, 155},
    [ME_KERNEL_FLASH_BACKWARD] = {150, 150},
    [ME_KERNEL_COPY] = {17, 24},
    [ME_KERNEL_STRIDED] = {32, 32}, // with the view that it needs
    [ME_KERNEL_ELEMENTWISE] = {17, 24},
    [ME_KERNEL_CAST] = {17, 24},
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
};

static const cost host_costs[ME_HOST_COUNT] = {
    [ME_HOST_MICROBATCH] = {700, 350}, [ME_HOST_EMBEDDING] = {500, 400},
    [ME_HOST_ATTENTION] = {110, 0}, // views and splits around the kernels
    [ME_HOST_ROTARY] = {45, 0},        [ME_HOST_ACTIVATION] = {49, 0},
    [ME_HOST_RESIDUAL] = {98, 0},      [ME_HOST_CHECKPOINT] = {250, 450},
    [ME_HOST_HEAD] = {600, 0},         [ME_HOST_LOSS] = {700, 600},
    [ME_HOST_STEP] = {1500, 1500},
};

static const double COLLECTIVE_FORWARD_US = 115;
static const double COLLECTIVE_BACKWARD_US = 105;
static const double TRANSFER_US = 110; // each send and receive of an exchange
static const double EXCHANGE_US = 80;

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

int64_t me_host_ns(const me_rates *rates, const me_launch *launch)
{
    const bool is_backward = launch->phase == ME_PHASE_BACKWARD;
    double us = 0;
    if (launch->kind == ME_LAUNCH_KERNEL) {
        us = pick(&kernel_costs[launch->kernel], is_backward);
    } else if (launch->kind == ME_LAUNCH_HOST) {
        us = pick(&host_costs[launch->host], is_backward);
    } else if (launch->kind == ME_LAUNCH_COLLECTIVE) {
        us = is_backward ? COLLECTIVE_BACKWARD_US : COLLECTIVE_FORWARD_US;
    } else if (launch->kind == ME_LAUNCH_EXCHANGE) {
        us = EXCHANGE_US + TRANSFER_US * count_bits(launch->transfers);
    }
    return (int64_t)(us * 1e3 * rates->launch_s / MEASURED_LAUNCH_S + 0.5);
}

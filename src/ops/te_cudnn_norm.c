/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/te_cudnn_norm.h"

#include "base/size.h"

#include <string.h>

enum {
    MEASURED_SMS = 132,
    FEWEST_ROWS = 64,
    FORWARD_BYTES = 32,
    PART_ROWS = 10000, /**< that a general kernel sums up at once */
    GENERAL = '-' /**< a kernel for any columns, of a shape in the tables */
};

/** What a kernel asks for: quarters of a sum of all columns, in float32, each row
 *  or each of the card's SMs, and a little more. */
typedef struct norm_kernel {
    char name;
    bool is_by_row;
    uint8_t quarters;
    uint8_t more_bytes;
} norm_kernel;

static const norm_kernel kernels[] = {
    {'a', false, 4, 64},   {'b', false, 6, 96},  {'c', false, 8, 64},
    {'d', false, 8, 112},  {'e', false, 12, 96}, {'f', false, 16, 64},
    {'g', false, 16, 112}, {'h', false, 24, 64}, {'i', false, 24, 96},
    {'j', false, 32, 112}, {'k', false, 48, 96}, {'l', false, 64, 112},
    {'m', false, 192, 96}, {'n', true, 2, 64},   {'o', true, 3, 96},
    {'p', true, 4, 64},    {'q', true, 4, 112},  {'r', true, 6, 96},
    {'s', true, 8, 64},    {'t', true, 8, 112},  {'u', true, 12, 96},
    {'v', true, 16, 112},
};

/** By rows 64, 128, 192, 256, 384 …: 2^k, and 3 of 2^(k-1); '.': not measured. */
typedef struct measured_norm {
    uint32_t columns;
    const char *kernels;
} measured_norm;

/** On an H200 with cuDNN 9.19, of bfloat16; float16 had the same in 345 of 348. */
static const measured_norm rms_backward[] = {
    {64, "pp.p.p.h.h.h.h.h.h.h.h.h.h.h.h.h.h"},
    {128, "nn.n.n.n.h.h.f.k.h.h.m.h.h.h.h.h.h"},
    {192, "pp.p.p.h.h.h.h.h.h.h.h.h.h.h.h.h"},
    {256, "oo.o.o.n.h.h.h.h.h.h.h.f.f.f.f.f"},
    {320, "pp.p.p.f.h.h.h.h.h.h.h.h"},
    {384, "nn.n.n.n.h.h.h.h.h.h.h.h"},
    {512, "ooooooeeeeeeeehhhhhhhh.h"},
    {576, "pppppppfhfhfhfhhhhhhhh.h"},
    {640, "nn.n.n.n.f.f.f.h.h.h.h.h"},
    {768, "ooooooeeeeeehfhhhhhhhh.h"},
    {896, "nnnnnnpnnfhfhfhhhhhhhh.h"},
    {1024, "ooooooceeeeehfhhhhhhhh.h"},
    {1152, "nnnnnnpnhfhfhfhhhhhhhh.h"},
    {1280, "oooooopeeeefhfhhhhhhhh.h"},
    {1408, "nn.n.n.n.f.f.f.h.h.h.h.h"},
    {1536, "ooooooceechfhfhhhhhhhh.h"},
    {1792, "oooooopeeehfhhhhhhhhhh.h"},
    {1920, "pp.p.p.f.f.f.f.f.f.f.f.f"},
    {2048, "rrrrnrciiiicffchhhhhhh.h"},
    {2304, "rrrrrrhiiiiifffhhhhhhh.h"},
    {2560, "rrrrnrciiiiiihchhhhhhh.h"},
    {2816, "rrrrrrhiiiiiihhhhhhhhh.h"},
    {2880, "----------------------.-"},
    {3072, "rrrrnrciiiiiihchchchcc.c"},
    {3328, "rrrrcrhiiiiiihhhhhhhhh.h"},
    {3584, "rrrrcrciiiiichcccccccc.c"},
    {3840, "rr.r.c.c.c.h.h.h.h.h.h.h"},
    {4096, "ppppcccccccccccccccccc.c"},
    {4608, "ppppcccccccccccccccccc"},
    {5120, "ppppcccccccccccccccccc"},
    {5376, "sspccccccccccccccccccc"},
    {6144, "ppppcccccccccccccccccc"},
    {6656, "ppppccccccccccccccccci"},
    {7168, "sspccccccccccccccccccc"},
    {7680, "sscccccccccccccccccccc"},
    {8192, "sscccccccccccccccccccc"},
    {9216, "ssccccccccccccccccccc"},
    {10240, "ssccccccccccccccccccc"},
    {12288, "sscccccccccccccccccc"},
    {14336, "sscccccccccccccccccc"},
    {16384, "ubaaaaaaaaaaaaaaaaaa"},
    {18432, "ubbbbbbbbbbbbbbbbbb"},
    {20480, "ub.a.a.a.a.a.a.a.a"},
    {0, NULL},
};

static const measured_norm layer_backward[] = {
    {64, "tt.t.t.t.l.l.l.l.l.l.l.l.l.l.l.l.l"},
    {128, "nn.n.n.c.c.h.h.h.h.h.h.h.h.h.h.h.l"},
    {192, "tt.t.t.t.l.l.l.l.l.l.l.l.l.l.l.l"},
    {256, "nn.n.n.q.j.j.j.j.j.j.j.l.l.l.l.l"},
    {320, "tt.t.t.t.l.l.l.l.l.l.l.l"},
    {384, "nn.n.n.c.c.c.l.l.l...l.l"},
    {512, "nnnnnnccccccccjjjjjj.l.l"},
    {576, "tttttttj.lllllllllllll"},
    {640, "nn.n.n.c.c.c.c.c.l.l.l.l"},
    {768, "nnnnnnccccccjjjjjjjjll.l"},
    {896, "nnnnnn.cccccccclllllll.l"},
    {1024, "nnnnnnccccccjjjjjjjl.l.l"},
    {1152, "nnnn.nccccccccllllllll.l"},
    {1280, "nnnnnncccccjjjjjjj.l.l.l"},
    {1408, "nn.n.n.c.c.c.l.l.l.l.l.l"},
    {1536, "nn.nnnccccjjjjjjjjllll.l"},
    {1792, "ssqqqqcgggglllll.lllll.l"},
    {1920, "pp.p.p.h.h.h.h.h.h.h.h.h"},
    {2048, "ssccccccccccccchhhhhhh.h"},
    {2304, "sscccccccccccc.hhhhhh..h"},
    {2560, "ssccccccccccchchhhhhhh.h"},
    {2816, "sscccccccccc.hchhhhhhh.h"},
    {2880, "--------------------.-.-"},
    {3072, "sscccccccc.cchfhhhhhhh.f"},
    {3328, "ssccccccccccchchhhhh.h.h"},
    {3584, "sscccccc.cccchfffhffff"},
    {3840, "ss.c.c.c.c.c.h.h.h.h.h.h"},
    {4096, "sspcccccccccfhffff.ccc.c"},
    {4608, "sspccc.cccccffffffffff"},
    {5120, "sspccccccccfffffffff.f"},
    {5376, "sspc.ccccccccccccccccc"},
    {6144, "sspcccccccfffffffc.c.c"},
    {6656, "ss.ccccccccccfffffffff"},
    {7168, "sscccccccccccfff.fffff"},
    {7680, "sscccccccccccccccccccc"},
    {8192, "sscccccccccccc.cccccc"},
    {9216, "sscccccccccccaaaaaaaa"},
    {10240, "sscccccccccc.cccaaaaa"},
    {12288, "sscccccccccaaaaaaaaa"},
    {14336, "vvaggaaaaa.aaaaaaaaa"},
    {16384, "vddddaaaaaaaaaaaaa.a"},
    {18432, "vddddaaa.aaaaaaaaaa"},
    {20480, "vd.d.a.a.a.a.a.a.a"},
    {0, NULL},
};

/** Columns that cuDNN's own kernels take; others fall back to general ones. */
static bool has_own_kernel(const me_te_norm_call *call)
{
    const uint64_t step = call->is_layer_norm && !call->is_backward ? 32 : 64;
    return call->columns % step == 0;
}

/** Two statistics of each row (LayerNorm: four), and sums of each part of the rows
 *  where there are several: 142 shapes. */
static uint64_t general_bytes(const me_te_norm_call *call)
{
    const uint64_t sums = call->is_layer_norm ? 2 : 1;
    const uint64_t parts = me_div_up(call->rows, PART_ROWS);
    return me_size_add(
        me_size_mul(8 * sums, call->rows),
        me_size_mul(4 * sums,
                    me_size_mul(call->columns, parts > 1 ? parts : 0)));
}

static uint64_t kernel_bytes(const me_te_norm_call *call, char name)
{
    if (name == GENERAL) {
        return general_bytes(call);
    }
    const norm_kernel *kernel = kernels;
    while (kernel->name != name) {
        kernel++;
    }
    const uint64_t each = kernel->is_by_row ? call->rows : MEASURED_SMS;
    return me_size_add(
        me_size_mul(kernel->quarters, me_size_mul(each, call->columns)),
        kernel->more_bytes);
}

static uint64_t ratio_percent(uint64_t a, uint64_t b)
{
    const uint64_t more = me_max_u64(a, b);
    return me_size_mul(more, 100) / me_max_u64(1, me_min_u64(a, b));
}

/** The measured columns that are next. */
static const measured_norm *next_columns(const me_te_norm_call *call)
{
    const measured_norm *best =
        call->is_layer_norm ? layer_backward : rms_backward;
    for (const measured_norm *n = best; n->columns != 0; n++) {
        if (ratio_percent(n->columns, call->columns) <
            ratio_percent(best->columns, call->columns)) {
            best = n;
        }
    }
    return best;
}

/** Rows of place @p i in the tables. */
static uint64_t rows_of(size_t i)
{
    if (i == 0) {
        return FEWEST_ROWS;
    }
    const uint64_t power = (uint64_t)FEWEST_ROWS << ((i + 1) / 2);
    return i % 2 == 1 ? power : power / 2 * 3;
}

/** The place of the measured rows that are next; the more of two that are as
 *  far. */
static size_t next_rows(const measured_norm *norm, uint64_t rows)
{
    const size_t n = strlen(norm->kernels);
    size_t best = 0; // which all columns have
    for (size_t i = 0; i < n; i++) {
        if (norm->kernels[i] != '.' && ratio_percent(rows_of(i), rows) <=
                                           ratio_percent(rows_of(best), rows)) {
            best = i;
        }
    }
    return best;
}

uint64_t me_te_cudnn_norm_workspace_bytes(const me_te_norm_call *call)
{
    if (!call->is_backward) {
        return has_own_kernel(call) ? FORWARD_BYTES : 1;
    }
    if (!has_own_kernel(call)) {
        return me_max_u64(general_bytes(call), 1);
    }
    const measured_norm *norm = next_columns(call);
    return kernel_bytes(call, norm->kernels[next_rows(norm, call->rows)]);
}

/** The kernel of @p rows; none where it was not measured, nor the same on both
 *  sides. */
static char kernel_of(const measured_norm *norm, uint64_t rows)
{
    const size_t n = strlen(norm->kernels);
    char before = '\0';
    for (size_t i = 0; i < n; i++) {
        const char name = norm->kernels[i];
        if (name == '.') {
            continue;
        }
        if (rows_of(i) >= rows) {
            if (rows_of(i) != rows && before != name) {
                return '\0';
            }
            return name;
        }
        before = name;
    }
    return '\0';
}

bool me_te_cudnn_norm_is_measured(const me_card *card,
                                  const me_te_norm_call *call)
{
    const bool is_half =
        call->dtype == ME_DTYPE_BFLOAT16 || call->dtype == ME_DTYPE_FLOAT16;
    if (!is_half || call->margin != 0 ||
        card->multiprocessors != MEASURED_SMS) {
        return false;
    }
    if (!call->is_backward || !has_own_kernel(call)) {
        return true;
    }
    const measured_norm *norm = next_columns(call);
    return norm->columns == call->columns &&
           kernel_of(norm, call->rows) != '\0';
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/te_cudnn_norm.h"

#include "base/size.h"

enum {
    MEASURED_ROWS = 5,
    MEASURED_SMS = 132,
    FORWARD_BYTES = 32,
    PART_ROWS = 8192, /**< of columns that other kernels take, in one part */
};

static const uint64_t measured_rows[MEASURED_ROWS] = {64, 512, 2048, 8192,
                                                      65536};

/** The workspaces of a norm's backward by rows; 0: not measured. */
typedef struct measured_norm {
    uint32_t columns;
    uint32_t bytes[MEASURED_ROWS];
} measured_norm;

static const measured_norm rms_backward[] = {
    {64, {16448, 131136, 202816, 202816, 202816}},
    {128, {16448, 131136, 405568, 270400, 405568}},
    {192, {49216, 393280, 608320, 608320, 608320}},
    {256, {49248, 393312, 811072, 811072, 811072}},
    {320, {0, 655424, 1013824, 1013824, 1013824}},
    {384, {0, 0, 1216576, 1216576, 0}},
    {512, {98400, 786528, 811104, 811104, 1622080}},
    {576, {0, 0, 1216576, 1216576, 0}},
    {640, {0, 655424, 1351744, 1351744, 0}},
    {768, {0, 1179744, 1216608, 1622080, 2433088}},
    {896, {0, 917568, 1892416, 1892416, 2838592}},
    {1024, {196704, 1572960, 1622112, 2162752, 3244096}},
    {1152, {0, 0, 2433088, 2433088, 0}},
    {1280, {0, 0, 2027616, 2703424, 0}},
    {1536, {295008, 2359392, 1622080, 3244096, 4866112}},
    {1792, {0, 2752608, 2838624, 5677120, 0}},
    {2048, {786528, 6291552, 6488160, 4325440, 6488128}},
    {2304, {0, 7077984, 7299168, 4866112, 7299136}},
    {2560, {0, 0, 8110176, 8110144, 0}},
    {3072, {1179744, 9437280, 9732192, 9732160, 9732160}},
    {3584, {0, 0, 11354208, 11354176, 0}},
    {4096, {1048640, 4325440, 4325440, 4325440, 4325440}},
    {4608, {0, 4866112, 4866112, 4866112, 0}},
    {5120, {1310784, 5406784, 5406784, 5406784, 5406784}},
    {6144, {0, 6488128, 6488128, 6488128, 6488128}},
    {7168, {3670080, 7569472, 7569472, 7569472, 7569472}},
    {8192, {4194368, 8650816, 8650816, 8650816, 8650816}},
    {9216, {0, 9732160, 9732160, 9732160, 0}},
    {10240, {0, 0, 10813504, 10813504, 0}},
    {12288, {6291520, 12976192, 12976192, 12976192, 0}},
    {14336, {0, 0, 15138880, 15138880, 0}},
    {16384, {0, 8650816, 8650816, 8650816, 0}},
    {18432, {0, 0, 0, 14598240, 0}},
    {20480, {0, 0, 10813504, 10813504, 0}},
    {0, {0}},
};

static const measured_norm layer_backward[] = {
    {64, {0, 262256, 540784, 540784, 540784}},
    {128, {0, 131136, 135232, 405568, 405568}},
    {192, {0, 786544, 1622128, 1622128, 1622128}},
    {256, {0, 262208, 1081456, 1081456, 1081456}},
    {320, {0, 0, 2703472, 2703472, 0}},
    {384, {0, 0, 405568, 3244144, 0}},
    {512, {0, 524352, 540736, 540736, 2162800}},
    {576, {0, 0, 4866160, 4866160, 0}},
    {640, {0, 0, 675904, 675904, 0}},
    {768, {0, 786496, 811072, 3244144, 3244144}},
    {896, {0, 0, 946240, 946240, 0}},
    {1024, {0, 1048640, 1081408, 4325488, 8650864}},
    {1152, {0, 0, 1216576, 1216576, 0}},
    {1280, {0, 0, 1351744, 5406832, 0}},
    {1536, {0, 1572928, 1622080, 6488176, 12976240}},
    {1792, {0, 0, 0, 15138928, 0}},
    {2048, {0, 2162752, 2162752, 2162752, 6488128}},
    {2304, {0, 0, 2433088, 2433088, 0}},
    {2560, {0, 0, 2703424, 8110144, 0}},
    {3072, {0, 3244096, 3244096, 9732160, 9732160}},
    {3584, {0, 0, 3784768, 11354176, 0}},
    {4096, {0, 4325440, 4325440, 12976192, 4325440}},
    {4608, {0, 0, 0, 9732160, 0}},
    {5120, {0, 5406784, 5406784, 10813504, 10813504}},
    {6144, {0, 6488128, 6488128, 12976192, 6488128}},
    {7168, {0, 7569472, 7569472, 15138880, 15138880}},
    {8192, {0, 8650816, 8650816, 8650816, 8650816}},
    {9216, {0, 0, 9732160, 4866112, 0}},
    {10240, {0, 0, 10813504, 10813504, 0}},
    {12288, {0, 12976192, 12976192, 6488128, 0}},
    {14336, {0, 0, 7569472, 7569472, 0}},
    {16384, {0, 8650816, 8650816, 8650816, 0}},
    {0, {0}},
};

/** Columns that cuDNN's own kernels take; others fall back to general ones. */
static bool has_own_kernel(const me_te_norm_call *call)
{
    const uint64_t step = call->is_layer_norm && !call->is_backward ? 32 : 64;
    return call->columns % step == 0;
}

/** Of other columns: two statistics of each row (LayerNorm: four), and sums of all
 *  parts of the rows but one. */
static uint64_t general_bytes(const me_te_norm_call *call)
{
    const uint64_t sums = call->is_layer_norm ? 2 : 1;
    const uint64_t parts = me_div_up(call->rows, PART_ROWS);
    return me_size_add(
        me_size_mul(8 * sums, call->rows),
        me_size_mul(4 * sums,
                    me_size_mul(call->columns, me_max_u64(parts, 1) - 1)));
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

/** The measured rows that are next; the more of two that are as far. */
static int next_rows(const measured_norm *norm, uint64_t rows)
{
    int best = MEASURED_ROWS - 2; // the rows that all columns have
    for (int i = 0; i < MEASURED_ROWS; i++) {
        const uint64_t far = ratio_percent(measured_rows[i], rows);
        if (norm->bytes[i] != 0 &&
            far <= ratio_percent(measured_rows[best], rows)) {
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
    const uint64_t bytes = norm->bytes[next_rows(norm, call->rows)];
    return norm->columns == call->columns
               ? bytes
               : me_size_mul(bytes, call->columns) / norm->columns;
}

bool me_te_cudnn_norm_is_measured(const me_card *card,
                                  const me_te_norm_call *call)
{
    if (call->dtype != ME_DTYPE_BFLOAT16 || call->margin != 0 ||
        card->multiprocessors != MEASURED_SMS) {
        return false;
    }
    if (!call->is_backward) {
        return true;
    }
    if (!has_own_kernel(call)) {
        return call->rows <= PART_ROWS;
    }
    const measured_norm *norm = next_columns(call);
    if (norm->columns != call->columns) {
        return false;
    }
    for (int i = 0; i < MEASURED_ROWS; i++) {
        const bool is_between = i + 1 < MEASURED_ROWS &&
                                call->rows > measured_rows[i] &&
                                call->rows < measured_rows[i + 1];
        if (norm->bytes[i] != 0 &&
            (measured_rows[i] == call->rows ||
             (is_between && norm->bytes[i] == norm->bytes[i + 1]))) {
            return true;
        }
    }
    return false;
}

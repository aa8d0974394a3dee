/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/page_files.h"

const me_page_file me_page_files[] = {{NULL, NULL, 0}};

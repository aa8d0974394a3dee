#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Published jobs with experts: nothing of them is left out; the report of one.
set -eu
cd "$(dirname "$0")"
memest=${MEMEST:-../../build/release/memest}

for job in deepseek_v3_h100 deepseek_v3_gb200 qwen3_235b qwen3_30b kimi_k2 \
    mixtral_8x7b mixtral_8x22b glm_4_5 gpt_oss_120b; do
    RUN="$memest --strict --dump plan --" "./$job.sh" | grep -c ^rank |
        sed "s/^/$job, ranks: /"
done

RUN="$memest --strict --set device.name=h100-80gb --" ./mixtral_8x7b.sh |
    sed '/^Modules/,$d'

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""How many executions a second and core calculon's own search weighs, of Llama 3
70B on 512 H100 with 1,024 samples a step: `calculon.py CHECKOUT [SECONDS]`, where
CHECKOUT is calculon's source. All its loops but offloading, each of its calls as
it comes, until SECONDS of CPU are over."""

import json
import logging
import os
import sys
import time
import types

MODEL = {
    "name": "llama-3-70b",
    "hidden": 8192,
    "feedforward": 28672,
    "seq_size": 8192,
    "attn_heads": 64,
    "attn_size": 128,
    "num_blocks": 80,
}
GPUS = 512
BATCH = 1024


def groups(llm, search, app, system):
    """Its search's groups, in its order."""
    for tp in llm.get_all_tensor_parallelisms(GPUS, app.hidden, app.attn_heads):
        for pp in llm.get_all_pipeline_parallelisms(GPUS, tp, app.num_blocks):
            dp = llm.get_data_parallelism(GPUS, tp, pp)
            batch = search.get_batch_size(dp, BATCH)
            for chunks in llm.get_valid_pipeline_interleavings(app.num_blocks, pp):
                for recompute in ("full", "attn_only", "none"):
                    for shards in (True, False) if dp > 1 else (False,):
                        for kind in ("ar", "p2p_rs_ag", "rs_ag"):
                            yield (False, 1, False, GPUS, BATCH, "float16", app,
                                   system, tp, pp, dp, chunks, batch, recompute,
                                   shards, kind, [True], False, True, True)


def main():
    checkout = sys.argv[1]
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 20.0
    sys.path.insert(0, checkout)
    for name in ("numpy", "pandas", "psutil"):  # the search asks none of them
        sys.modules.setdefault(name, types.ModuleType(name))
    sys.modules["psutil"].cpu_count = lambda logical=False: 1
    logging.disable(logging.CRITICAL)
    from calculon.llm.llm import Llm
    from calculon.llm.optimal_execution import OptimalExecution
    from calculon.system import System

    path = os.path.join(checkout, "systems", "h100_80g_nvl8.json")
    with open(path, encoding="utf-8") as file:
        system = System(json.load(file))
    app = Llm.Application(MODEL)
    every = list(groups(Llm, OptimalExecution, app, system))
    every = every[::max(1, len(every) // 97)]  # of all kinds
    n = 0
    good = 0
    begin = time.process_time()
    for group in every:
        _, executions, fit, *_ = OptimalExecution.search(*group)
        n += executions
        good += fit
        if time.process_time() - begin > seconds:
            break
    spent = time.process_time() - begin
    print(f"calculon: {n} executions, {good} good, {spent:.2f} s of CPU, "
          f"{n / spent:.1f} a second and core")


if __name__ == "__main__":
    main()

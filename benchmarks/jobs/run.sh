#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Seconds, memory and events of whole runs of memest, with the budget of each
# job beside them. `run.sh [RUNS [JOB…]]` builds the release preset and runs
# every job RUNS times (5); MEMEST=FILE measures that program instead.
#
# There is no peer to hold these against in the same run: they are figures of
# the machine that is printed with them, and nothing fails over them.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
if [ -z "${MEMEST:-}" ]; then
    cd "$root"
    cmake --preset release >/dev/null
    cmake --build build/release >/dev/null
    MEMEST=$root/build/release/memest
fi
exec python3 "$here/run.py" "$MEMEST" "$root" "$@"

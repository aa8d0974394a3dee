#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Events a second, and memory, of the replay against a straightforward Python
# script on the same stream. `run.sh REPLAY [EVENTS]`, where REPLAY is memest
# or replay_tool. Both must report the same peaks.
set -eu
replay=$1
events=${2:-10000000}
here=$(dirname "$0")
stream=$(mktemp)
trap 'rm -f "$stream" "$stream.c" "$stream.py"' EXIT
python3 "$here/make_stream.py" "$events" >"$stream"
lines=$(wc -l <"$stream")

# CPU seconds (user, system) and peak KiB of a command, whose output goes to a
# file
measure() {
    out=$1
    shift
    # shellcheck disable=SC2069 # the figures go to the caller, output to the file
    /usr/bin/time -f "%U %S %M" "$@" 2>&1 >"$out"
}

c=$(measure "$stream.c" "$replay" replay "$stream" --format json)
python=$(measure "$stream.py" python3 "$here/replay.py" "$stream")
python3 - "$stream.c" "$stream.py" "$lines" "$c" "$python" <<'PY'
import json, sys
peak = json.load(open(sys.argv[1]))["peak"]
script = open(sys.argv[2]).read().split()
same = script[2] == str(peak["reserved"]) and script[5] == str(peak["requested"])
n = int(sys.argv[3])
for name, text in (("memest", sys.argv[4]), ("python", sys.argv[5])):
    user, system, kib = text.split()
    seconds = f"{float(user) + float(system):.2f}"
    print(f"{name}: {n} events in {seconds} s of CPU, "
          f"{n / float(seconds) / 1e6:.2f} million a second, {int(kib) / 1024:.1f} MiB")
print(f"ratio: {float(sys.argv[5].split()[0]) / float(sys.argv[4].split()[0]):.1f}",
      "same peaks" if same else "DIFFERENT PEAKS")
sys.exit(0 if same else 1)
PY

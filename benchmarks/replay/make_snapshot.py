# SPDX-License-Identifier: BSD-3-Clause
"""The stream of make_stream.py as PyTorch's memory snapshot in JSON, with a
stack of FRAMES frames at each entry.
`make_stream.py EVENTS | make_snapshot.py FRAMES > snapshot.json`"""
import json
import sys


def main():
    frames = [{"filename": f"/opt/venv/lib/python3.12/site-packages/megatron/core/part_{i}.py",
               "line": 100 + i, "name": f"forward_{i}"} for i in range(int(sys.argv[1]))]
    stack = json.dumps(frames)
    sizes, first = {}, True
    sys.stdout.write('{"segments": [], "device_traces": [[')
    for number, line in enumerate(sys.stdin):
        action, *rest = line.rstrip("\n").split("\t")
        if action == "alloc":
            sizes[rest[1]] = int(rest[0])
            block = rest[1]
        else:
            block = rest[0]
        # blocks of unlike addresses: 2 MiB apart
        sys.stdout.write(
            f'{"" if first else ", "}{{"action": "{action}", "addr": {int(block) << 21}, '
            f'"size": {sizes[block]}, "stream": 0, "time_us": {number}, "frames": {stack}}}')
        first = False
    sys.stdout.write("]]}\n")


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the jobs of jobs.txt through memest and prints what each run took.

run.py MEMEST ROOT [RUNS [JOB...]]
"""
import os
import platform
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

import tokens


def read_jobs(path):
    """name -> (budget in seconds or None, arguments), in the file's order."""
    jobs = {}
    text = open(path, encoding="utf-8").read().replace("\\\n", " ")
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            name, budget, words = line.split(None, 2)
            jobs[name] = (None if budget == "-" else float(budget),
                          shlex.split(words))
    return jobs


def run_once(command):
    """(CPU seconds, wall seconds, peak KiB, what it logged) of a command."""
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True)
    log = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{shlex.join(command)}: exit {process.returncode}\n{log}")
    return (usage.ru_utime + usage.ru_stime, time.monotonic() - begin,
            usage.ru_maxrss, log)


def fill_in(arguments, folder):
    """The arguments with a file of token counts where they want one."""
    if not any("@TOKENS@" in a for a in arguments):
        return arguments
    path = os.path.join(folder, "tokens.txt")
    tokens.write(path)
    return [a.replace("@TOKENS@", path) for a in arguments]


def machine(memest, root):
    model = "unknown processor"
    for line in open("/proc/cpuinfo", encoding="utf-8"):
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    cache = os.path.join(os.path.dirname(memest), "CMakeCache.txt")
    compiler = "unknown compiler"
    if os.path.exists(cache):
        entry = re.search(r"CMAKE_C_COMPILER:\w+=(.*)",
                          open(cache, encoding="utf-8").read())
        version = subprocess.run([entry.group(1), "--version"],
                                 capture_output=True, text=True, check=True)
        compiler = version.stdout.splitlines()[0]
    return (f"{model}, {os.cpu_count()} cores, {platform.system()} "
            f"{platform.release()}, {compiler}")


def main(folder):
    memest, root = sys.argv[1:3]
    runs = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    jobs = read_jobs(os.path.join(os.path.dirname(__file__), "jobs.txt"))
    names = sys.argv[4:] or [n for n in jobs if not n.startswith("slow-")]
    os.chdir(root)
    print(machine(memest, root))
    print(f"median of {runs} runs, whole process: CPU with one thread, all: with "
          f"as many as CPUs; budget in seconds of CPU\n")
    print(f"{'job':26} {'CPU s':>7} {'all s':>7} {'budget':>7} {'MiB':>6} "
          f"{'ranks':>6} {'programs':>8} {'events':>11} {'ns/event':>8}")
    for name in names:
        budget, arguments = jobs[name]
        arguments = fill_in(arguments, folder)
        command = [memest, *arguments, "--log-level", "info"]
        taken = [run_once([*command, "--threads", "1"]) for _ in range(runs)]
        cpu, kib = (statistics.median(t[i] for t in taken) for i in (0, 2))
        wall = statistics.median(run_once(command)[1] for _ in range(runs))
        log = taken[0][3]
        ranks, programs = re.search(r"plan: (\d+) ranks, (\d+) programs",
                                    log).groups()
        events = int(re.search(r"simulate: (\d+) events", log).group(1))
        print(f"{name:26} {cpu:7.3f} {wall:7.3f} "
              f"{'-' if budget is None else format(budget, '.2f'):>7} "
              f"{kib / 1024:6.1f} {ranks:>6} {programs:>8} {events:11} "
              f"{cpu / events * 1e9:8.1f}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        main(scratch)

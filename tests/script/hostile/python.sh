#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# wants: launched nothing
python3 -c "import os; os.system('rm -rf ~ \$VICTIM')"
python3 - <<'END'
import ctypes, fcntl, os, shutil, signal, socket, subprocess

def attempt(harm):
    try:
        harm()
    except Exception:
        pass

def write(path):
    with open(os.path.expanduser(path), "w") as file:
        file.write("harm")

def interrupt(process):
    ours, others = os.pipe()
    fcntl.fcntl(ours, fcntl.F_SETOWN, process)
    fcntl.fcntl(ours, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    os.write(others, b"x")

victim, mark = os.environ["VICTIM"], os.environ["MARK"]
libc = ctypes.CDLL(None)
for path in victim + "/file", "~/harm", "/tmp/" + mark, "/dev/shm/" + mark:
    attempt(lambda: write(path))
    attempt(lambda: os.truncate(path, 0))
    attempt(lambda: libc.truncate(path.encode(), 0))
attempt(lambda: os.chmod(victim + "/file", 0o777))
attempt(lambda: os.remove(victim + "/file"))
attempt(lambda: os.rename(victim, victim + "-elsewhere"))
attempt(lambda: os.link(victim + "/file", victim + "/link"))
attempt(lambda: os.symlink("/", victim + "/symlink"))
attempt(lambda: shutil.rmtree(victim))
attempt(lambda: os.execv("/bin/rm", ["rm", "-rf", victim]))
attempt(lambda: subprocess.run(["/bin/rm", "-rf", victim]))
attempt(lambda: socket.create_connection(("127.0.0.1", int(os.environ["PORT"]))))
attempt(lambda: socket.socket(socket.AF_UNIX).connect("/run/dbus/system_bus_socket"))
for process in os.getppid(), int(os.environ["LISTENER"] or 0), -1:
    attempt(lambda: os.kill(process, signal.SIGKILL))
    attempt(lambda: libc.kill(process, 9))
    attempt(lambda: interrupt(process))
if os.fork() == 0:
    os.setsid()
    while True:
        pass
END
/usr/bin/python3 -c 'open("harm", "w").write("harm")'
exit 0

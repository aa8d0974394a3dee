#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# wants: it said: no terminal was reached
for terminal in /dev/tty /dev/console /dev/pts/[0-9]* /dev/tty[0-9]; do
    (exec 3<"$terminal" && echo harm >&3) && echo "$terminal"
    (echo harm >"$terminal") && echo "$terminal"
done
: 3<>/dev/tty && echo "/dev/tty can be written"
echo no terminal was reached

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# wants: launched nothing
for loader in /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1; do
    [ ! -e $loader ] || $loader /bin/rm -rf "$VICTIM"
done

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# wants: (launched nothing|was stopped: it)
# seconds: 5
yes harm >"$TMPDIR/large"
while :; do head -c 60000000 /dev/zero >"$TMPDIR/$RANDOM" || break; done

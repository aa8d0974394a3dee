#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# wants: (was stopped: more than 128 processes at once|launched nothing)
python3 -c '
import os
while True:
    os.fork()
'

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# wants: 'python3 -c .*gave no value here
python3 -c 'text = "x" * (1 << 40)'
python3 -c '
while True:
    pass
'

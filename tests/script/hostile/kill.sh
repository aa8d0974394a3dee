#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# wants: ended with exit code 4 and launched nothing
kill -9 -1
kill -9 $PPID
kill -STOP $$
kill -9 0
exit 4

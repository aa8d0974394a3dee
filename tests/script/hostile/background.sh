#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# wants: ended with exit code 3 and launched nothing
(trap '' TERM HUP; while :; do :; done) &
setsid bash -c 'while :; do :; done' "$0" &
nohup bash -c 'while :; do :; done' "$0" &
set -m
(while :; do :; done) &
disown -a
exit 3

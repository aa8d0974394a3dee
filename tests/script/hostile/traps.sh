#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# wants: was stopped: it took more than 3 seconds
# seconds: 3
trap '' TERM INT HUP QUIT ALRM USR1
trap 'while :; do :; done' EXIT
while :; do sleep 1; done

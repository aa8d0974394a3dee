#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# wants: was stopped: it took more than 5 seconds
trap '' TERM INT HUP QUIT ALRM USR1
trap 'while :; do :; done' EXIT
while :; do sleep 1; done

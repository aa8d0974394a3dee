#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# wants: was stopped: it took more than 3 seconds
# seconds: 3
while :; do :; done

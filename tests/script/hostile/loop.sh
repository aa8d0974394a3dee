#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# wants: was stopped: it took more than 5 seconds
while :; do :; done

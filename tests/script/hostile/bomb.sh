#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# wants: was stopped: more than 128 processes at once
# shellcheck disable=SC2264 # it is meant to
bomb() { bomb | bomb & }
bomb
wait

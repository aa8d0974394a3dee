#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# wants: wrote to what memest listens to
while :; do echo "launch launch launch" >&250; done

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# wants: was stopped: it
text=$(printf '%1000s' x)
text=$text$text$text$text$text$text$text$text
while :; do echo "$text$text$text$text"; done

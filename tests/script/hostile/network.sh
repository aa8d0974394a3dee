#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# wants: it said: nothing was reached
exec 3<>"/dev/tcp/127.0.0.1/$PORT" && echo hello >&3
curl "http://127.0.0.1:$PORT"
awk -v port="$PORT" 'BEGIN { print "x" |& ("/inet/tcp/0/127.0.0.1/" port) }'
echo nothing was reached

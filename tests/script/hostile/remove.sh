#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# wants: launched nothing
rm -rf "$VICTIM"
/bin/rm -rf "$VICTIM"
find "$VICTIM" -delete
mv "$VICTIM" "$VICTIM.away"
truncate -s 0 "$VICTIM/file"
: >"$VICTIM/file"
chmod 000 "$VICTIM/file"
touch "$VICTIM/new"

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# wants: launched nothing
echo harm >>"$HOME/.bashrc"
echo harm >"$MARK"
echo harm >"/tmp/$MARK"
echo harm >"/dev/shm/$MARK"
ln -s "$VICTIM/file" "$TMPDIR/link"
echo harm >>"$TMPDIR/link"
awk 'BEGIN { print "harm" > ENVIRON["VICTIM"] "/file" }'
sed -i s/keep/harm/ "$VICTIM/file"
echo 1 >/proc/sys/vm/drop_caches

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# wants: launched nothing
exec /usr/bin/python3 -c '
import os, socket
for path in os.environ["VICTIM"] + "/file", "/tmp/" + os.environ["MARK"]:
    try:
        open(path, "w").write("harm")
    except OSError:
        pass
s = socket.socket()
s.connect(("127.0.0.1", int(os.environ["PORT"])))
'

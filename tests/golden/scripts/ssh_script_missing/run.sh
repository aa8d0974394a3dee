#!/bin/bash
for host in worker0 worker1; do
    ssh "$host" "cd /nowhere && bash /nowhere/node.sh" < /dev/null
done

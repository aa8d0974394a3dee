#!/usr/bin/env bash
set -e
cd "$(dirname "$(readlink -f "$0")")"
source ./common.inc

nodes=$1
size=$2

log "nodes: $nodes"
case $size in
    small) layers=2 hidden=128 ;;
    large) layers=6 hidden=512 ;;
    *) die "no such size: $size" ;;
esac

main() {
    local flags
    flags=$(model_flags "$layers" "$hidden")
    # shellcheck disable=SC2086 # words are wanted
    launch "$nodes" $flags $(training_flags) --use-distributed-optimizer
}

main "$@"

# shellcheck shell=sh
# SPDX-License-Identifier: BSD-3-Clause
# Read by the scripts of tools/: steps with a heading, a time and a verdict.
# A script sets `name`, calls `step TITLE command…` and ends with `finish`.

finish_note=
steps_done=
steps_failed=0
steps_started=$(date +%s)

# step TITLE command…: run it; remember how it went and go on. What it adds to
# $step_note, lines, stands below it in the summary.
step() {
    steps_title=$1
    shift
    step_note=
    printf '\n== %s: %s\n' "$name" "$steps_title"
    steps_at=$(date +%s)
    if "$@"; then
        steps_verdict=ok
    else
        steps_verdict=FAILED
        steps_failed=$((steps_failed + 1))
    fi
    steps_done="$steps_done$(printf '%-6s %5ds  %s' "$steps_verdict" \
        $(($(date +%s) - steps_at)) "$steps_title")
$step_note"
    [ "$steps_verdict" = ok ]
}

# must TITLE command…: as step, but nothing after it makes sense without it.
must() {
    step "$@" || finish
}

# finish: the summary, one clear last line, and the exit status.
finish() {
    printf '\n== %s: summary\n%s\n' "$name" "$steps_done"
    if [ "$steps_failed" -eq 0 ]; then
        echo "$name: SUCCESS in $(($(date +%s) - steps_started)) s${finish_note:+, $finish_note}"
        exit 0
    fi
    echo "$name: FAILURE, $steps_failed step(s) failed, see above"
    exit 1
}

# Open MPI as root, in containers, and with more processes than cores.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_btl_vader_single_copy_mechanism=none
export OMPI_MCA_plm_rsh_agent=

# Where ccache is installed, what was compiled before is not compiled again, in
# another folder or clone neither.
if [ -z "${CMAKE_C_COMPILER_LAUNCHER-}" ] && command -v ccache > /dev/null; then
    export CMAKE_C_COMPILER_LAUNCHER=ccache
    export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1
fi

# configure PRESET [-D…]: a build folder that was copied from elsewhere starts anew.
configure() {
    mkdir -p build && cmake --preset "$@" > "build/$1.log" 2>&1 ||
        cmake --fresh --preset "$@" > "build/$1.log" 2>&1 || {
        cat "build/$1.log"
        return 1
    }
    sed -n '/^--.*have been/,/^-- Configuring/p' "build/$1.log"
}

# build PRESET [--target…]
build() {
    cmake --build --preset "$@" -j "$(nproc)"
}

# SPDX-License-Identifier: BSD-3-Clause
# Report names that documents and comments use and nothing bears: files, our
# functions, types and constants, tests, options. Part of tools/check-docs.
#
#   awk -f names.awk what=files LIST what=build FILE… what=options FILE
#       what=code FILE… what=prose FILE…
#
# LIST has all files; build is CMake's, options the generated table of options,
# code C, prose Markdown, in which names stand in backquotes. `*` and NAME stand
# for anything. What has no place here, such as a file of PyTorch's, is known by
# its folder or listed in `foreign`.

# Every end of a path names the file, and every beginning a folder.
function add_ends(list, path) {
    for (; path ~ /\//; sub(/^[^\/]*\//, "", path)) list[path]
    list[path]
}
function add_file(path, base) {
    sub(/^\.\//, "", path)
    if (path in is_listed) return
    is_listed[path]
    base = path; sub(/.*\//, "", base)
    add_ends(is_file, path)
    if (path ~ /^tests\/accuracy\/cases\//) is_job[substr(base, 1, index(base, ".") - 1)]
    if (base == "case.txt") {
        base = path; sub(/^tests\/golden\//, "", base); sub(/\/case\.txt$/, "", base)
        sub(/^errors\//, "error_", base); is_case[base]
    }
    if (path !~ /\//) return
    base = path; sub(/\/.*/, "", base); is_top[base]
    while (sub(/\/[^\/]*$/, "", path) && !(path in is_listed)) {
        is_listed[path]
        add_ends(is_folder, path)
    }
}
function use(kind, name) {
    if (used[n_uses] == name && used_at[n_uses] == FILENAME ":" FNR) return
    n_uses++
    used[n_uses] = name; used_kind[n_uses] = kind; used_at[n_uses] = FILENAME ":" FNR
}
# What a comment, or text in backquotes, names.
function take_names(text, rest, name) {
    for (rest = text; match(rest, /(^|[^A-Za-z0-9_])(me|ME|memest|MEMEST)_[A-Za-z0-9_]*\*?/); ) {
        name = substr(rest, RSTART, RLENGTH)
        sub(/^[^A-Za-z]/, "", name)
        use("name", name)
        rest = substr(rest, RSTART + RLENGTH)
    }
    for (rest = text; match(rest, /[A-Za-z0-9_.*…\/-]*[A-Za-z0-9_*]\.(c|h|md|cmake)($|[^A-Za-z0-9_(.])/); ) {
        name = substr(rest, RSTART, RLENGTH)
        sub(/[^A-Za-z0-9_]$/, "", name)
        use("file", name)
        rest = substr(rest, RSTART + RLENGTH)
    }
}
function take_code(code, name) {
    for (; match(code, /[A-Za-z_][A-Za-z0-9_]*\(?/); code = substr(code, RSTART + RLENGTH)) {
        name = substr(code, RSTART, RLENGTH)
        if (sub(/\($/, "", name)) is_called[name]
        if (name ~ /^(me|ME|memest|MEMEST)_/) is_name[name]
    }
}
# Part a line into code and comments.
function take_line(line, start, end) {
    for (;;) {
        if (in_comment) {
            end = index(line, "*/")
            take_names(end == 0 ? line : substr(line, 1, end - 1))
            if (end == 0) return
            line = substr(line, end + 2)
            in_comment = 0
        }
        start = index(line, "/*")
        if (match(line, /(^|[ \t;{}])\/\//) && (start == 0 || RSTART < start)) {
            take_names(substr(line, RSTART + 2))
            take_code(substr(line, 1, RSTART))
            return
        }
        take_code(start == 0 ? line : substr(line, 1, start - 1))
        if (start == 0) return
        line = substr(line, start + 2)
        in_comment = 1
    }
}
function is_like(list, pattern, name) {
    gsub(/\./, "[.]", pattern)
    gsub(/NAME|\*|…/, ".*", pattern)
    for (name in list) if (name ~ "^" pattern "$") return 1
    return 0
}
function exists(list, name) {
    if (name in list) return 1
    return name ~ /NAME|\*|…|_$/ && is_like(list, name ~ /_$/ ? name "*" : name)
}
function is_test(group, name) {
    if (group == "golden") {
        sub(/\.np[0-9]+$/, "", name)
        return name in is_case
    }
    if (group == "accuracy") {
        sub(/\..*/, "", name)
        return name in is_job || name in is_aggregate
    }
    if (group == "fuzz") return ("fuzz_" name ".c") in is_file
    return ("test_" name ".c") in is_file
}
function is_good(kind, name, group, top) {
    if (kind == "name") return exists(is_name, name)
    if (kind == "function") return name in is_called
    if (kind == "job") return name in is_job
    top = name; sub(/\/.*/, "", top)
    if (kind == "file") {
        if (name ~ foreign && !(top in is_top)) return 1
        gsub(/\.\.\//, "", name)
        return exists(is_file, name)
    }
    if (kind == "path") {
        sub(/\/$/, "", name)
        return !(top in is_top) || exists(is_listed, name)
    }
    group = name; sub(/\..*/, "", group)
    if (group ~ /^(unit|property|faults|golden|accuracy|fuzz)$/) return is_test(group, substr(name, length(group) + 2))
    if (!(group in is_group) || name ~ /\.(py|tsv)$/ || name ~ /^torch\.[^.]*\./) return 1
    return name in is_option || name ~ /^torch\.(compile|ones|optim)$/
}
BEGIN {
    # PyTorch's and NCCL's folders and headers; those of libraries are added
    # where they are included.
    foreign = "(^|/)(aten|c10|csrc|graph|mem_eff_attention|Objects)/|^(accumulate|autocast_mode|topo|CachingHostAllocator)[.]h$|^PERFORMANCE[.]md$|^llama3[_-].*[.]md$"
}
what == "files" { add_file($0); next }
what == "build" {
    take_code($0)
    if (match($0, /me_aggregate_test\([a-z_]+/)) is_aggregate[substr($0, RSTART + 18, RLENGTH - 18)]
    next
}
what == "options" {
    if (match($0, /^\| `[a-z_0-9.]+`/)) {
        name = substr($0, 4, RLENGTH - 4)
        is_option[name]
        if (sub(/\..*/, "", name)) is_group[name]
    }
    next
}
what == "code" && /^#include </ {
    name = $2
    gsub(/[<>]/, "", name)
    is_file[name]
    next
}
what == "code" {
    if (/"[^"]*\/\*/) sub(/\/\*/, "") # a pattern of files
    take_line($0)
    next
}
# `f()` in `a.c` is ours, wherever the line breaks.
function take_function_of_file(before, text) {
    if (owner_less != "" && before ~ /^ ?(in|of) $/ && text ~ /^[a-z0-9_\/]+\.[ch]$/ && text in is_file) {
        use("function", owner_less)
        used_at[n_uses] = owner_less_at
    }
    owner_less = text ~ /^[a-z_0-9]+\(\)$/ ? substr(text, 1, length(text) - 2) : ""
    owner_less_at = FILENAME ":" FNR
}
# `a/b.c`, `c.c`: the second stands beside the first.
function take_neighbour(before, text) {
    if (before ~ /^(,|;| and| or)? ?$/ && beside != "" && text ~ /^[a-z0-9_*]+\.[ch]$/) use("path", beside "/" text)
    else beside = ""
    if (text ~ /^[a-z0-9_\/]+\/[a-z0-9_*]+\.[ch]$/) {
        beside = text; sub(/\/[^\/]*$/, "", beside)
    }
}
FNR == 1 { has_functions = 0; owner_less = ""; after = "" }
# The last two columns of accounting's tables are our functions and our tests.
/\| (function|made by) \| test \|$/ { has_functions = 1 }
!/^\|/ { has_functions = 0 }
{
    n_cells = has_functions ? split($0, cells, /\|/) : 0
    gsub(/^ +| +$/, "", after)
    for (line = $0; match(line, /`[^`]+`/); after = "") {
        before = after (after == "" ? "" : " ") substr(line, 1, RSTART - 1)
        text = substr(line, RSTART + 1, RLENGTH - 2)
        line = substr(line, RSTART + RLENGTH)
        gsub(/  +/, " ", before)
        take_function_of_file(before, text)
        take_neighbour(before, text)
        take_names(text)
        if (text ~ /^[a-z0-9_]+\.[A-Za-z0-9_.]+$/ && text !~ /\.(c|h|md|cmake)$/) use("dotted", text)
        else if (text ~ /^\.?[A-Za-z0-9_-]+\/[A-Za-z0-9_.*\/-]*$/) use("path", text)
    }
    after = after line
}
n_cells > 3 {
    for (line = cells[n_cells - 2]; match(line, /`[a-z_0-9]+\(\)`/); line = substr(line, RSTART + RLENGTH))
        use("function", substr(line, RSTART + 1, RLENGTH - 4))
    for (line = cells[n_cells - 1]; match(line, /`[a-z]+[0-9]+_[a-z0-9_]+`/); line = substr(line, RSTART + RLENGTH))
        use("job", substr(line, RSTART + 1, RLENGTH - 2))
}
END {
    for (i = 1; i <= n_uses; i++) {
        if (is_good(used_kind[i], used[i])) continue
        print used_at[i] ": names " used[i] ", which is not there"
        failed = 1
    }
    exit failed
}

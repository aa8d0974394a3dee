# SPDX-License-Identifier: BSD-3-Clause
# One golden case: run memest as tests/golden/NAME/case.txt says and compare
# what it prints. Called by ctest as
#   cmake -DPROGRAM=… -DCASE=folder -DSCRATCH=folder -DLAUNCHER="mpirun;-n;2"
#         -P golden.cmake
# MEMEST_UPDATE_GOLDEN=1 rewrites the expectations. docs/testing.md has the keys.

file(STRINGS ${CASE}/case.txt lines ENCODING UTF-8)
set(exit 0)
set(files "")
foreach(line IN LISTS lines)
  if(line MATCHES "^(args|exit|filter|file|needs|nproc): *(.*)$")
    set(key ${CMAKE_MATCH_1})
    set(value "${CMAKE_MATCH_2}")
    if(key STREQUAL "file")
      list(APPEND files "${value}")
    else()
      set(${key} "${value}")
    endif()
  elseif(NOT line MATCHES "^(#.*)?$")
    message(FATAL_ERROR "${CASE}/case.txt: unknown line: ${line}")
  endif()
endforeach()

file(REMOVE_RECURSE ${SCRATCH})
file(MAKE_DIRECTORY ${SCRATCH})
string(REPLACE "@OUT@" "${SCRATCH}" args "${args}")
string(REPLACE "@ROOT@" "${CMAKE_CURRENT_LIST_DIR}/.." args "${args}")
separate_arguments(args UNIX_COMMAND "${args}")
execute_process(COMMAND ${LAUNCHER} ${PROGRAM} ${args}
  WORKING_DIRECTORY ${CASE} INPUT_FILE /dev/null
  OUTPUT_FILE ${SCRATCH}/stdout ERROR_FILE ${SCRATCH}/stderr
  RESULT_VARIABLE result TIMEOUT 100)

# What a machine cannot do is no fault of the program's.
if(needs STREQUAL "script")
  file(READ ${SCRATCH}/stderr said)
  if(said MATCHES "is not run: this machine" OR said MATCHES "no layer takes what")
    message("left out: ${said}")
    return()
  endif()
endif()

set(failed FALSE)
if(NOT result STREQUAL exit)
  message("exit status is ${result}, expected ${exit}")
  set(failed TRUE)
endif()

# compare(ACTUAL EXPECTED): a missing expectation stands for an empty file.
function(compare actual expected)
  if(NOT EXISTS ${actual})
    message("${actual} was not written")
    set(failed TRUE PARENT_SCOPE)
    return()
  endif()
  if(DEFINED filter)
    execute_process(COMMAND sed -E "${filter}" INPUT_FILE ${actual}
      OUTPUT_FILE ${actual}.filtered COMMAND_ERROR_IS_FATAL ANY)
    set(actual ${actual}.filtered)
  endif()
  file(SIZE ${actual} size)
  if("$ENV{MEMEST_UPDATE_GOLDEN}" STREQUAL "1")
    if(size GREATER 0)
      file(COPY_FILE ${actual} ${expected} ONLY_IF_DIFFERENT)
    else()
      file(REMOVE ${expected})
    endif()
    return()
  endif()
  set(against ${expected})
  if(NOT EXISTS ${expected})
    set(against /dev/null)
  endif()
  execute_process(COMMAND diff -u ${against} ${actual} RESULT_VARIABLE differs)
  if(differs)
    set(failed TRUE PARENT_SCOPE)
  endif()
endfunction()

compare(${SCRATCH}/stdout ${CASE}/expect.txt)
compare(${SCRATCH}/stderr ${CASE}/expect.err)
foreach(name IN LISTS files)
  compare(${SCRATCH}/${name} ${CASE}/expect.${name})
endforeach()
if(failed)
  message(FATAL_ERROR "golden case failed; if the new output is right: "
    "MEMEST_UPDATE_GOLDEN=1 ctest -R golden, and read the diff")
endif()

# SPDX-License-Identifier: BSD-3-Clause
# How tests are made. Every test has a label of its kind, a time limit and the
# environment below; docs/testing.md says when to use which.

# Plain `ctest` works as root inside a container, and under sanitizers.
set(ME_TEST_ENVIRONMENT
  LC_ALL=C MEMEST_SCRIPT_SECONDS=60
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
  OMPI_MCA_mpi_yield_when_idle=1
  OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_plm_rsh_agent=
  OMPI_MCA_orte_execute_quiet=1
  ASAN_OPTIONS=fast_unwind_on_malloc=0:detect_leaks=1
  LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/lsan.supp:print_suppressions=0
  UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1)

# Where tests find this build installed, by their fixture `installed`, and what
# users' programs are compiled with to link its libraries.
set(ME_TEST_PREFIX ${PROJECT_BINARY_DIR}/prefix)
set(ME_USER_FLAGS "")
if(ME_SANITIZE)
  set(ME_USER_FLAGS "-fsanitize=${ME_SANITIZE} -fno-sanitize-recover=all")
endif()
if(ME_FUZZ)
  string(APPEND ME_USER_FLAGS " -fsanitize=fuzzer-no-link")
endif()

# me_add_test(NAME KIND PROCESSES command…): KIND may name several labels.
# Open MPI keeps its session in a folder of each test's own: of two jobs that share
# one, the first to end takes it away under the other.
function(me_add_test name kind processes)
  add_test(NAME ${name} COMMAND ${ARGN})
  string(MD5 folder "${name}")
  string(SUBSTRING ${folder} 0 8 folder)
  set_tests_properties(${name} PROPERTIES LABELS "${kind}" TIMEOUT 1200
    PROCESSORS ${processes} ENVIRONMENT
    "${ME_TEST_ENVIRONMENT};OMPI_MCA_orte_tmpdir_base=${PROJECT_BINARY_DIR}/mpi/${folder}")
endfunction()

# me_mpirun(OUT PROCESSES): the words in front of a program on PROCESSES
# processes; NOTFOUND without MPI.
function(me_mpirun out processes)
  if(MPIEXEC_EXECUTABLE AND TARGET MPI::MPI_C)
    set(${out} ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${processes}
      PARENT_SCOPE)
  else()
    set(${out} NOTFOUND PARENT_SCOPE)
  endif()
endfunction()

function(me_test_program name)
  add_executable(test_${name} test_${name}.c)
  me_without_lto(test_${name})
  target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(test_${name} PRIVATE me_test_support ext::cmocka)
  me_program(test_${name})
  foreach(layer IN LISTS ARGN)
    target_link_libraries(test_${name} PRIVATE me_${layer})
  endforeach()
endfunction()

# me_unit(NAME [KIND kind] LINKS layer…): one cmocka program from test_NAME.c
# beside the calling CMakeLists.txt, run by ctest as KIND.NAME (unit.NAME).
function(me_unit name)
  cmake_parse_arguments(UNIT "" "KIND" "LINKS" ${ARGN})
  if(NOT UNIT_KIND)
    set(UNIT_KIND unit)
  endif()
  me_test_program(${name} ${UNIT_LINKS})
  me_add_test(${UNIT_KIND}.${name} ${UNIT_KIND} 1 test_${name})
  if(NOT UNIT_KIND STREQUAL unit) # slow ones begin early
    set_tests_properties(${UNIT_KIND}.${name} PROPERTIES COST 50)
  endif()
endfunction()

# me_mpi_test(NAME PROCESSES n… LINKS layer…): the same program on n processes,
# once for each n, run by ctest as mpi.NAME.n.
function(me_mpi_test name)
  cmake_parse_arguments(MPI_TEST "" "" "PROCESSES;LINKS" ${ARGN})
  me_test_program(${name} ${MPI_TEST_LINKS})
  foreach(processes IN LISTS MPI_TEST_PROCESSES)
    me_mpirun(launcher ${processes})
    if(launcher)
      me_add_test(mpi.${name}.${processes} mpi ${processes}
        ${launcher} $<TARGET_FILE:test_${name}>)
    endif()
  endforeach()
endfunction()

find_path(CMOCKA_INCLUDE_DIR cmocka.h REQUIRED)
find_library(CMOCKA_LIBRARY cmocka REQUIRED)

# me_unit(NAME LINKS layer…): one cmocka program from test_NAME.c beside the
# calling CMakeLists.txt, run by ctest as unit.NAME.
function(me_unit name)
  cmake_parse_arguments(UNIT "" "KIND" "LINKS" ${ARGN})
  if(NOT UNIT_KIND)
    set(UNIT_KIND unit)
  endif()
  add_executable(test_${name} test_${name}.c)
  target_include_directories(test_${name} PRIVATE
    ${PROJECT_SOURCE_DIR}/tests ${CMOCKA_INCLUDE_DIR})
  target_link_libraries(test_${name} PRIVATE me_settings ${CMOCKA_LIBRARY})
  foreach(layer IN LISTS UNIT_LINKS)
    target_link_libraries(test_${name} PRIVATE me_${layer})
  endforeach()
  add_test(NAME ${UNIT_KIND}.${name} COMMAND test_${name})
  set_tests_properties(${UNIT_KIND}.${name} PROPERTIES LABELS ${UNIT_KIND} TIMEOUT 120)
endfunction()

# me_mpi_test(NAME PROCESSES n… LINKS layer…): the same program on n processes,
# once for each n, run by ctest as mpi.NAME.n. Does nothing without MPI.
if(NOT COMMAND me_mpi_test)
  function(me_mpi_test name)
    cmake_parse_arguments(MPI_TEST "" "" "PROCESSES;LINKS" ${ARGN})
    if(NOT ME_HAVE_MPI)
      return()
    endif()
    add_executable(test_${name} test_${name}.c
      ${PROJECT_SOURCE_DIR}/tests/support/dlclose.c)
    target_include_directories(test_${name} PRIVATE
      ${PROJECT_SOURCE_DIR}/tests ${CMOCKA_INCLUDE_DIR})
    target_link_libraries(test_${name} PRIVATE me_settings ${CMOCKA_LIBRARY})
    foreach(layer IN LISTS MPI_TEST_LINKS)
      target_link_libraries(test_${name} PRIVATE me_${layer})
    endforeach()
    foreach(n IN LISTS MPI_TEST_PROCESSES)
      add_test(NAME mpi.${name}.${n} COMMAND ${MPIEXEC_EXECUTABLE}
        ${MPIEXEC_NUMPROC_FLAG} ${n} $<TARGET_FILE:test_${name}>)
      set_tests_properties(mpi.${name}.${n} PROPERTIES LABELS mpi
        PROCESSORS ${n} TIMEOUT 120 ENVIRONMENT "${ME_TEST_ENVIRONMENT}")
    endforeach()
  endfunction()

  set(ME_TEST_ENVIRONMENT
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    OMPI_MCA_rmaps_base_oversubscribe=1
    OMPI_MCA_hwloc_base_binding_policy=none
    ASAN_OPTIONS=fast_unwind_on_malloc=0
    LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/lsan.supp:print_suppressions=0)
endif()

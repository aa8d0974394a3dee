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

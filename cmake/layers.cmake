# SPDX-License-Identifier: BSD-3-Clause
# A folder is a layer is a target. me_layer(NAME SOURCES … LINKS …) makes the
# static library me_NAME from the folder it is called in; LINKS names the only
# layers that it may include, and only those of its row in tools/layers.txt.
# NAME is the folder's, but for src/alloc, whose target is me_allocator, since
# me_alloc() is a function.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/tools/layers.txt)

function(me_check_links folder)
  file(STRINGS ${PROJECT_SOURCE_DIR}/tools/layers.txt row REGEX "^${folder}:")
  if(NOT row)
    message(FATAL_ERROR "layer ${folder} has no row in tools/layers.txt")
  endif()
  string(REGEX REPLACE "^${folder}: *" "" row "${row}")
  separate_arguments(row)
  list(TRANSFORM ARGN REPLACE "^allocator$" "alloc")
  foreach(layer IN LISTS ARGN)
    if(NOT layer IN_LIST row AND NOT layer STREQUAL base AND NOT row STREQUAL "*")
      message(FATAL_ERROR "layer ${folder} must not link ${layer}: "
        "tools/layers.txt allows it base ${row}")
    endif()
  endforeach()
endfunction()

function(me_layer name)
  cmake_parse_arguments(LAYER "" "" "SOURCES;LINKS" ${ARGN})
  get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  me_check_links(${folder} ${LAYER_LINKS})
  add_library(me_${name} STATIC ${LAYER_SOURCES})
  target_include_directories(me_${name} PUBLIC
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
  target_link_libraries(me_${name} PRIVATE me_settings)
  foreach(layer IN LISTS LAYER_LINKS)
    target_link_libraries(me_${name} PUBLIC me_${layer})
  endforeach()
endfunction()

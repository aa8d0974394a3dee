# A folder is a layer is a target. me_layer(NAME SOURCES … LINKS …) makes the
# static library me_NAME from the folder it is called in; LINKS names the only
# layers that it may include.
function(me_layer name)
  cmake_parse_arguments(LAYER "" "" "SOURCES;LINKS" ${ARGN})
  add_library(me_${name} STATIC ${LAYER_SOURCES})
  target_include_directories(me_${name} PUBLIC
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
  target_link_libraries(me_${name} PRIVATE me_settings)
  foreach(layer IN LISTS LAYER_LINKS)
    target_link_libraries(me_${name} PUBLIC me_${layer})
  endforeach()
endfunction()

# SPDX-License-Identifier: BSD-3-Clause
# libmemest, shared and static, and what `cmake --install` copies: program,
# libraries, headers, CMake's and pkg-config's descriptions, configs/. The
# installation can be moved: all of it finds the rest from its own place.
include(CMakePackageConfigHelpers)

install(TARGETS memest RUNTIME)
install(DIRECTORY configs DESTINATION ${CMAKE_INSTALL_DATADIR}/memest)
install(FILES LICENSE README.md TYPE DOC)
install(DIRECTORY docs examples TYPE DOC USE_SOURCE_PERMISSIONS)
install(FILES ${PROJECT_BINARY_DIR}/memest.1
  DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${PROJECT_BINARY_DIR}/memest.bash RENAME memest
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${PROJECT_BINARY_DIR}/_memest
  DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES ${PROJECT_BINARY_DIR}/memest.fish
  DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

# Libraries that are linked into the program are none for a library.
if(ME_STATIC)
  return()
endif()

set(me_layers api search run report sac track time train nn ops plan config allocator
  device collectives parallel tensor model base)
# What the code calls; of what a layer links as well, such as MPI, nothing.
set(me_needs jansson config yaml m)
foreach(found IN ITEMS smartcols hwloc)
  if(TARGET ext::${found})
    list(APPEND me_needs ${found})
  endif()
endforeach()
list(APPEND me_needs ${CMAKE_DL_LIBS})

add_library(memest_shared SHARED $<TARGET_OBJECTS:me_api>)
target_link_libraries(memest_shared PRIVATE me_settings me_search me_run)
target_link_options(memest_shared PRIVATE -Wl,--as-needed)
target_include_directories(memest_shared INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
set_target_properties(memest_shared PROPERTIES
  OUTPUT_NAME memest EXPORT_NAME memest LINKER_LANGUAGE C
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})

# The static library is one object of which only the API's names can be seen:
# stubs with NCCL's names must not meet a real libnccl, nor `me_` those of
# others. Link-time optimisation ends here, users need not have this compiler.
set(archives "")
foreach(layer IN LISTS me_layers)
  list(APPEND archives $<TARGET_FILE:me_${layer}>)
endforeach()
set(partial -r -nostdlib)
if(CMAKE_INTERPROCEDURAL_OPTIMIZATION AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
  list(APPEND partial -O3 -flto=auto -flinker-output=nolto-rel)
endif()
set(libmemest ${PROJECT_BINARY_DIR}/libmemest.a)
set(object ${PROJECT_BINARY_DIR}/libmemest.o)
add_custom_command(OUTPUT ${libmemest}
  COMMAND ${CMAKE_C_COMPILER} ${partial} -o ${object} $<TARGET_OBJECTS:me_api>
    -Wl,--start-group ${archives} -Wl,--end-group
  COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${object}
  COMMAND ${CMAKE_COMMAND} -E rm -f ${libmemest}
  COMMAND ${CMAKE_AR} rcs ${libmemest} ${object}
  DEPENDS ${archives} COMMAND_EXPAND_LISTS VERBATIM
  COMMENT "Linking C static library libmemest.a")
add_custom_target(memest_static ALL DEPENDS ${libmemest})

install(TARGETS memest_shared EXPORT memest LIBRARY)
install(FILES ${libmemest} TYPE LIB)
install(DIRECTORY include/memest TYPE INCLUDE FILES_MATCHING PATTERN "*.h")

set(me_package ${CMAKE_INSTALL_LIBDIR}/cmake/memest)
install(EXPORT memest DESTINATION ${me_package} NAMESPACE memest::
  FILE memestTargets.cmake)
configure_package_config_file(cmake/memestConfig.cmake.in
  ${PROJECT_BINARY_DIR}/memestConfig.cmake INSTALL_DESTINATION ${me_package}
  PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR
    CMAKE_INSTALL_DATADIR)
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/memestConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/memestConfig.cmake
  ${PROJECT_BINARY_DIR}/memestConfigVersion.cmake DESTINATION ${me_package})

set(me_pkgconfig ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH me_prefix_from_pc
  ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
list(TRANSFORM me_needs PREPEND -l OUTPUT_VARIABLE me_needs_flags)
list(JOIN me_needs_flags " " me_needs_flags)
configure_file(cmake/memest.pc.in ${PROJECT_BINARY_DIR}/memest.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/memest.pc DESTINATION ${me_pkgconfig})

# SPDX-License-Identifier: BSD-3-Clause
# The one place that looks for other projects' libraries. What is found is an
# imported target that a layer links: MPI::MPI_C, ext::hwloc, ext::cbc, ext::cudart,
# ext::nccl, ext::libconfig, ext::jansson, ext::smartcols, ext::yaml,
# ext::cmocka. Layers
# ask `if(TARGET ext::hwloc)`; docs/dependencies.md says why each is here.

# me_find(NAME HEADER LIBRARY PURPOSE): ext::NAME where header and library are
# there. An empty LIBRARY looks for the header alone.
function(me_find name header library purpose)
  string(TOUPPER ${name} upper)
  find_path(${upper}_INCLUDE_DIR ${header} ${ARGN})
  mark_as_advanced(${upper}_INCLUDE_DIR)
  set(found ${${upper}_INCLUDE_DIR})
  if(library)
    find_library(${upper}_LIBRARY ${library} ${ARGN})
    mark_as_advanced(${upper}_LIBRARY)
    if(NOT ${upper}_LIBRARY)
      set(found FALSE)
    endif()
  endif()
  if(found)
    add_library(ext::${name} INTERFACE IMPORTED GLOBAL)
    target_include_directories(ext::${name} INTERFACE ${${upper}_INCLUDE_DIR})
    if(library)
      target_link_libraries(ext::${name} INTERFACE ${${upper}_LIBRARY})
    endif()
    set_property(GLOBAL APPEND PROPERTY PACKAGES_FOUND ${name})
  else()
    set_property(GLOBAL APPEND PROPERTY PACKAGES_NOT_FOUND ${name})
  endif()
  set_package_properties(${name} PROPERTIES DESCRIPTION "${purpose}")
endfunction()

# me_require(NAME PACKAGE): stop with the Debian package's name.
function(me_require name package)
  if(NOT TARGET ext::${name})
    message(FATAL_ERROR "${name} is missing: install ${package}, "
      "or everything that is needed with tools/install-packages build")
  endif()
endfunction()

me_find(libconfig libconfig.h config "configuration files")
me_find(jansson jansson.h jansson "JSON in and out")
me_find(yaml yaml.h yaml "jobs in YAML")
me_find(smartcols libsmartcols/libsmartcols.h smartcols "tables on the terminal")
me_require(libconfig libconfig-dev)
me_require(jansson libjansson-dev)
me_require(yaml libyaml-dev)
me_require(smartcols libsmartcols-dev)

if(ME_MPI)
  find_package(MPI COMPONENTS C)
  set_package_properties(MPI PROPERTIES DESCRIPTION
    "several processes")
endif()
set(ME_HAVE_MPI OFF)
if(TARGET MPI::MPI_C)
  set(ME_HAVE_MPI ON)
endif()
if(ME_HWLOC)
  me_find(hwloc hwloc.h hwloc "the machine's cards and topology")
endif()
if(ME_CBC)
  me_find(cbc coin/Cbc_C_Interface.h CbcSolver "the choice of checkpoints")
endif()
if(ME_CUDA)
  set(cuda_hints HINTS $ENV{CUDA_HOME} $ENV{CUDA_PATH} /usr/local/cuda
    PATH_SUFFIXES include lib64 targets/x86_64-linux/include
    targets/x86_64-linux/lib)
  me_find(cudart cuda_runtime_api.h cudart "real cards" ${cuda_hints})
  me_find(nccl nccl.h "" "check of the stubs' signatures" ${cuda_hints})
endif()
if(ME_VEGA)
  find_path(VEGA_DIR vega-view.min.js
    PATHS /usr/share/javascript/vega /usr/local/share/javascript/vega)
  mark_as_advanced(VEGA_DIR)
  if(VEGA_DIR)
    set_property(GLOBAL APPEND PROPERTY PACKAGES_FOUND vega)
  else()
    set_property(GLOBAL APPEND PROPERTY PACKAGES_NOT_FOUND vega)
  endif()
  set_package_properties(vega PROPERTIES DESCRIPTION "charts of HTML reports")
else()
  set(VEGA_DIR "")
endif()
if(ME_TESTS)
  me_find(cmocka cmocka.h cmocka "tests")
  me_require(cmocka libcmocka-dev)
endif()

# SPDX-License-Identifier: BSD-3-Clause
# me_settings: what every target of the project is compiled with.
add_library(me_settings INTERFACE)
target_compile_definitions(me_settings INTERFACE _POSIX_C_SOURCE=200809L
  $<$<BOOL:${ME_ARENA_MALLOC}>:ME_ARENA_MALLOC>)
target_compile_options(me_settings INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow
  -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat=2 -Wundef
  -Wswitch-enum -Wcast-qual -Wwrite-strings
  $<$<BOOL:${ME_WERROR}>:-Werror>)
if(ME_WERROR) # link-time optimisation warns as well
  target_link_options(me_settings INTERFACE -Werror)
endif()

if(ME_SANITIZE)
  set(me_sanitize -fsanitize=${ME_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  if(ME_FUZZ)
    list(APPEND me_sanitize -fsanitize=fuzzer-no-link)
  endif()
  target_compile_options(me_settings INTERFACE ${me_sanitize})
  target_link_options(me_settings INTERFACE ${me_sanitize})
elseif(ME_FUZZ)
  target_compile_options(me_settings INTERFACE -fsanitize=fuzzer-no-link)
endif()

if(ME_LTO)
  include(CheckIPOSupported)
  check_ipo_supported(RESULT me_lto_works OUTPUT me_lto_why LANGUAGES C)
  if(me_lto_works)
    set(CMAKE_INTERPROCEDURAL_OPTIMIZATION ON)
    # Tests are linked without it, or a hundred of them would be optimised as a
    # whole each: objects hold the code for both.
    if(ME_TESTS AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
      set(CMAKE_C_COMPILE_OPTIONS_IPO -flto=auto -ffat-lto-objects)
    endif()
  else()
    message(STATUS "ME_LTO: not supported here, built without")
  endif()
endif()

# me_without_lto(TARGET): a program that is linked in a moment, ME_LTO or not.
function(me_without_lto target)
  set_target_properties(${target} PROPERTIES INTERPROCEDURAL_OPTIMIZATION OFF)
  if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    target_link_options(${target} PRIVATE -fno-lto)
  endif()
endfunction()

# me_program(TARGET): what every executable of the project needs. Under
# AddressSanitizer plug-ins of MPI stay loaded, so that leaks have names.
function(me_program target)
  target_link_libraries(${target} PRIVATE me_settings)
  if(ME_SANITIZE MATCHES "address")
    target_sources(${target} PRIVATE
      ${PROJECT_SOURCE_DIR}/tests/support/dlclose.c)
  endif()
endfunction()

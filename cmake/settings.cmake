# me_settings: what every target of the project is compiled with.
add_library(me_settings INTERFACE)
target_compile_definitions(me_settings INTERFACE _POSIX_C_SOURCE=200809L
  $<$<BOOL:${ME_ARENA_MALLOC}>:ME_ARENA_MALLOC>)
target_compile_options(me_settings INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow
  -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat=2 -Wundef
  -Wswitch-enum -Wcast-qual -Wwrite-strings
  $<$<BOOL:${ME_WERROR}>:-Werror>)

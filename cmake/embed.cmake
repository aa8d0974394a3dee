# SPDX-License-Identifier: BSD-3-Clause
# Write files into a C source, so that a program carries them. Called as
#   cmake -DOUT=file.c -DHEADER=report/page_files.h -DARRAY=me_page_files
#         "-DFILES=name=path;…" -P embed.cmake
# What would end or hide a script in a page is refused here and not found out
# there.
set(bodies "")
set(rows "")
set(number 0)
foreach(entry IN LISTS FILES)
  string(REGEX MATCH "^([^=]+)=(.*)$" matched "${entry}")
  set(name ${CMAKE_MATCH_1})
  set(path ${CMAKE_MATCH_2})
  file(READ ${path} text)
  if(text MATCHES "</[sS][cC][rR][iI][pP][tT]" OR text MATCHES "<!--")
    message(FATAL_ERROR "${path}: has </script or <!--, which a page cannot hold")
  endif()
  file(READ ${path} bytes HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  string(APPEND bodies "static const unsigned char file_${number}[] = {${bytes}};\n")
  string(APPEND rows "    {\"${name}\", file_${number}, sizeof file_${number}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUT}.new "/* Made by cmake/embed.cmake. */\n#include \"${HEADER}\"\n\n"
  "${bodies}\nconst me_page_file ${ARRAY}[] = {\n${rows}    {0, 0, 0}};\n")
file(COPY_FILE ${OUT}.new ${OUT} ONLY_IF_DIFFERENT)

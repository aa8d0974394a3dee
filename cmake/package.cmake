# SPDX-License-Identifier: BSD-3-Clause
# `cpack` in a build folder makes a Debian package of what is installed:
#
#     cmake --preset release && cmake --build --preset release
#     (cd build/release && cpack)
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME memest)
set(CPACK_PACKAGE_VENDOR memest)
set(CPACK_PACKAGE_CONTACT "memest's developers <memest@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY
  "how much memory every rank of a distributed training job takes")
set(CPACK_PACKAGE_DESCRIPTION "memest runs the operations of a training job of
Megatron-LM, torchtitan or PyTorch in their order on tensors without data, through
a simulated caching allocator of CUDA, and says without a GPU how much memory each
rank takes, where, when and why, and whether it fits.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS coinor-libcbc3) # loaded when it is asked
# What it needs is read off the program, by a tool of dpkg-dev.
find_program(DPKG_SHLIBDEPS dpkg-shlibdeps)
mark_as_advanced(DPKG_SHLIBDEPS)
if(DPKG_SHLIBDEPS)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
endif()
# Debian's place for the licence.
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE TYPE DOC RENAME copyright)
include(CPack)

# Installs the library with its headers, its CMake package, its pkg-config file and, where built, the command line.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/cenote)

install(TARGETS cenote EXPORT cenoteTargets)
install(DIRECTORY include/cenote DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(EXPORT cenoteTargets NAMESPACE cenote:: DESTINATION ${_package_dir})
if(TARGET cenote_cli)
  install(TARGETS cenote_cli)
endif()

get_target_property(_kind cenote TYPE)
if(_kind STREQUAL "STATIC_LIBRARY")
  # A program that links the archive links what the archive uses.
  set(CENOTE_DEPENDENCIES "find_dependency(hwy)\nfind_dependency(TBB)")
  set(CENOTE_PC_REQUIRES "libhwy tbb")
endif()
configure_package_config_file(cmake/cenoteConfig.cmake.in cenoteConfig.cmake INSTALL_DESTINATION ${_package_dir}
                              NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(cenoteConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cenoteConfig.cmake ${PROJECT_BINARY_DIR}/cenoteConfigVersion.cmake
        DESTINATION ${_package_dir})

# The prefix is told from where the file lies, so that an installed tree can be moved.
file(RELATIVE_PATH CENOTE_PC_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" CENOTE_PC_PREFIX ${CENOTE_PC_PREFIX})
configure_file(cmake/cenote.pc.in cenote.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/cenote.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

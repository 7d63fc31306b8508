# cmake --install: the program, its completions and manual page (written by the program itself), the libraries with their headers for find_package(stepcast), and
# cpack's Debian package. docs/install.md; test: tests/install.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(generated ${PROJECT_BINARY_DIR}/share)
foreach(page completion.bash completion.zsh completion.fish manual)
  string(REPLACE "." ";" arguments ${page})
  list(APPEND pages ${generated}/${page})
  add_custom_command(OUTPUT ${generated}/${page}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${generated}
    COMMAND stepcast ${arguments} > ${generated}/${page}
    DEPENDS stepcast COMMENT "Writing ${page}" VERBATIM)
endforeach()
add_custom_target(stepcast_pages ALL DEPENDS ${pages})

install(TARGETS stepcast RUNTIME COMPONENT program)
if(TARGET stepcast-cuda)
  install(TARGETS stepcast-cuda RUNTIME COMPONENT program)
endif()
install(FILES ${generated}/completion.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME stepcast COMPONENT program)
install(FILES ${generated}/completion.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions RENAME _stepcast COMPONENT program)
install(FILES ${generated}/completion.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d RENAME stepcast.fish COMPONENT program)
install(FILES ${generated}/manual DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 RENAME stepcast.1 COMPONENT program)
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs COMPONENT program)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "the authors of stepcast")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Forecasts step time, MFU and memory of sharded transformer training")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL program)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/package)
include(CPack)

# A library that needs the CUDA driver could not be linked elsewhere; other programs use forecasts, which don't.
if(STEPCAST_CUDA_FOUND)
  message(STATUS "Install: the program alone; the libraries are installed by a build with STEPCAST_CUDA=OFF")
  return()
endif()

# Headers keep their rooms: #include "cli/predict.hpp" with the installed folder on the include path.
get_property(rooms GLOBAL PROPERTY STEPCAST_ROOMS)
foreach(room IN LISTS rooms)
  list(APPEND libraries stepcast_${room})
  install(DIRECTORY ${room} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/stepcast COMPONENT library FILES_MATCHING PATTERN "*.hpp")
endforeach()
install(TARGETS stepcast_options ${libraries} EXPORT stepcast ARCHIVE COMPONENT library)
install(EXPORT stepcast NAMESPACE stepcast:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/stepcast COMPONENT library)
configure_package_config_file(cmake/stepcastConfig.cmake.in ${PROJECT_BINARY_DIR}/stepcastConfig.cmake INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/stepcast)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/stepcastConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/stepcastConfig.cmake ${PROJECT_BINARY_DIR}/stepcastConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/stepcast COMPONENT library)

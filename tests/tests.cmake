# stepcast_test(NAME sources... LINK libraries... LABELS labels...): one doctest executable; ctest runs each of its cases by itself, as NAME:case. With a sanitizer it runs them
# together, as NAME:all cases: a process takes 0.1 to 0.4 s to begin and to look for leaks at its end.
# Cases are picked by number, not by doctest's name patterns, where a comma, a star or a bracket in the name would silently match nothing.
# Without STEPCAST_TESTS the targets exist but are neither built nor run, so that tests/ROOM.cmake needs no conditions.
find_package(doctest REQUIRED)
add_library(stepcast_test_main OBJECT EXCLUDE_FROM_ALL main.cpp support/paths.cpp)
target_include_directories(stepcast_test_main PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
set_source_files_properties(support/paths.cpp PROPERTIES COMPILE_DEFINITIONS "STEPCAST_SOURCE_DIR=\"${PROJECT_SOURCE_DIR}\";STEPCAST_BINARY=\"$<TARGET_FILE:stepcast>\"")
target_link_libraries(stepcast_test_main PUBLIC stepcast_options doctest::doctest)

function(stepcast_test name)
  cmake_parse_arguments(ARG "" "" "LINK;LABELS" ${ARGN})
  add_executable(test_${name} EXCLUDE_FROM_ALL ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(test_${name} PRIVATE stepcast_test_main ${ARG_LINK})
  target_include_directories(test_${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})  # "support/x.hpp"
  # What is tested is optimised; the tests themselves need not be, and compile a third faster so.
  if(STEPCAST_SANITIZE)
    target_compile_options(test_${name} PRIVATE -O0)
  else()
    target_compile_options(test_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  # Checks name their file; relative, so that clones in other folders find each other's objects in the compiler cache.
  target_compile_options(test_${name} PRIVATE -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
  if(NOT STEPCAST_TESTS)
    return()
  endif()
  set_target_properties(test_${name} PROPERTIES EXCLUDE_FROM_ALL FALSE)
  set(list ${CMAKE_CURRENT_BINARY_DIR}/test_${name}.ctest.cmake)
  add_custom_command(TARGET test_${name} POST_BUILD BYPRODUCTS ${list}
    COMMAND ${CMAKE_COMMAND} -DEXECUTABLE=$<TARGET_FILE:test_${name}> -DPREFIX=${name} "-DLABELS=${ARG_LABELS}" "-DWHOLE=${STEPCAST_SANITIZE}" -DOUT=${list}
      -P ${CMAKE_CURRENT_SOURCE_DIR}/discover.cmake VERBATIM)
  # An executable that was not built is a failing test, not a missing one.
  file(CONFIGURE OUTPUT ${list}.include.cmake @ONLY CONTENT [[
if(EXISTS "@list@")
  include("@list@")
else()
  add_test("@name@:not built" test_@name@-was-not-built)
endif()
]])
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${list}.include.cmake)
endfunction()

# Completions and the manual page; then the installed libraries as another project finds them, and the Python module.
stepcast_test(shell unit/shell_test.cpp golden/shell_test.cpp LINK stepcast_cli)
add_dependencies(test_shell stepcast)

if(STEPCAST_TESTS AND NOT STEPCAST_CUDA_FOUND AND NOT STEPCAST_SANITIZE AND NOT STEPCAST_FUZZERS)
  add_test(NAME install:consumer COMMAND ${CMAKE_COMMAND} -DBUILD=${PROJECT_BINARY_DIR} -DSOURCE=${CMAKE_CURRENT_SOURCE_DIR}/install -DCXX=${CMAKE_CXX_COMPILER}
    -P ${CMAKE_CURRENT_SOURCE_DIR}/install/test.cmake)
endif()
if(STEPCAST_TESTS AND STEPCAST_PYTHON_FOUND)
  add_test(NAME python:stepcast COMMAND ${Python3_EXECUTABLE} -m unittest -q test_stepcast WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/python)
  set_tests_properties(python:stepcast PROPERTIES ENVIRONMENT "PYTHONPATH=${PROJECT_BINARY_DIR}/python;PYTHONDONTWRITEBYTECODE=1")
endif()

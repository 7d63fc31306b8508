# The build's own tests: embedded data files (also one beyond 64 KiB, made here) and the scripts that CI relies on.
set(large ${CMAKE_CURRENT_BINARY_DIR}/large.json)
string(REPEAT "[\"0123456789abcdef\", \"];[\"],\n" 6000 large_text)
file(CONFIGURE OUTPUT ${large} CONTENT "${large_text}")
stepcast_test(embed unit/embed_test.cpp LINK stepcast_options)
stepcast_embed(test_embed embed_test_files unit/data/embed/brackets.json unit/data/embed/bytes.bin unit/data/embed/empty.txt ${large})
stepcast_embed(test_embed embed_test_no_files)
target_compile_definitions(test_embed PRIVATE STEPCAST_LARGE_FILE="${large}")

# The checkers check themselves; Python is needed for them alone.
find_package(Python3 QUIET COMPONENTS Interpreter)
if(STEPCAST_TESTS AND Python3_FOUND)
  foreach(checker layers words)
    add_test(NAME check_${checker}:self-test COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/check_${checker}.py --self-test)
  endforeach()
endif()

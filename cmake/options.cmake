# One interface target carries the language level, warnings and numeric rules; nothing is set globally.
set(CMAKE_CXX_EXTENSIONS OFF)
add_library(stepcast_options INTERFACE)
target_compile_features(stepcast_options INTERFACE cxx_std_20)
target_include_directories(stepcast_options INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include/stepcast>)
# -Wno-restrict: GCC 12 warns falsely about std::string concatenation (GCC bug 105651).
# -ffp-contract=off: models must give the same bits on every machine. The flags are for C++ alone: nvcc passes its own to the host compiler.
set(compile_options "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wconversion;-Wsign-conversion;-Wshadow;$<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>;-ffp-contract=off>")
target_compile_options(stepcast_options INTERFACE "$<BUILD_INTERFACE:${compile_options}>")
# Not JSON_DIAGNOSTICS: with it, nlohmann 3.11.2 fails its own assertion when an ordered_json object grows. Our reader adds the JSON pointer itself.
option(STEPCAST_WERROR "Warnings are errors" OFF)
if(STEPCAST_WERROR)
  target_compile_options(stepcast_options INTERFACE $<BUILD_INTERFACE:$<$<COMPILE_LANGUAGE:CXX>:-Werror>>)
endif()

# Sanitizers come as a comma list. Fuzzers need clang and instrument the libraries as well, so that coverage guides them.
set(sanitize ${STEPCAST_SANITIZE})
if(STEPCAST_FUZZERS)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "STEPCAST_FUZZERS needs clang (libFuzzer): use `cmake --preset fuzz`")
  endif()
  set(sanitize address,undefined)
  target_compile_options(stepcast_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=fuzzer-no-link>)
endif()
if(sanitize)
  target_compile_options(stepcast_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${sanitize};-fno-omit-frame-pointer;-fno-sanitize-recover=all>)
  target_link_options(stepcast_options INTERFACE -fsanitize=${sanitize})
  # AddressSanitizer registers every global at the start, and each of a position-independent program is relocated before: 0.4 s of 0.8 s, in each of 2,000 processes of the tests.
  if(sanitize MATCHES "address")
    target_link_options(stepcast_options INTERFACE $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
  endif()
endif()

find_program(STEPCAST_CCACHE ccache)
if(STEPCAST_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${STEPCAST_CCACHE})
endif()

# Stands before each include of a unity; clang-tidy reads it.
set(STEPCAST_UNITY_NOTE "// NOLINTNEXTLINE(bugprone-suspicious-include): a unity build")

# stepcast_library(NAME sources... LINK libraries...): one static library per room.
function(stepcast_library name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_library(stepcast_${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(stepcast_${name} PUBLIC stepcast_options ${ARG_LINK})
  # Sanitized, the optimiser takes half the time of the first rooms' compilation, and tests spend little of theirs in them; in the others they spend most of it.
  if(STEPCAST_SANITIZE AND name MATCHES "^(cli|scenarios)$")
    target_compile_options(stepcast_${name} PRIVATE -O0)
  elseif(STEPCAST_SANITIZE AND name MATCHES "^(sim|memory|hw_models|program)$")
    target_compile_options(stepcast_${name} PRIVATE -O2)
  endif()
  set_target_properties(stepcast_${name} PROPERTIES EXPORT_NAME ${name} UNITY_BUILD_CODE_BEFORE_INCLUDE "${STEPCAST_UNITY_NOTE}")
  set_property(GLOBAL APPEND PROPERTY STEPCAST_ROOMS ${name})  # cmake/install.cmake
endfunction()

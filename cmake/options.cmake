# One interface target carries the language level, warnings and numeric rules; nothing is set globally.
add_library(stepcast_options INTERFACE)
target_compile_features(stepcast_options INTERFACE cxx_std_20)
target_include_directories(stepcast_options INTERFACE ${PROJECT_SOURCE_DIR})
# -ffp-contract=off: models must give the same bits on every machine.
target_compile_options(stepcast_options INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -ffp-contract=off)
option(STEPCAST_WERROR "Warnings are errors" OFF)
if(STEPCAST_WERROR)
  target_compile_options(stepcast_options INTERFACE -Werror)
endif()
if(STEPCAST_SANITIZE)
  target_compile_options(stepcast_options INTERFACE -fsanitize=${STEPCAST_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(stepcast_options INTERFACE -fsanitize=${STEPCAST_SANITIZE})
endif()

find_program(STEPCAST_CCACHE ccache)
if(STEPCAST_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${STEPCAST_CCACHE})
endif()

# stepcast_library(NAME sources... LINK libraries...): one static library per room.
function(stepcast_library name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_library(stepcast_${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(stepcast_${name} PUBLIC stepcast_options ${ARG_LINK})
endfunction()

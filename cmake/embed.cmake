# stepcast_embed(TARGET FUNCTION files...): compiles data files into the program, so that an installed binary needs no data folder.
# Generates `std::span<const EmbeddedFile> FUNCTION()` in namespace stepcast (declared in hw_models/embedded.hpp), in the order given.
# Paths are relative to the calling folder, or made by a command of it; any bytes are allowed in a file, only plain characters in its name. Test: tests/unit/embed_test.cpp.
function(stepcast_embed target function)
  set(files "")
  foreach(file IN LISTS ARGN)
    get_filename_component(path "${file}" ABSOLUTE)
    get_source_file_property(made "${path}" GENERATED)
    if(NOT made AND NOT EXISTS "${path}")
      message(FATAL_ERROR "stepcast_embed(${target} ${function}): no file ${path}")
    endif()
    get_filename_component(name "${path}" NAME)
    if(NOT name MATCHES "^[A-Za-z0-9_.+-]+$")
      message(FATAL_ERROR "stepcast_embed(${target} ${function}): the name ${name} may hold only letters, digits and _ . + -")
    endif()
    list(APPEND files "${path}")
  endforeach()
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/${function}.cpp)
  add_custom_command(OUTPUT ${generated}
    COMMAND ${CMAKE_COMMAND} -DOUT=${generated} -DFUNCTION=${function} "-DFILES=${files}" -P ${PROJECT_SOURCE_DIR}/cmake/embed_script.cmake
    DEPENDS ${files} ${PROJECT_SOURCE_DIR}/cmake/embed_script.cmake
    COMMENT "Embedding ${function}"
    VERBATIM)
  set_source_files_properties(${generated} PROPERTIES COMPILE_OPTIONS -Wno-overlength-strings)  # clang counts to 65536, GCC does not
  target_sources(${target} PRIVATE ${generated})
endfunction()

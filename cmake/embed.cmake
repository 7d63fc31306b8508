# stepcast_embed(TARGET VAR files...): compiles data files into the program, so that an installed binary needs no data folder.
# Generates `std::span<const EmbeddedFile> <function>()` in namespace stepcast; declared in hw_models/embedded.hpp.
function(stepcast_embed target function)
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/${function}.cpp)
  add_custom_command(OUTPUT ${generated}
    COMMAND ${CMAKE_COMMAND} -DOUT=${generated} -DFUNCTION=${function} "-DFILES=${ARGN}" -DDIR=${CMAKE_CURRENT_SOURCE_DIR} -P ${PROJECT_SOURCE_DIR}/cmake/embed_script.cmake
    DEPENDS ${ARGN} ${PROJECT_SOURCE_DIR}/cmake/embed_script.cmake VERBATIM)
  target_sources(${target} PRIVATE ${generated})
endfunction()

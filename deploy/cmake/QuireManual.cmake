# SPDX-License-Identifier: Apache-2.0
# quire_install_program(NAME): `cmake --install` installs the program NAME, which has
# AttachManual(), with its man page and its completions, which its build makes.
# NAME.h2m, next to the CMakeLists.txt, holds sections of the page for help2man that
# --help lacks.
function(quire_install_program name)
  set(directory "${CMAKE_BINARY_DIR}/share/${name}")
  set(page "${directory}/${name}.1")
  set(sections "${CMAKE_CURRENT_SOURCE_DIR}/${name}.h2m")
  set(text "${CMAKE_SOURCE_DIR}/deploy/cmake/man_text.sh")
  add_custom_command(
    OUTPUT "${page}" "${directory}/${name}" "${directory}/_${name}"
    COMMAND ${CMAKE_COMMAND} -E make_directory "${directory}"
    COMMAND ${CMAKE_COMMAND} -E env QUIRE_PROGRAM=$<TARGET_FILE:${name}>
      "${QUIRE_HELP2MAN}" --no-info "--include=${sections}" "--output=${page}" "${text}"
    COMMAND $<TARGET_FILE:${name}> --completion bash > "${directory}/${name}"
    COMMAND $<TARGET_FILE:${name}> --completion zsh > "${directory}/_${name}"
    DEPENDS ${name} "${sections}" "${text}"
    VERBATIM)
  add_custom_target(${name}_man_page ALL DEPENDS "${page}")
  install(TARGETS ${name} RUNTIME DESTINATION bin)
  install(FILES "${page}" DESTINATION share/man/man1)
  install(FILES "${directory}/${name}" DESTINATION share/bash-completion/completions)
  install(FILES "${directory}/_${name}" DESTINATION share/zsh/vendor-completions)
endfunction()

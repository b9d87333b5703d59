# SPDX-License-Identifier: Apache-2.0
# quire_install_program(NAME): what `cmake --install` puts in place for a
# program with AttachManual(): the binary, its man page and its completions,
# made by running it when it was built.
function(quire_install_program name)
  set(directory "${CMAKE_BINARY_DIR}/share/${name}")
  set(page "${directory}/${name}.1")
  add_custom_command(
    OUTPUT "${page}" "${directory}/${name}" "${directory}/_${name}"
    COMMAND ${CMAKE_COMMAND} -E make_directory "${directory}"
    COMMAND $<TARGET_FILE:${name}> --man > "${page}"
    COMMAND $<TARGET_FILE:${name}> --completion bash > "${directory}/${name}"
    COMMAND $<TARGET_FILE:${name}> --completion zsh > "${directory}/_${name}"
    DEPENDS ${name}
    VERBATIM)
  add_custom_target(${name}_man_page ALL DEPENDS "${page}")
  install(TARGETS ${name} RUNTIME DESTINATION bin)
  install(FILES "${page}" DESTINATION share/man/man1)
  install(FILES "${directory}/${name}" DESTINATION share/bash-completion/completions)
  install(FILES "${directory}/_${name}" DESTINATION share/zsh/vendor-completions)
endfunction()

# SPDX-License-Identifier: Apache-2.0
# quire_install_program(NAME): what `cmake --install` puts in place for a
# program with AttachManual(): the binary, its man page and its completions,
# made by running it when it was built.
function(quire_install_program name)
  set(folder "${CMAKE_BINARY_DIR}/share/${name}")
  set(page "${folder}/${name}.1")
  add_custom_command(
    OUTPUT "${page}" "${folder}/${name}" "${folder}/_${name}" "${folder}/${name}.fish"
    COMMAND ${CMAKE_COMMAND} -E make_directory "${folder}"
    COMMAND $<TARGET_FILE:${name}> --man > "${page}"
    COMMAND $<TARGET_FILE:${name}> --completion bash > "${folder}/${name}"
    COMMAND $<TARGET_FILE:${name}> --completion zsh > "${folder}/_${name}"
    COMMAND $<TARGET_FILE:${name}> --completion fish > "${folder}/${name}.fish"
    DEPENDS ${name}
    VERBATIM)
  add_custom_target(${name}_man_page ALL DEPENDS "${page}")
  install(TARGETS ${name} RUNTIME DESTINATION bin)
  install(FILES "${page}" DESTINATION share/man/man1)
  install(FILES "${folder}/${name}" DESTINATION share/bash-completion/completions)
  install(FILES "${folder}/_${name}" DESTINATION share/zsh/vendor-completions)
  install(FILES "${folder}/${name}.fish" DESTINATION share/fish/vendor_completions.d)
endfunction()

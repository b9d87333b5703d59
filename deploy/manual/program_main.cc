// SPDX-License-Identifier: Apache-2.0
#include "deploy/manual/program_main.h"

#include <exception>
#include <iostream>

namespace quire {

int RunProgram(const CLI::App& app, int failure_code,
               const std::function<int()>& run) {
  try {
    return run();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kProgramExitUsage;
  } catch (const std::exception& error) {
    std::cerr << app.get_name() << ": " << error.what() << "\n";
    return failure_code;
  }
}

}  // namespace quire

// SPDX-License-Identifier: Apache-2.0
//
// Fixture of the tests of the program quire: a fake server, runs of the program
// against it, and a directory for their files.
#ifndef QUIRE_CLIENT_CLI_TESTING_CLI_FIXTURE_H_
#define QUIRE_CLIENT_CLI_TESTING_CLI_FIXTURE_H_

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "client/cli/testing/program_runner.h"
#include "client/quire/testing/fake_server.h"
#include "testing/base/temporary_directory.h"

namespace quire {

// Not thread-safe. The server runs on threads of its own until the end.
class CliTest : public ::testing::Test {
 protected:
  // Starts no server: tests set `server_` before they call Run().
  CliTest() = default;

  // Starts a server of these archives, by name.
  explicit CliTest(std::map<std::string, FakeArchive> archives)
      : archives_(std::move(archives)),
        server_(FakeServer::Start({}, archives_)) {}

  // Runs quire with the server's address in its environment.
  ProgramRun Run(ProgramInput input) const {
    input.environment.push_back("QUIRE_SERVER=" + server_->address());
    return RunProgram(
        absl::StrCat(std::getenv("QUIRE_BINARY_DIR"), "/bin/quire"), input);
  }

  // `in` is standard input. `environment`, of "NAME=VALUE", and the server's
  // address are the whole environment.
  ProgramRun Run(std::vector<std::string> arguments, std::string in = "",
                 std::vector<std::string> environment = {}) const {
    ProgramInput input;
    input.arguments = std::move(arguments);
    input.in = std::move(in);
    input.environment = std::move(environment);
    return Run(std::move(input));
  }

  // The document of this number of the archive "web".
  const FakeDocument& Web(size_t ordinal) const {
    return archives_.at("web").documents[ordinal];
  }

  // Archives of the server, by name.
  const std::map<std::string, FakeArchive> archives_ = {};
  const TemporaryDirectory scratch_;
  const std::string directory_ = scratch_.path();
  // Null until started.
  std::unique_ptr<FakeServer> server_;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_TESTING_CLI_FIXTURE_H_

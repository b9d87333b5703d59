// SPDX-License-Identifier: Apache-2.0
//
// quire: reads documents from archives on a Quire server.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "client/cli/cli_run.h"
#include "client/cli/cli_settings.h"
#include "client/cli/command_line.h"
#include "client/cli/output_file.h"
#include "client/cli/private_server.h"
#include "client/quire/client.h"
#include "client/quire/process_settings.h"
#include "codecs/base/program_main.h"

namespace quire {
namespace {

int Fail(const absl::Status& status, const CliSettings& settings) {
  std::fputs(MessageFor("", status, settings).c_str(), stderr);
  return ExitCodeFor(status);
}

int RunParsed(const CLI::App& app, CliSettings& settings) {
  // Until the run has ended.
  std::optional<PrivateServer> server;
  if (settings.archive_path.has_value()) {
    absl::StatusOr<PrivateServer> joined =
        PrivateServer::Join(*settings.archive_path);
    if (!joined.ok()) {
      return Fail(joined.status(), settings);
    }
    server = *std::move(joined);
    settings.server = server->address();
    settings.archive = server->archive_name();
  }
  absl::StatusOr<ClientOptions> options = MakeClientOptions(settings);
  if (!options.ok()) {
    return Fail(options.status(), settings);
  }
  absl::StatusOr<std::unique_ptr<Client>> client =
      Client::Connect(*std::move(options));
  if (!client.ok()) {
    return Fail(client.status(), settings);
  }
  absl::StatusOr<std::unique_ptr<OutputFile>> output =
      OutputFile::Open(settings.output);
  if (!output.ok()) {
    return Fail(output.status(), settings);
  }
  CliRun run(settings, *std::move(client), *std::move(output));
  return run.Finish(RunSubcommand(app, run));
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) {
  quire::PrepareReadingProcess();
  // A reader that closes the pipe causes EPIPE, which output code handles.
  std::signal(SIGPIPE, SIG_IGN);
  // A limit on file sizes (ulimit -f) causes EFBIG.
  std::signal(SIGXFSZ, SIG_IGN);
  // Errors have our own messages; those of gRPC would mix with them.
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the only thread.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  quire::CliSettings settings;
  return quire::RunProgram(
      "quire", "Read documents from archives on a Quire server",
      quire::kExitNotFoundOrDamaged, [&](CLI::App& app) {
        quire::DefineCommandLine(app, settings,
                                 quire::HasArchivePath(argc, argv));
        quire::ParseCommandLine(app, settings, argc, argv);
        return quire::RunParsed(app, settings);
      });
}

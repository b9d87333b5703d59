// SPDX-License-Identifier: Apache-2.0
//
// api_limit: the two ends of the comparison of quired with an empty handler;
// api_limit.py runs them.
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/support/channel_arguments.h"

#include "codecs/base/number_range.h"
#include "codecs/base/program_main.h"
#include "loadtest/api_limit/empty_service.h"
#include "loadtest/api_limit/raw_load.h"

namespace quire {
namespace {

struct Arguments {
  EmptyAnswers answers;
  std::string quire_address;
  int quire_pid = 0;
  std::string empty_address;
  int empty_pid = 0;
  std::string archive = "bench";
  uint64_t text_size_bytes = 0;
  int rounds = 5;
  int milliseconds = 1500;
  int channels = 4;
  int in_flight = 64;
  int batch_in_flight = 1024;
};

// Of quired's messages of a scan, at most.
constexpr uint64_t kScanMessageSizeBytes = 1 << 20;

// Memory that was freed serves what comes next, without new pages each time.
// REQUIRES: no other thread has been started.
void KeepMemory() {
  // NOLINTBEGIN(concurrency-mt-unsafe)
  mallopt(M_MMAP_THRESHOLD, 64 << 20);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
  mallopt(M_ARENA_MAX, 2);
  // NOLINTEND(concurrency-mt-unsafe)
}

// What quired sets (server/service/server.cc). Some of these add to each call,
// so the two servers must not differ in them; that the limits are never reached
// here does not matter.
void ServeAsQuired(grpc::ServerBuilder& builder) {
  grpc::EnableDefaultHealthCheckService(true);
  builder.SetMaxReceiveMessageSize(2 << 20);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, 10 * 60 * 1000);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 256);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 60 * 1000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20 * 1000);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10 * 1000);
}

// Serves until standard input ends, so that it does not outlive its parent.
int ServeEmpty(const Arguments& arguments) {
  // As quired does.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  KeepMemory();
  const std::unique_ptr<grpc::Service> service =
      MakeEmptyService(arguments.answers);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  ServeAsQuired(builder);
  builder.RegisterService(service.get());
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) {
    std::cerr << "api_limit: cannot listen\n";
    return 1;
  }
  absl::PrintF("127.0.0.1:%d\n", port);
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  server->Shutdown();
  return 0;
}

std::vector<std::shared_ptr<grpc::Channel>> Connect(const std::string& address,
                                                    int count) {
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (int i = 0; i < count; ++i) {
    grpc::ChannelArguments options;
    // As the client library does.
    options.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, 256 << 10);
    // A connection of its own.
    options.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    options.SetMaxReceiveMessageSize(-1);
    channels.push_back(grpc::CreateCustomChannel(
        address, grpc::InsecureChannelCredentials(), options));
  }
  return channels;
}

// One thing to measure at each of the servers.
struct Turn {
  const char* what;
  RawMethod method;
  uint64_t size_bytes;
};

void Print(const char* server, const Turn& turn, const RawLoadReport& report) {
  const auto count =
      static_cast<double>(std::max<uint64_t>(report.answer_count, 1));
  absl::PrintF(
      "{\"what\": \"%s %s\", \"answers_per_second\": %.1f, "
      "\"megabytes_per_second\": %.1f, \"server_cpu_us\": %.3f, "
      "\"client_cpu_us\": %.3f}\n",
      server, turn.what, count / report.seconds,
      static_cast<double>(report.size_bytes) / 1e6 / report.seconds,
      report.server_cpu_seconds * 1e6 / count,
      report.client_cpu_seconds * 1e6 / count);
  std::fflush(stdout);
}

absl::StatusOr<RawLoadReport> RunTurn(
    const std::vector<std::shared_ptr<grpc::Channel>>& channels,
    const Arguments& arguments, const Turn& turn, bool is_empty) {
  const bool is_batch = turn.method == RawMethod::kBatchRead;
  // The empty handler makes one message of a scan, as long as quired's.
  const bool is_one_message = is_empty && turn.method == RawMethod::kScan;
  return RunRawLoad(
      channels,
      {.method = turn.method,
       .archive = arguments.archive,
       .text_size_bytes = arguments.text_size_bytes,
       .range_size_bytes =
           is_one_message ? std::min(turn.size_bytes, kScanMessageSizeBytes)
                          : turn.size_bytes,
       .in_flight = static_cast<size_t>(is_batch ? arguments.batch_in_flight
                                                 : arguments.in_flight),
       .batch_items = arguments.answers.batch_items,
       .duration = absl::Milliseconds(arguments.milliseconds),
       .server_pid = is_empty ? arguments.empty_pid : arguments.quire_pid});
}

// The speed of a machine that is not alone drifts within seconds, so turns are
// short, and every other round has quired first: over two rounds a steady drift
// falls on both servers alike.
int Measure(const Arguments& arguments) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  KeepMemory();
  const auto quire = Connect(arguments.quire_address, arguments.channels);
  const auto empty = Connect(arguments.empty_address, arguments.channels);
  const std::array turns = {
      Turn{"unary", RawMethod::kRead, arguments.answers.size_bytes},
      Turn{"batch", RawMethod::kBatchRead, arguments.answers.size_bytes},
      Turn{"scan", RawMethod::kScan, arguments.text_size_bytes}};
  for (int round = 0; round < arguments.rounds; ++round) {
    for (const Turn& turn : turns) {
      for (const bool is_first : {true, false}) {
        const bool is_empty = is_first == (round % 2 == 0);
        const char* const server = is_empty ? "empty" : "quire";
        const absl::StatusOr<RawLoadReport> report =
            RunTurn(is_empty ? empty : quire, arguments, turn, is_empty);
        if (!report.ok()) {
          std::cerr << "api_limit: " << server << " " << turn.what << ": "
                    << report.status().message() << "\n";
          return 1;
        }
        Print(server, turn, *report);
      }
    }
  }
  return 0;
}

void Declare(CLI::App& app, Arguments& arguments) {
  app.require_subcommand(1);
  app.fallthrough();
  app.add_option("--range-size", arguments.answers.size_bytes, "bytes")
      ->capture_default_str();
  app.add_subcommand("empty",
                     "Serve nothing: prints its address, ends with its input");
  CLI::App* const measure = app.add_subcommand(
      "measure",
      "Read from both servers in turn, each round in the other order; a line "
      "of JSON for each");
  measure->add_option("--quire", arguments.quire_address, "HOST:PORT")
      ->required();
  measure->add_option("--quire-pid", arguments.quire_pid);
  measure->add_option("--empty", arguments.empty_address, "HOST:PORT")
      ->required();
  measure->add_option("--empty-pid", arguments.empty_pid);
  measure->add_option("--archive", arguments.archive)->capture_default_str();
  measure->add_option("--text-size", arguments.text_size_bytes, "bytes")
      ->required();
  measure->add_option("--rounds", arguments.rounds)
      ->check(CountInRange(1, 100))
      ->capture_default_str();
  measure->add_option("--milliseconds", arguments.milliseconds, "of each")
      ->check(CountInRange(10, 60'000))
      ->capture_default_str();
  measure->add_option("--channels", arguments.channels, "connections")
      ->check(CountInRange(1, 64))
      ->capture_default_str();
  measure->add_option("--in-flight", arguments.in_flight, "unary calls")
      ->check(CountInRange(1, 4096))
      ->capture_default_str();
  measure->add_option("--batch-in-flight", arguments.batch_in_flight, "items")
      ->check(CountInRange(1, 100'000))
      ->capture_default_str();
}

int Run(const CLI::App& app, const Arguments& arguments) {
  if (app.got_subcommand("empty")) {
    return ServeEmpty(arguments);
  }
  if (arguments.text_size_bytes < arguments.answers.size_bytes ||
      static_cast<uint32_t>(arguments.batch_in_flight / arguments.channels) <
          arguments.answers.batch_items) {
    throw CLI::ValidationError(
        "--text-size must be at least --range-size, and --batch-in-flight at "
        "least 64 for each of --channels");
  }
  return Measure(arguments);
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) {
  quire::Arguments arguments;
  return quire::RunProgram(
      "api_limit", "what gRPC's API alone can do, and what quired makes of it",
      1, [&](CLI::App& app) {
        quire::Declare(app, arguments);
        app.parse(argc, argv);
        return quire::Run(app, arguments);
      });
}

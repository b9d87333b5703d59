// SPDX-License-Identifier: Apache-2.0
//
// api_limit: the two ends of the comparison of quired with an empty handler;
// api_limit.py runs them.
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
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

#include "deploy/manual/program_main.h"
#include "loadtest/api_limit/empty_service.h"
#include "loadtest/api_limit/raw_load.h"
#include "loadtest/api_limit/raw_stream.h"

namespace quire {
namespace {

constexpr size_t kRequestsMade = 8192;
// Enough for all calls in flight to be answered a few times over.
constexpr absl::Duration kTurnWarmUp = absl::Milliseconds(50);

struct Arguments {
  EmptyAnswers answers;
  bool plain = false;
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
  bool unary = true;
  bool batch = true;
  // Of streams.
  std::string cold_address;
  int cold_pid = 0;
  uint64_t cold_text_size_bytes = 0;
};

// Memory that was freed serves what comes next, without new pages each time.
void KeepMemory() {
  mallopt(M_MMAP_THRESHOLD, 64 << 20);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
  mallopt(M_ARENA_MAX, 2);
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
  if (!arguments.plain) {
    ServeAsQuired(builder);
  }
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

// False if anything failed.
bool Print(const char* what, const RawLoadReport& report) {
  absl::PrintF(
      "{\"what\": \"%s\", \"answers_per_second\": %.1f, "
      "\"server_cpu_us\": %.3f}\n",
      what, static_cast<double>(report.answer_count) / report.seconds,
      report.server_cpu_seconds * 1e6 /
          static_cast<double>(std::max<uint64_t>(report.answer_count, 1)));
  std::fflush(stdout);
  if (report.fault_count > 0) {
    std::cerr << "api_limit: " << what << ": " << report.fault << "\n";
  }
  return report.fault_count == 0;
}

// False if anything failed.
bool PrintStream(const std::string& what, const RawLoadReport& report) {
  const double size_bytes =
      static_cast<double>(std::max<uint64_t>(report.size_bytes, 1));
  absl::PrintF(
      "{\"what\": \"%s\", \"megabytes_per_second\": %.1f, "
      "\"messages\": %d, \"message_bytes\": %.0f, "
      "\"server_cpu_ms_per_gigabyte\": %.1f, "
      "\"client_cpu_ms_per_gigabyte\": %.1f}\n",
      what, size_bytes / 1e6 / report.seconds, report.answer_count,
      size_bytes /
          static_cast<double>(std::max<uint64_t>(report.answer_count, 1)),
      report.server_cpu_seconds * 1e12 / size_bytes,
      report.client_cpu_seconds * 1e12 / size_bytes);
  std::fflush(stdout);
  if (report.fault_count > 0) {
    std::cerr << "api_limit: " << what << ": " << report.fault << "\n";
  }
  return report.fault_count == 0;
}

// As Measure().
int MeasureStreams(const Arguments& arguments) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  KeepMemory();
  const auto quire = Connect(arguments.quire_address, arguments.channels);
  const auto cold = Connect(arguments.cold_address, arguments.channels);
  const auto empty = Connect(arguments.empty_address, arguments.channels);
  RawLoadOptions options{.duration =
                             absl::Milliseconds(arguments.milliseconds)};
  bool is_good = true;
  for (int round = 0; round < arguments.rounds && is_good; ++round) {
    for (const int size_kib : {256, 1024, 2048}) {
      options.server_pid = arguments.empty_pid;
      is_good &= PrintStream(
          absl::StrFormat("empty, messages of %d KiB", size_kib),
          RunRawStreams(empty,
                        {.archive = arguments.archive,
                         .size_bytes = static_cast<uint64_t>(size_kib) << 10},
                        options));
    }
    RawStreamRequest request{.archive = arguments.archive,
                             .size_bytes = arguments.text_size_bytes};
    options.server_pid = arguments.quire_pid;
    is_good &= PrintStream("quire Scan, cached",
                           RunRawStreams(quire, request, options));
    request.method = RawStreamMethod::kReadStream;
    is_good &= PrintStream("quire ReadStream, cached",
                           RunRawStreams(quire, request, options));
    options.server_pid = arguments.cold_pid;
    request = {.archive = arguments.archive,
               .size_bytes = arguments.cold_text_size_bytes};
    is_good &= PrintStream("quire Scan, not cached",
                           RunRawStreams(cold, request, options));
  }
  return is_good ? 0 : 1;
}

// One thing to measure: a kind of call at one of the servers.
struct Turn {
  const char* what;
  bool is_batch;
  bool is_empty;
};

// Unary calls and batches, each at both servers one right after the other.
std::vector<Turn> TurnsOfRound(const Arguments& arguments) {
  std::vector<Turn> turns;
  if (arguments.unary) {
    turns.push_back({"empty unary", /*is_batch=*/false, /*is_empty=*/true});
    turns.push_back({"quire unary", /*is_batch=*/false, /*is_empty=*/false});
  }
  if (arguments.batch) {
    turns.push_back({"quire batch", /*is_batch=*/true, /*is_empty=*/false});
    turns.push_back({"empty batch", /*is_batch=*/true, /*is_empty=*/true});
  }
  return turns;
}

// The speed of a machine that is not alone drifts within seconds, so turns are
// short, and every other round has them the other way round: over two rounds a
// steady drift falls on both servers alike.
int Measure(const Arguments& arguments) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  const auto quire = Connect(arguments.quire_address, arguments.channels);
  const auto empty = Connect(arguments.empty_address, arguments.channels);
  const RawRequests requests =
      MakeRawRequests(arguments.archive, arguments.text_size_bytes,
                      arguments.answers.size_bytes, kRequestsMade,
                      arguments.answers.batch_items);
  std::vector<Turn> turns = TurnsOfRound(arguments);
  bool is_good = true;
  for (int round = 0; round < arguments.rounds && is_good; ++round) {
    for (const Turn& turn : turns) {
      const auto& channels = turn.is_empty ? empty : quire;
      const RawLoadOptions options{
          .warm_up = kTurnWarmUp,
          .duration = absl::Milliseconds(arguments.milliseconds),
          .in_flight = static_cast<size_t>(
              turn.is_batch ? arguments.batch_in_flight : arguments.in_flight),
          .range_size_bytes = arguments.answers.size_bytes,
          .server_pid =
              turn.is_empty ? arguments.empty_pid : arguments.quire_pid};
      is_good &= Print(
          turn.what, turn.is_batch ? RunRawBatches(channels, requests, options)
                                   : RunRawReads(channels, requests, options));
    }
    std::reverse(turns.begin(), turns.end());
  }
  return is_good ? 0 : 1;
}

// What both subcommands that measure take.
void DeclareServers(CLI::App& measure, Arguments& arguments) {
  measure.add_option("--quire", arguments.quire_address, "HOST:PORT")
      ->required();
  measure.add_option("--quire-pid", arguments.quire_pid);
  measure.add_option("--empty", arguments.empty_address, "HOST:PORT")
      ->required();
  measure.add_option("--empty-pid", arguments.empty_pid);
  measure.add_option("--archive", arguments.archive)->capture_default_str();
  measure.add_option("--text-size", arguments.text_size_bytes, "bytes")
      ->required();
  measure.add_option("--rounds", arguments.rounds)
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  measure.add_option("--milliseconds", arguments.milliseconds, "of each")
      ->check(CLI::Range(10, 60'000))
      ->capture_default_str();
  measure.add_option("--channels", arguments.channels, "connections")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
}

void Declare(CLI::App& app, Arguments& arguments) {
  app.require_subcommand(1);
  app.fallthrough();
  app.add_option("--range-size", arguments.answers.size_bytes, "bytes")
      ->capture_default_str();
  app.add_option("--batch-items", arguments.answers.batch_items,
                 "in a message of BatchRead")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--batch-results", arguments.answers.batch_results,
                 "in a message of the empty handler's answers; divides "
                 "--batch-items")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_subcommand("empty",
                     "Serve nothing: prints its address, ends with its input")
      ->add_flag("--plain", arguments.plain,
                 "with gRPC's own settings, not with quired's");
  CLI::App* const measure = app.add_subcommand(
      "measure", "Read from both servers in turn; a line of JSON for each");
  DeclareServers(*measure, arguments);
  measure->add_option("--in-flight", arguments.in_flight, "unary calls")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  measure->add_option("--batch-in-flight", arguments.batch_in_flight, "items")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  measure->add_flag("!--no-unary", arguments.unary, "leave out unary calls");
  measure->add_flag("!--no-batch", arguments.batch, "leave out batches");
  CLI::App* const streams = app.add_subcommand(
      "streams",
      "Stream from all servers in turn, one stream a connection; a line of "
      "JSON for each");
  DeclareServers(*streams, arguments);
  streams->add_option("--cold", arguments.cold_address, "HOST:PORT")
      ->required();
  streams->add_option("--cold-pid", arguments.cold_pid);
  streams
      ->add_option("--cold-text-size", arguments.cold_text_size_bytes, "bytes")
      ->required();
}

int Run(const CLI::App& app, const Arguments& arguments) {
  if (arguments.answers.batch_items % arguments.answers.batch_results != 0) {
    throw CLI::ValidationError(
        "--batch-results does not divide "
        "--batch-items");
  }
  if (app.got_subcommand("measure") &&
      (arguments.text_size_bytes < arguments.answers.size_bytes ||
       static_cast<uint32_t>(arguments.batch_in_flight / arguments.channels) <
           arguments.answers.batch_items)) {
    throw CLI::ValidationError(
        "the text is shorter than a range, or the "
        "items in flight than one message for each "
        "connection");
  }
  if (app.got_subcommand("empty")) {
    return ServeEmpty(arguments);
  }
  return app.got_subcommand("streams") ? MeasureStreams(arguments)
                                       : Measure(arguments);
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) {
  CLI::App app("What gRPC's API alone can do, and what quired makes of it.",
               "api_limit");
  quire::Arguments arguments;
  quire::Declare(app, arguments);
  return quire::RunProgram(app, 1, [&] {
    app.parse(argc, argv);
    return quire::Run(app, arguments);
  });
}

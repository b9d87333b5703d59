// SPDX-License-Identifier: Apache-2.0
//
// Tables for answers in other encodings than identity.
#ifndef QUIRE_LOADTEST_GENERATOR_LOAD_TABLES_H_
#define QUIRE_LOADTEST_GENERATOR_LOAD_TABLES_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "grpcpp/channel.h"

#include "proto/quire/v1/archive.grpc.pb.h"

#include "client/quire/internal/table_store.h"
#include "client/quire/internal/wire_call.h"
#include "client/quire/wire_encoding.h"
#include "loadtest/requests/load_options.h"

namespace quire {

// The tables of one archive, fetched before a run. An answer that names another
// table is a fault, as archives do not change while they are measured.
// Thread-safe.
class LoadTables : private TableSource {
 public:
  // REQUIRES: options.encoding is not kIdentity.
  // Errors: FailedPrecondition  the archive cannot have this encoding.
  //         else                why a table could not be fetched.
  static absl::StatusOr<std::unique_ptr<LoadTables>> Fetch(
      const std::shared_ptr<grpc::Channel>& channel,
      const v1::ArchiveDescription& archive, const LoadOptions& options);

  // Starts decoding one request.
  std::unique_ptr<WireCall> StartCall();

 private:
  LoadTables(const std::shared_ptr<grpc::Channel>& channel,
             const v1::ArchiveDescription& archive, const LoadOptions& options)
      : stub_(v1::Archive::NewStub(channel)),
        archive_(archive),
        encoding_(options.encoding),
        deadline_(options.deadline) {}

  absl::Status FetchAll();
  absl::StatusOr<std::string> FetchSymbolTable(absl::string_view archive,
                                               uint64_t hash,
                                               size_t size_bytes_max) override;
  absl::StatusOr<std::string> FetchDictionary(absl::string_view archive,
                                              uint64_t hash,
                                              size_t size_bytes_max) override;

  const std::unique_ptr<v1::Archive::Stub> stub_;
  const v1::ArchiveDescription archive_;
  const AnswerEncoding encoding_;
  const std::chrono::milliseconds deadline_;
  std::unique_ptr<WireState> wire_;
  // Set before the run: fetching is refused then, as calls run on threads that
  // must not block.
  bool is_complete_ = false;
};

}  // namespace quire

#endif  // QUIRE_LOADTEST_GENERATOR_LOAD_TABLES_H_

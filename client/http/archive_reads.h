// SPDX-License-Identifier: Apache-2.0
//
// Reads of archives for requests, with the headers of the request and of the
// state that its answer has.
#ifndef QUIRE_CLIENT_HTTP_ARCHIVE_READS_H_
#define QUIRE_CLIENT_HTTP_ARCHIVE_READS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "client/http/archive_states.h"
#include "client/http/bodies/byte_store.h"
#include "client/http/request/http_answer.h"
#include "client/quire/client.h"

namespace quire {

// Sends `headers` with the calls that this thread makes during its life, by
// clients of ArchiveReads, instead of those of a scope around it. `headers`
// must outlive it.
class ScopedCallHeaders {
 public:
  explicit ScopedCallHeaders(const CallHeaders& headers);
  ~ScopedCallHeaders();
  ScopedCallHeaders(const ScopedCallHeaders&) = delete;
  ScopedCallHeaders& operator=(const ScopedCallHeaders&) = delete;

 private:
  const CallHeaders* const outer_;
};

// Returns the document that `target` names. Thread-safe.
DocumentKey KeyOf(const RequestTarget& target);

// Aborted: a state that is not named is outdated.
absl::Status OutdatedState();

// Thread-safe.
class ArchiveReads {
 public:
  // Sets the callbacks of `options` that send the headers of the request being
  // answered, and that wait for delays which the server names as
  // WorkerPool::WaitOnThread() does. Does not contact the server.
  // Errors: as Client::Connect().
  static absl::StatusOr<std::unique_ptr<ArchiveReads>> Connect(
      ClientOptions options);

  Client& client() { return *client_; }

  // True if the clients' tokens can be forwarded.
  bool forwards_tokens() const { return forwards_tokens_; }

  // Errors: OutdatedState(); others as Client::Read().
  absl::StatusOr<ReadResult> Read(const std::string& archive,
                                  const KnownState& state,
                                  const ReadTarget& part);

  // Makes a call that only clients with the right to read succeed with.
  // Errors: as Read().
  absl::StatusOr<ReadResult> CheckAccess(const std::string& archive,
                                         const KnownState& state);

  // Part of the document `ordinal` of an archive, read with the request's
  // headers. This must outlive it.
  std::shared_ptr<ByteStore> DocumentBytes(const HttpRequest& request,
                                           const KnownState& state,
                                           uint64_t ordinal,
                                           const ByteSpan& part);

  // Describes the deposited file that `target` names. Errors: as
  // Client::DescribeFile().
  absl::StatusOr<v1::DepositedFile> DescribeDeposit(
      const RequestTarget& target);

  // The bytes of that file, read with the request's headers. This must outlive
  // it.
  std::shared_ptr<ByteStore> DepositBytes(const HttpRequest& request,
                                          v1::DepositedFile file);

  // The same for the logical space, while its zeros have the hash `zeros_hash`.
  std::shared_ptr<ByteStore> SpaceBytes(const HttpRequest& request,
                                        const std::string& archive,
                                        const KnownState& state,
                                        uint64_t zeros_hash);

 private:
  ArchiveReads(std::unique_ptr<Client> client, bool forwards_tokens)
      : client_(std::move(client)), forwards_tokens_(forwards_tokens) {}

  const std::unique_ptr<Client> client_;
  const bool forwards_tokens_;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_HTTP_ARCHIVE_READS_H_

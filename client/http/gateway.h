// SPDX-License-Identifier: Apache-2.0
//
// Answers requests from the archives of a server, and from files.
#ifndef QUIRE_CLIENT_HTTP_GATEWAY_H_
#define QUIRE_CLIENT_HTTP_GATEWAY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "client/http/archive_reads.h"
#include "client/http/archive_states.h"
#include "client/http/bodies/byte_store.h"
#include "client/http/bodies/file_directory.h"
#include "client/http/bodies/memory_budget.h"
#include "client/http/bodies/page_spool.h"
#include "client/http/request/http_answer.h"
#include "client/quire/client.h"

namespace quire {

struct GatewayStorage {
  // Directory of /files/; empty: none.
  std::string files_directory = {};
  // Directory and limit of decoded pages; see PageSpool.
  std::string spool_directory = {};
  uint64_t spool_size_bytes = 0;
};

// Thread-safe.
class Gateway {
 public:
  // Sets the callbacks of `options` that send the headers of the request being
  // answered. Does not contact the server. `budget` must outlive the gateway
  // and its answers.
  // Errors: as Client::Connect() and FileDirectory::Open().
  static absl::StatusOr<std::unique_ptr<Gateway>> Open(
      ClientOptions options, const GatewayStorage& storage,
      MemoryBudget* budget);

  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;

  // Receives an answer; unset: Run() must make it. Called on any thread, which
  // it must not block.
  using Done = std::function<void(std::optional<Answer>)>;

  // Starts the answer to a request if it takes one call to the server and
  // nothing else, and does not wait. Returns false, without calling `done`, for
  // other requests. `request`, `charge` (as in Run()) and the gateway must
  // outlive the call of `done`, which may come before this returns. REQUIRES:
  // request.method is kGet or kHead.
  bool Start(const HttpRequest& request, MemoryCharge& charge, Done done);

  // Returns the answer to a request. Blocks. `charge` has kPieceSizeBytesMin
  // and grows with the body. The gateway must outlive the answer.
  // REQUIRES: request.method is kGet or kHead.
  Answer Run(const HttpRequest& request, MemoryCharge& charge);

  // OK if the server answers, whether or not it knows this client. Blocks.
  // Errors: as Client::ListArchives().
  absl::Status CheckServer();

  // True for requests that hold a thread for long, or much memory.
  static bool IsHeavy(const HttpRequest& request);

  // True if the clients' tokens can be forwarded.
  bool forwards_tokens() const { return reads_->forwards_tokens(); }

  // Decoded pages on disk.
  const MemoryBudget& spool_budget() const { return spool_.budget(); }

 private:
  Gateway(std::unique_ptr<ArchiveReads> reads,
          std::unique_ptr<FileDirectory> files, const GatewayStorage& storage,
          MemoryBudget* budget);

  // Runs `run` with a state, again with a new one if it finds that the archive
  // has other contents. The state may come from memory: `run` must make a call
  // that fails for clients without the right to read.
  absl::StatusOr<Answer> WithState(
      const RequestTarget& target,
      absl::FunctionRef<absl::StatusOr<Answer>(const KnownState& state)> run);

  absl::StatusOr<Answer> AnswerDocument(const HttpRequest& request,
                                        const KnownState& state,
                                        MemoryCharge& charge);
  // Return the answer from what was read: `part` of the document or space, of
  // the media type `type`.
  absl::StatusOr<Answer> DocumentAnswer(const HttpRequest& request,
                                        const KnownState& state,
                                        const std::string& type,
                                        const ByteSpan& part, ReadResult read,
                                        MemoryCharge& charge);
  absl::StatusOr<Answer> SpaceAnswer(const HttpRequest& request,
                                     const KnownState& state,
                                     const std::string& type,
                                     const ByteSpan& part, ReadResult read,
                                     MemoryCharge& charge);
  absl::StatusOr<Answer> AnswerSpace(const HttpRequest& request,
                                     const KnownState& state,
                                     MemoryCharge& charge);
  absl::StatusOr<Answer> AnswerFile(const HttpRequest& request,
                                    MemoryCharge& charge);
  // A deposited file of an archive.
  absl::StatusOr<Answer> AnswerDeposit(const HttpRequest& request,
                                       MemoryCharge& charge);
  // A file that consists of pieces; `description` is its list of pieces.
  absl::StatusOr<Answer> AnswerPieces(const HttpRequest& request,
                                      const std::string& description,
                                      MemoryCharge& charge);

  // Part of the document that can be read before its size is known; unset if
  // there is none.
  std::optional<ByteSpan> NamedPart(const HttpRequest& request,
                                    MemoryCharge& charge) const;
  // First piece of the logical space that a request reads; empty if the answer
  // depends on the entity tag.
  ByteSpan SpacePart(const HttpRequest& request, uint64_t size_bytes,
                     MemoryCharge& charge) const;
  // Charges the body, and turns errors into answers.
  static Answer Finished(absl::StatusOr<Answer> answer, MemoryCharge& charge);

  // Returns the media type of a record of a crawl; reads its first bytes.
  absl::StatusOr<std::string> RecordType(const std::string& archive,
                                         const KnownState& state,
                                         const v1::Document& document);
  // Returns the media type of the logical space.
  absl::StatusOr<std::string> SpaceType(const std::string& archive,
                                        const KnownState& state);
  const std::unique_ptr<ArchiveReads> reads_;
  // Null: none.
  const std::unique_ptr<FileDirectory> files_;
  PageSpool spool_;
  MemoryBudget* const budget_;
  ArchiveStates states_;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_HTTP_GATEWAY_H_

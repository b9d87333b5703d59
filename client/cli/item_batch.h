// SPDX-License-Identifier: Apache-2.0
//
// Reads the items of a source, or their payloads, in one batch.
#ifndef QUIRE_CLIENT_CLI_ITEM_BATCH_H_
#define QUIRE_CLIENT_CLI_ITEM_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "client/cli/answer_order.h"
#include "client/cli/cli_run.h"
#include "client/cli/document_filter.h"
#include "client/quire/payload_search.h"
#include "client/quire/read_target.h"

namespace quire {

// Thread-compatible.
class ItemSource {
 public:
  virtual ~ItemSource() = default;

  // True after Next() found no further item.
  virtual bool at_end() const = 0;

  // Returns the next item; nothing at the end. Without `may_wait`, also nothing
  // if none is available yet.
  virtual absl::StatusOr<std::optional<ReadTarget>> Next(bool may_wait) = 0;
};

// A list of targets. Thread-compatible.
class TargetItems final : public ItemSource {
 public:
  explicit TargetItems(std::vector<ReadTarget> targets)
      : targets_(std::move(targets)) {}

  // Documents, or that part of each.
  explicit TargetItems(const std::vector<uint64_t>& ordinals,
                       std::optional<ByteSpan> part = {});

  bool at_end() const override { return next_ == targets_.size(); }

  absl::StatusOr<std::optional<ReadTarget>> Next(bool /*may_wait*/) override {
    return at_end() ? std::optional<ReadTarget>() : targets_[next_++];
  }

 private:
  std::vector<ReadTarget> targets_;
  size_t next_ = 0;
};

// Name of the file for an item in a directory, at most 221 bytes. Different
// targets have different names, since SafeFileName() never returns an '@'.
// Thread-safe.
std::string FileNameOf(const ReadTarget& target);

struct ItemBatchOptions {
  // Reads payloads instead of records. Then all items must be documents.
  bool payload = false;
  // Null: all documents pass. Must outlive the call.
  const DocumentFilter* filter = nullptr;
  // Answers come in the order of the items, else in any order.
  bool ordered = true;
};

// Requests items while earlier ones are in flight, and passes their answers to
// `sink`, whose error ends the batch. Follows revisits within the batch. Blocks
// until the source is at its end and all items are answered, or the server is
// unreachable (CliRun::unreachable()).
// Errors: those of the source and of the sink.
absl::Status ReadItems(CliRun& run, ItemSource& source,
                       const ItemBatchOptions& options,
                       const AnswerOrder::Sink& sink);

// True for the ResourceExhausted of an ItemAnswer, which can be read alone: not
// if the server refuses the batch as a whole. Thread-safe.
bool IsTooLargeForBatch(const absl::Status& status);

// Passes the data of an answer, which must be OK or IsTooLargeForBatch(), to
// `sink`, and counts them as progress. `on_begin` is called before, except for
// a range. An item that is too large is read as a stream; `payload` as in
// ItemBatchOptions. Blocks then.
// Errors: those of reading the stream, and of `on_begin` and `sink`.
absl::Status PassData(CliRun& run, const ItemAnswer& answer, bool payload,
                      PayloadOriginSink on_begin, PayloadSink sink);

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_ITEM_BATCH_H_

// SPDX-License-Identifier: Apache-2.0
//
// Reads the items of a source, or their payloads, with one BatchReader.
#ifndef QUIRE_CLIENT_CLI_ITEM_BATCH_H_
#define QUIRE_CLIENT_CLI_ITEM_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "client/cli/answer_order.h"
#include "client/cli/cli_run.h"
#include "client/cli/document_filter.h"
#include "client/quire/batch_reader.h"
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

// Name of the file for an item in a directory, at most 221 bytes. Different
// targets have different names, since SafeFileName() never returns an '@'.
// Thread-safe.
std::string FileNameOf(const ReadTarget& target);

struct ItemBatchOptions {
  // Reads payloads instead of records. Then all items must be documents.
  bool payload = false;
  // Null: all documents pass. Must outlive the batch.
  const DocumentFilter* filter = nullptr;
};

// Answers an item that is too large for a batch, or must not wait for it: by
// ResourceExhausted, left out if it does not pass the filter, or by the error
// of reading its description. Blocks.
ItemAnswer AnswerForStream(CliRun& run, const ItemBatchOptions& options,
                           uint64_t tag, const ReadTarget& target);

// Requests items while earlier ones are in flight, and passes their answers to
// an AnswerOrder. Follows revisits within the batch. Thread-compatible.
class ItemBatch {
 public:
  // The arguments must outlive the batch.
  static absl::StatusOr<std::unique_ptr<ItemBatch>> Start(
      CliRun& run, ItemSource& source, AnswerOrder& order,
      const ItemBatchOptions& options);

  // Blocks until the source is at its end and all items are answered, or the
  // server is unreachable.
  // Errors: those of the source and of the order's sink.
  absl::Status Run();

 private:
  // An item whose payload is being read.
  struct Search {
    DocumentKey key;
    // Null before the first answer.
    std::unique_ptr<PayloadSearch> search = nullptr;
    // The filters leave out the capture that was received last, or the error.
    absl::StatusOr<bool> is_left_out = false;
  };

  ItemBatch(CliRun& run, ItemSource& source, AnswerOrder& order,
            const ItemBatchOptions& options, uint64_t payload_size_bytes_max);

  absl::Status RequestItems();
  absl::Status Take(BatchAnswer answer);
  absl::Status TakePayload(BatchAnswer answer);
  // Passes a record to the item's search. Returns nothing if the search needs
  // another record; otherwise fills in `item`.
  std::optional<absl::Status> Decode(Search& state,
                                     absl::StatusOr<ReadResult> record,
                                     ItemAnswer& item);
  absl::StatusOr<bool> IsLeftOut(const ReadTarget& target,
                                 absl::StatusOr<ReadResult>& result) const;

  CliRun& run_;
  ItemSource& source_;
  AnswerOrder& order_;
  const ItemBatchOptions options_;
  // Larger payloads are read as streams.
  const uint64_t payload_size_bytes_max_;
  const std::unique_ptr<BatchReader> batch_;
  // By tag; used for payloads only.
  std::unordered_map<uint64_t, Search> searches_;
  size_t in_flight_size_bytes_ = 0;
  bool closed_ = false;
};

// True for the ResourceExhausted of an ItemAnswer. Thread-safe.
bool IsTooLargeForBatch(const absl::Status& status);

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_ITEM_BATCH_H_

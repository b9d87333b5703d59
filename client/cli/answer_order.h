// SPDX-License-Identifier: Apache-2.0
//
// A server answers the items of a batch in the order that suits it; this puts
// the answers back into the order in which the items were given.
#ifndef QUIRE_CLIENT_CLI_ANSWER_ORDER_H_
#define QUIRE_CLIENT_CLI_ANSWER_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "client/cli/answer_spool.h"
#include "client/quire/batch_reader.h"
#include "client/quire/read_target.h"

namespace quire {

struct AnswerOrderOptions {
  // False: answers go on as they come, and nothing of the rest matters.
  bool ordered = true;

  // --- Affects memory and disk. Answers that wait for one before them are held
  // in memory up to the first, then in a temporary file up to the second; past
  // both, the one that is missing is read by itself so that the others can go.
  uint64_t memory_size_bytes_max = uint64_t{128} << 20;
  uint64_t spool_size_bytes_max = uint64_t{4} << 30;

  // Items that were asked for and have not gone on: so many in any case, and up
  // to the second while the answers to all of them, at the mean size of those
  // before, would fit.
  size_t asked_count_min = 4096;
  size_t asked_count_max = 100'000;
};

// Thread-compatible.
class AnswerOrder {
 public:
  // Takes the answers in order; the tag is the item's place in the input, from
  // 0. An error ends it all.
  using Sink = std::function<absl::Status(BatchAnswer)>;
  using ReadAlone =
      std::function<absl::StatusOr<ReadResult>(const ReadTarget&)>;

  AnswerOrder(const AnswerOrderOptions& options, Sink sink,
              ReadAlone read_alone);

  // Whether one more item may be asked for.
  bool has_room() const;

  // The next item goes out to be asked for; returns its tag.
  uint64_t Ask(const ReadTarget& target);

  // An answer of the batch, in any order, with the tag that Ask() gave.
  // Errors: those of the sink; FailedPrecondition  the temporary file failed.
  absl::Status Take(BatchAnswer answer);

  // Answers that were read by themselves, and that went through the file.
  uint64_t alone_count() const { return alone_count_; }

  uint64_t spooled_count() const { return spooled_count_; }

 private:
  struct Waiting {
    BatchAnswer answer;
    // Set if its bytes are in the spool.
    std::optional<AnswerSpool::Place> place = {};
  };

  absl::Status PassOn();
  absl::Status Emit(BatchAnswer answer);
  // Whether the bytes of a waiting answer went to the file.
  bool Spool(Waiting& waiting);
  uint64_t SpoolRoomBytes() const;

  const AnswerOrderOptions options_;
  const Sink sink_;
  const ReadAlone read_alone_;
  uint64_t asked_count_ = 0;
  // The item whose answer goes out next.
  uint64_t next_ = 0;
  uint64_t answered_count_ = 0;
  uint64_t answered_size_bytes_ = 0;
  // Items whose answer has not gone out.
  std::map<uint64_t, ReadTarget> asked_;
  std::map<uint64_t, Waiting> waiting_;
  // In memory.
  uint64_t waiting_size_bytes_ = 0;
  // Null before the first that went there.
  std::unique_ptr<AnswerSpool> spool_;
  bool spool_failed_ = false;
  // Read by themselves; their answers from the batch are passed over.
  std::set<uint64_t> read_alone_numbers_;
  uint64_t alone_count_ = 0;
  uint64_t spooled_count_ = 0;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_ANSWER_ORDER_H_

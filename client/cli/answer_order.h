// SPDX-License-Identifier: Apache-2.0
//
// Puts the answers of a batch, which a server gives in any order, into the
// order of the items.
#ifndef QUIRE_CLIENT_CLI_ANSWER_ORDER_H_
#define QUIRE_CLIENT_CLI_ANSWER_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "client/quire/client.h"
#include "client/quire/payload_search.h"
#include "client/quire/read_target.h"

namespace quire {

// Result of one item of a batch.
struct ItemAnswer {
  // Position of the item in the input, from 0.
  uint64_t tag = 0;
  ReadTarget target;
  // ResourceExhausted, unless IsPayloadFault(): too large for memory; read it
  // as a stream. For a payload, `data` has the payload, and `document` is the
  // document that the item names.
  absl::StatusOr<ReadResult> result = absl::UnknownError("");
  // Set for a payload that was read.
  std::optional<PayloadOrigin> origin = {};
  // The document does not pass the filter; `result` has no data.
  bool is_left_out = false;
};

struct AnswerOrderOptions {
  // False: answers are passed on as they come, and no other option matters.
  bool ordered = true;

  // Memory for answers that wait for an earlier one. Past this size the missing
  // answer is read separately, so that the others can be passed on.
  uint64_t memory_size_bytes_max = uint64_t{128} << 20;

  // Items in flight: at least the first number, and up to the second while all
  // their answers, at the mean size so far, fit into the memory.
  size_t in_flight_min = 64;
  size_t in_flight_max = 100'000;
};

// Thread-compatible.
class AnswerOrder {
 public:
  // Receives the answers in order. An error ends the batch.
  using Sink = std::function<absl::Status(ItemAnswer)>;
  // Answers an item outside of the batch.
  using ReadSeparately =
      std::function<ItemAnswer(uint64_t tag, const ReadTarget& target)>;

  AnswerOrder(const AnswerOrderOptions& options, Sink sink,
              ReadSeparately read);

  // True if one more item may be requested.
  bool has_room() const;

  // Registers the next item; returns its tag.
  uint64_t Ask(const ReadTarget& target);

  // Takes an answer of the batch, in any order, with the tag from Ask().
  // Errors: those of the sink.
  absl::Status Take(ItemAnswer answer);

  // Answers that were read separately.
  uint64_t separate_count() const { return separate_count_; }

 private:
  absl::Status PassOn();
  absl::Status Emit(ItemAnswer answer);

  const AnswerOrderOptions options_;
  const Sink sink_;
  const ReadSeparately read_;
  uint64_t asked_count_ = 0;
  // The item whose answer is passed on next.
  uint64_t next_ = 0;
  uint64_t answered_count_ = 0;
  uint64_t answered_size_bytes_ = 0;
  // Items whose answer has not been passed on.
  std::map<uint64_t, ReadTarget> in_flight_;
  std::map<uint64_t, ItemAnswer> waiting_;
  uint64_t waiting_size_bytes_ = 0;
  // Items read separately, whose answers in the batch are skipped.
  std::set<uint64_t> read_separately_;
  uint64_t separate_count_ = 0;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_ANSWER_ORDER_H_

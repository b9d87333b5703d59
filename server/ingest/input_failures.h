// SPDX-License-Identifier: GPL-3.0-or-later
//
// What a build leaves out because it cannot be read, where the user would
// rather have the rest than nothing.
#ifndef QUIRE_SERVER_INGEST_INPUT_FAILURES_H_
#define QUIRE_SERVER_INGEST_INPUT_FAILURES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace quire {

// Inputs, files and members that failed, each counted once in however many
// passes it does. Memory: 8 bytes for each, and the messages of the first few.
// Thread-compatible.
class InputFailures {
 public:
  static constexpr size_t kKeptMessageCount = 20;

  // Is called with the message of each failure when it is first met.
  using Listener = std::function<void(const std::string& message)>;

  explicit InputFailures(Listener on_failure = nullptr)
      : on_failure_(std::move(on_failure)) {}

  // Whether a build may go on past `status`, which came from reading an input:
  // not past limits, nor past an interrupt. Counts it, unless it is known.
  // `source_index` tells inputs apart that have the same name.
  bool Tolerate(size_t source_index, const absl::Status& status);

  // The same for a document that failed after its reading had begun: it is
  // known by its `place`, so that later passes leave all of it out.
  bool TolerateDocument(size_t source_index, absl::string_view place,
                        const absl::Status& status);

  // `text` is a place, or the message of a status that was tolerated.
  bool HasFailed(size_t source_index, absl::string_view text) const;

  uint64_t count() const { return known_.size(); }

  // Of the first failures.
  const std::vector<std::string>& messages() const { return messages_; }

 private:
  void Add(uint64_t key, const absl::Status& status);

  const Listener on_failure_;
  // Hashes of messages and places.
  absl::flat_hash_set<uint64_t> known_;
  std::vector<std::string> messages_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_INPUT_FAILURES_H_

// SPDX-License-Identifier: GPL-3.0-or-later
//
// Unreadable inputs that a build skips, if the user prefers an incomplete
// archive to none.
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

// Inputs, files and members that failed, each counted once however many passes
// it fails in. Memory: 8 bytes for each, and the messages of the first few.
// Thread-compatible.
class InputFailures {
 public:
  static constexpr size_t kKeptMessageCount = 20;

  // Called with the message of each failure when it first occurs.
  using Listener = std::function<void(const std::string& message)>;

  explicit InputFailures(Listener on_failure = nullptr)
      : on_failure_(std::move(on_failure)) {}

  // Returns true if a build may continue after `status`, which came from
  // reading an input: not after a limit or an interrupt. Counts it, unless it
  // is known. `source_index` distinguishes inputs of the same name. `more` is
  // appended to the recorded message.
  bool Tolerate(size_t source_index, const absl::Status& status,
                absl::string_view more = "");

  // The same for a document that failed after its reading had begun. It is
  // identified by its `place`, so that later passes skip all of it.
  bool TolerateDocument(size_t source_index, absl::string_view place,
                        const absl::Status& status,
                        absl::string_view more = "");

  // `text` is a place, or the message of a tolerated status.
  bool HasFailed(size_t source_index, absl::string_view text) const;

  uint64_t count() const { return known_.size(); }

  // Messages of the first failures.
  const std::vector<std::string>& messages() const { return messages_; }

 private:
  void Add(uint64_t key, const std::string& message);

  const Listener on_failure_;
  // Hashes of messages and places.
  absl::flat_hash_set<uint64_t> known_;
  std::vector<std::string> messages_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_INPUT_FAILURES_H_

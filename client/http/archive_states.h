// SPDX-License-Identifier: Apache-2.0
//
// States of archives that grow, as far as the gateway knows them.
#ifndef QUIRE_CLIENT_HTTP_ARCHIVE_STATES_H_
#define QUIRE_CLIENT_HTTP_ARCHIVE_STATES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"

#include "client/http/request/request_target.h"
#include "client/quire/client.h"
#include "codecs/base/mutex.h"

namespace quire {

// A state of an archive.
struct KnownState {
  std::string uuid = {};
  uint64_t size_bytes = 0;
  uint64_t document_count = 0;
  // False: it was the present state when the archive was last described. Reads
  // do not ask for it by its uuid, but find out if it is outdated.
  bool is_named = false;
  // Media type of the logical space; empty: unknown so far.
  std::string space_type = {};
  // All states of the archive, oldest first, except for `redacted`.
  std::shared_ptr<const std::vector<v1::EarlierState>> all = {};
  // States before documents were removed for good. They can be named, and have
  // no entity tags: their logical space had other bytes.
  std::shared_ptr<const std::vector<v1::EarlierState>> redacted = {};

  // Returns the uuid of the earliest state that has `span` of the logical space
  // and `document_count_min` documents.
  std::string EarliestWith(const ByteSpan& span,
                           uint64_t document_count_min) const;
};

// Remembers the states of a bounded number of archives. Thread-safe.
class ArchiveStates {
 public:
  // `client` must outlive this.
  explicit ArchiveStates(Client* client) : client_(client) {}

  // Asks the server for the present state. Blocks.
  // Errors: as Client::GetArchive().
  absl::StatusOr<KnownState> Fetch(const std::string& archive)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the state that `target` names, or else the present one, which may
  // be outdated. Unset if it is not remembered.
  std::optional<KnownState> Recall(const RequestTarget& target) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Recall(), or Fetch().
  // Errors: as Fetch(); NotFound  the archive does not have the named state.
  absl::StatusOr<KnownState> Find(const RequestTarget& target)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Remembers the media type of the logical space.
  void SetSpaceType(const std::string& archive, const std::string& uuid,
                    const std::string& type) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Client* const client_;
  mutable Mutex mutex_;
  // Present states, by name.
  std::map<std::string, KnownState> present_ ABSL_GUARDED_BY(mutex_);
  // Sum of the sizes of KnownState::all and KnownState::redacted.
  size_t state_count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_HTTP_ARCHIVE_STATES_H_

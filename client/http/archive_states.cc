// SPDX-License-Identifier: Apache-2.0
#include "client/http/archive_states.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// Remembered archives, and their states.
constexpr size_t kArchivesMax = 1024;
constexpr size_t kStatesMax = size_t{1} << 16;

// Returns the state `uuid` of `all`; null if there is none.
const v1::EarlierState* FindIn(const std::vector<v1::EarlierState>& all,
                               const std::string& uuid) {
  const auto found = std::find_if(
      all.rbegin(), all.rend(),
      [&](const v1::EarlierState& state) { return state.uuid() == uuid; });
  return found == all.rend() ? nullptr : &*found;
}

// Turns the present state into the one that `target` names. Returns false if
// the archive does not have it.
bool SelectNamed(const RequestTarget& target, KnownState& state) {
  if (target.uuid.empty()) {
    return true;
  }
  const v1::EarlierState* named = FindIn(*state.all, target.uuid);
  if (named == nullptr) {
    named = FindIn(*state.redacted, target.uuid);
  }
  if (named == nullptr) {
    return false;
  }
  state.is_named = true;
  state.uuid = named->uuid();
  state.size_bytes = named->size_bytes();
  state.document_count = named->document_count();
  return true;
}

}  // namespace

std::string KnownState::EarliestWith(const ByteSpan& span,
                                     uint64_t document_count_min) const {
  const auto found = std::partition_point(
      all->begin(), all->end(), [&](const v1::EarlierState& state) {
        return state.size_bytes() < span.offset + span.size_bytes ||
               state.document_count() < document_count_min;
      });
  return found == all->end() ? uuid : found->uuid();
}

absl::StatusOr<KnownState> ArchiveStates::Fetch(const std::string& archive) {
  QUIRE_ASSIGN_OR_RETURN(const v1::ArchiveDescription description,
                         client_->GetArchive(archive));
  auto all = std::make_shared<std::vector<v1::EarlierState>>(
      description.history().begin(), description.history().end());
  v1::EarlierState& newest = all->emplace_back();
  newest.set_uuid(description.uuid());
  newest.set_size_bytes(description.size_bytes());
  newest.set_document_count(description.document_count());
  auto redacted = std::make_shared<std::vector<v1::EarlierState>>(
      description.redacted_states().begin(),
      description.redacted_states().end());
  const size_t count = all->size() + redacted->size();
  MutexLock lock(&mutex_);
  if (present_.size() >= kArchivesMax || state_count_ + count > kStatesMax) {
    present_.clear();
    state_count_ = 0;
  }
  KnownState& known = present_[archive];
  if (known.uuid != description.uuid()) {
    if (known.all != nullptr) {
      state_count_ -= known.all->size() + known.redacted->size();
    }
    state_count_ += count;
    known = {.uuid = description.uuid(),
             .size_bytes = description.size_bytes(),
             .document_count = description.document_count(),
             .all = std::move(all),
             .redacted = std::move(redacted)};
  }
  return known;
}

std::optional<KnownState> ArchiveStates::Recall(
    const RequestTarget& target) const {
  std::optional<KnownState> state;
  {
    MutexLock lock(&mutex_);
    const auto found = present_.find(target.archive);
    if (found == present_.end()) {
      return std::nullopt;
    }
    state = found->second;
  }
  return SelectNamed(target, *state) ? std::move(state) : std::nullopt;
}

absl::StatusOr<KnownState> ArchiveStates::Find(const RequestTarget& target) {
  if (std::optional<KnownState> state = Recall(target); state.has_value()) {
    return *std::move(state);
  }
  QUIRE_ASSIGN_OR_RETURN(KnownState state, Fetch(target.archive));
  if (!SelectNamed(target, state)) {
    return absl::NotFoundError(absl::StrCat(
        "archive ", target.archive,
        " has other contents than these; they have the uuid ", state.uuid));
  }
  return state;
}

void ArchiveStates::SetSpaceType(const std::string& archive,
                                 const std::string& uuid,
                                 const std::string& type) {
  MutexLock lock(&mutex_);
  const auto found = present_.find(archive);
  if (found != present_.end() && FindIn(*found->second.all, uuid) != nullptr) {
    found->second.space_type = type;
  }
}

}  // namespace quire

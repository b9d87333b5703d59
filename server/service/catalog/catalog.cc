// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/catalog/catalog.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "codecs/base/archive_name.h"
#include "server/service/base/service_error.h"

namespace quire {
namespace {

// A second is doubled at most this often.
constexpr uint32_t kDoublingsMax = 10;
// Entries visited under the lock at a time.
constexpr size_t kEntriesPerLock = 256;
// Changes of a count.
constexpr uint64_t kMore = 1;
constexpr uint64_t kLess = ~uint64_t{0};

// Returns ", but docs, web and others"; empty if there are no names.
std::string ListNames(const NameSample& sample) {
  return sample.names.empty()
             ? ""
             : absl::StrCat(", but ", absl::StrJoin(sample.names, ", "),
                            sample.has_more ? " and others" : "");
}

Wanted WantedOf(const ArchiveArgument& argument) {
  return argument.is_listed ? Wanted::kOnUse : Wanted::kAlways;
}

bool IsSamePlace(const ArchiveArgument& a, const ArchiveArgument& b) {
  return a.path == b.path && a.url == b.url;
}

bool HasPart(const ServedArchive& archive, SharedPart part,
             absl::string_view hash) {
  return hash == (part == SharedPart::kDictionary
                      ? archive.description.dictionary_hash()
                      : archive.description.symbol_table_hash());
}

absl::Status StillOpening(const std::string& name) {
  return ServiceError(
      absl::StatusCode::kUnavailable, v1::ARCHIVE_OPENING,
      absl::StrCat("archive \"", name, "\" is being opened; try again soon"),
      {{"archive", name}}, kOpeningRetryDelay);
}

// `delay` is the time to the next attempt; unset: a reload makes it.
absl::Status CouldNotBeOpened(const std::string& name,
                              std::optional<Catalog::Clock::duration> delay) {
  return ServiceError(
      absl::StatusCode::kUnavailable, v1::ARCHIVE_BROKEN,
      absl::StrCat("archive \"", name,
                   "\" could not be opened, and the server's log has the "
                   "reason; it tries again ",
                   delay.has_value()
                       ? absl::StrCat("in ", absl::FormatDuration(absl::Ceil(
                                                 absl::FromChrono(*delay),
                                                 absl::Seconds(1))))
                       : "at the next reload"),
      {{"archive", name}}, kBrokenRetryDelay);
}

}  // namespace

absl::Status NoSuchArchive(absl::string_view name, const NameSample& others) {
  // The name may be truncated within a character, which is not valid UTF-8.
  const std::string quoted =
      absl::CHexEscape(name.substr(0, kArchiveNameSizeMax));
  return ServiceError(absl::StatusCode::kNotFound, v1::ARCHIVE_NOT_FOUND,
                      name.empty() ? "the request names no archive"
                                   : absl::StrCat("no archive \"", quoted,
                                                  "\" here", ListNames(others)),
                      {{"archive", quoted}});
}

v1::ArchiveState Catalog::StateOf(const Entry& entry) {
  if (entry.served != nullptr) {
    return v1::ARCHIVE_STATE_OPEN;
  }
  switch (entry.wanted) {
    case Wanted::kAlways:
      return entry.failure_count > 0 ? v1::ARCHIVE_STATE_UNSPECIFIED
                                     : v1::ARCHIVE_STATE_OPENING;
    case Wanted::kOnUse:
      return entry.attempt == Attempt::kNone ? v1::ARCHIVE_STATE_CLOSED
                                             : v1::ARCHIVE_STATE_OPENING;
    case Wanted::kLeaving:
      break;
  }
  return v1::ARCHIVE_STATE_UNSPECIFIED;
}

Catalog::Shown Catalog::ShowEntry(const std::string& name, const Entry& entry) {
  return {.name = name,
          .served = entry.served,
          .known = entry.known,
          .state = StateOf(entry),
          .wanted = entry.wanted};
}

void Catalog::Count(const Entry& entry, uint64_t by) {
  const bool is_open = entry.served != nullptr;
  uint64_t& count = is_open                   ? counts_.open
                    : entry.failure_count > 0 ? counts_.failed
                    : StateOf(entry) == v1::ARCHIVE_STATE_CLOSED
                        ? counts_.closed
                        : counts_.opening;
  count += by;
  if (entry.wanted == Wanted::kOnUse) {
    counts_.on_use += by;
    counts_.on_use_open += is_open ? by : 0;
  }
}

void Catalog::SetAttempt(Entry& entry, Attempt attempt) {
  Count(entry, kLess);
  entry.attempt = attempt;
  Count(entry, kMore);
}

std::shared_ptr<const ServedArchive> Catalog::Exchange(
    Entry& entry, std::shared_ptr<const ServedArchive> fresh) {
  std::shared_ptr<const ServedArchive> old = std::move(entry.served);
  entry.served = std::move(fresh);
  if (old != nullptr) {
    open_.erase(old->name);
    std::erase_if(retired_,
                  [](const Retired& one) { return one.archive.expired(); });
    retired_.push_back({old, old->archive});
  }
  if (entry.served != nullptr) {
    open_.insert(entry.served->name);
    entry.last = entry.served;
  }
  return old;
}

template <typename VisitEntry>
bool Catalog::VisitSome(std::optional<std::string>& last,
                        const VisitEntry& visit) const {
  MutexLock lock(&mutex_);
  auto entry =
      last.has_value() ? entries_.upper_bound(*last) : entries_.begin();
  for (size_t i = 0; i < kEntriesPerLock && entry != entries_.end(); ++i) {
    visit(entry->first, entry->second);
    const auto visited = entry++;
    if (i + 1 == kEntriesPerLock) {
      last = visited->first;
    }
  }
  return entry != entries_.end();
}

template <typename VisitEntry>
void Catalog::ForEach(const VisitEntry& visit) const {
  std::optional<std::string> last;
  while (VisitSome(last, visit)) {
  }
}

bool Catalog::Has(const ArchiveArgument& argument) const {
  MutexLock lock(&mutex_);
  const auto found = entries_.find(argument.name);
  return found != entries_.end() &&
         IsSamePlace(found->second.argument, argument);
}

void Catalog::Add(const ArchiveArgument& argument, Known known) {
  known.description.set_name(argument.name);
  known.description.set_state(v1::ARCHIVE_STATE_CLOSED);
  auto description = std::make_shared<const v1::ArchiveDescription>(
      std::move(known.description));
  std::shared_ptr<const ServedArchive> closed;
  MutexLock lock(&mutex_);
  while (true) {
    const auto [found, is_new] = entries_.try_emplace(argument.name);
    Entry& entry = found->second;
    if (is_new) {
      entry.argument = argument;
      Count(entry, kMore);
    }
    const bool is_moved = !IsSamePlace(entry.argument, argument);
    if (is_moved && entry.attempt == Attempt::kRunning) {
      *entry.is_cancelled = true;
      ended_.Wait(&mutex_);
      continue;
    }
    Count(entry, kLess);
    entry.argument = argument;
    entry.wanted = WantedOf(argument);
    entry.retry_at = Clock::time_point::min();
    if (is_moved) {
      NoteFormer(argument.name, entry);
    }
    if (is_new || is_moved) {
      entry.known = std::move(description);
      entry.parts = std::move(known.parts);
      entry.attempt = Attempt::kNone;
      entry.failure_count = 0;
    }
    if (is_moved && entry.wanted == Wanted::kOnUse) {
      closed = Exchange(entry, nullptr);
    }
    Count(entry, kMore);
    return;
  }
}

std::vector<ArchiveArgument> Catalog::RemoveAllBut(
    absl::FunctionRef<bool(const ArchiveArgument&)> stays) {
  std::vector<ArchiveArgument> removed;
  std::vector<std::shared_ptr<const ServedArchive>> closed;
  MutexLock lock(&mutex_);
  for (auto& [name, entry] : entries_) {
    if (stays(entry.argument)) {
      continue;
    }
    removed.push_back(entry.argument);
    Count(entry, kLess);
    entry.wanted = Wanted::kLeaving;
    Count(entry, kMore);
    if (entry.attempt == Attempt::kRunning) {
      *entry.is_cancelled = true;
    }
  }
  for (const ArchiveArgument& argument : removed) {
    auto found = entries_.find(argument.name);
    while (found->second.attempt == Attempt::kRunning) {
      ended_.Wait(&mutex_);
      found = entries_.find(argument.name);
    }
    NoteFormer(argument.name, found->second);
    Count(found->second, kLess);
    closed.push_back(Exchange(found->second, nullptr));
    entries_.erase(found);
    traffic_.erase(argument.name);
  }
  return removed;
}

std::optional<Catalog::Opening> Catalog::Begin(const std::string& name,
                                               Purpose purpose) {
  MutexLock lock(&mutex_);
  while (true) {
    const auto found = entries_.find(name);
    if (found == entries_.end() || found->second.wanted == Wanted::kLeaving) {
      return std::nullopt;
    }
    Entry& entry = found->second;
    const bool is_closed =
        entry.wanted == Wanted::kOnUse && entry.served == nullptr;
    if (purpose == Purpose::kReplace && entry.attempt == Attempt::kRunning) {
      ended_.Wait(&mutex_);
      continue;
    }
    const bool may_begin = purpose == Purpose::kOpen
                               ? entry.attempt == Attempt::kQueued ||
                                     entry.attempt == Attempt::kWaiting
                           : purpose == Purpose::kReplace
                               ? !is_closed
                               : is_closed && entry.attempt == Attempt::kNone;
    if (!may_begin) {
      return std::nullopt;
    }
    SetAttempt(entry, Attempt::kRunning);
    entry.is_cancelled = std::make_shared<std::atomic<bool>>(is_stopped_);
    return Opening(this, entry.argument, entry.is_cancelled,
                   entry.served != nullptr ? entry.served : entry.last.lock());
  }
}

void Catalog::End(const std::string& name, Attempt attempt) {
  {
    MutexLock lock(&mutex_);
    SetAttempt(entries_.find(name)->second, attempt);
  }
  ended_.NotifyAll();
}

Catalog::Clock::duration Catalog::EndFailed(const std::string& name,
                                            bool is_closed) {
  std::chrono::seconds delay{};
  std::shared_ptr<const ServedArchive> closed;
  {
    MutexLock lock(&mutex_);
    Entry& entry = entries_.find(name)->second;
    delay = std::min<std::chrono::seconds>(
        kRetryDelayMin * (1U << std::min(entry.failure_count, kDoublingsMax)),
        kRetryDelayMax);
    Count(entry, kLess);
    ++entry.failure_count;
    entry.attempt = Attempt::kNone;
    if (is_closed) {
      NoteFormerServed(name, entry);
      closed = Exchange(entry, nullptr);
    }
    Count(entry, kMore);
    entry.retry_at = now_() + delay;
  }
  ended_.NotifyAll();
  return delay;
}

void Catalog::CancelOpenings() {
  MutexLock lock(&mutex_);
  is_stopped_ = true;
  for (auto& [name, entry] : entries_) {
    if (entry.attempt == Attempt::kRunning) {
      *entry.is_cancelled = true;
    }
  }
}

void Catalog::Publish(std::shared_ptr<ServedArchive> archive) {
  auto known = std::make_shared<v1::ArchiveDescription>(archive->description);
  known->set_state(v1::ARCHIVE_STATE_CLOSED);
  const Clock::time_point now = now_();
  std::shared_ptr<const ServedArchive> replaced;
  MutexLock lock(&mutex_);
  const auto [found, is_new] = entries_.try_emplace(archive->name);
  Entry& entry = found->second;
  if (is_new) {
    entry.argument.name = archive->name;
    Count(entry, kMore);
  }
  // An archive counted among the others stays there: counters never decrease.
  archive->traffic = entry.served != nullptr ? entry.served->traffic
                                             : TrafficOf(archive->name);
  // Checks that continue with the same files need not begin again.
  if (entry.files == archive->archive->files()) {
    archive->opening_id = entry.opening_id;
  }
  entry.files = archive->archive->files();
  entry.opening_id = archive->opening_id;
  NoteFormerServed(archive->name, entry);
  SetPartsOf(archive->name, entry, SharedParts(archive->archive->info()));
  entry.known = std::move(known);
  entry.opened_at = now;
  entry.used_at = now;
  Count(entry, kLess);
  entry.failure_count = 0;
  replaced = Exchange(entry, std::move(archive));
  Count(entry, kMore);
}

bool Catalog::CloseOne(Victim kind) {
  const Clock::time_point now = now_();
  std::shared_ptr<const ServedArchive> closed;
  MutexLock lock(&mutex_);
  Entry* chosen = nullptr;
  for (const std::string& name : open_) {
    Entry& entry = entries_.find(name)->second;
    // An answer of Get() may hold it, too, for a moment.
    const bool is_read = entry.served.use_count() > 1;
    const bool callers_may_come = entry.used_at == entry.opened_at &&
                                  now < entry.opened_at + kUnusedTimeMin;
    if (entry.wanted == Wanted::kOnUse && entry.attempt == Attempt::kNone &&
        !callers_may_come && (kind == Victim::kAny || !is_read) &&
        (kind != Victim::kUnreadRemote || !entry.argument.url.empty()) &&
        (chosen == nullptr || entry.used_at < chosen->used_at)) {
      chosen = &entry;
    }
  }
  if (chosen == nullptr) {
    return false;
  }
  ++counts_.closings;
  Count(*chosen, kLess);
  closed = Exchange(*chosen, nullptr);
  Count(*chosen, kMore);
  return true;
}

SharedParts Catalog::GetParts(const std::string& name) const {
  MutexLock lock(&mutex_);
  const auto found = entries_.find(name);
  return found == entries_.end() ? SharedParts() : found->second.parts;
}

void Catalog::SetParts(const std::string& name, SharedParts parts) {
  MutexLock lock(&mutex_);
  if (const auto found = entries_.find(name); found != entries_.end()) {
    SetPartsOf(name, found->second, std::move(parts));
  }
}

void Catalog::SetPartsOf(const std::string& name, Entry& entry,
                         SharedParts parts) {
  if (entry.served == nullptr && entry.parts != parts) {
    NoteFormer(name, entry);
  }
  entry.parts = std::move(parts);
}

void Catalog::NoteFormer(const std::string& name, const Entry& entry) {
  if (!has_rules_) {
    return;
  }
  NoteFormerServed(name, entry);
  if (entry.served == nullptr ||
      entry.parts != SharedParts(entry.served->archive->info())) {
    former_[name].Add(entry.parts);
  }
}

void Catalog::NoteFormerServed(const std::string& name, const Entry& entry) {
  if (has_rules_ && entry.served != nullptr &&
      entry.served->withdrawal->Get().has_documents()) {
    former_[name].Add(SharedParts(entry.served->archive->info()));
  }
}

void Catalog::NoteRedacted(const SharedParts& parts) {
  MutexLock lock(&mutex_);
  redacted_.Add(parts);
}

bool Catalog::MayHaveWithdrawn(SharedPart part, absl::string_view hash) const {
  // Archives that may have the part in contents that are not open.
  struct Doubtful {
    std::string name;
    std::string neighbourhood;
    // It has the part, or its parts become known in a moment.
    bool is_withheld_from_all = false;
  };

  std::vector<Doubtful> doubtful;
  // Names and neighbourhoods of open archives that have it.
  std::set<std::string> names;
  std::set<std::string> places;
  bool has_withdrawn = false;
  ForEach([&](const std::string& name, const Entry& entry) {
    // An open archive of the name that has the part decides about it.
    if (entry.served != nullptr && HasPart(*entry.served, part, hash)) {
      has_withdrawn =
          has_withdrawn || entry.served->withdrawal->Get().has_documents();
      names.insert(name);
      places.insert(entry.served->neighbourhood);
      return;
    }
    if (!has_rules_) {
      return;
    }
    if (const std::optional<bool> has_it = entry.parts.Has(part, hash);
        has_it != false) {
      const bool is_awaited = entry.attempt != Attempt::kNone ||
                              StateOf(entry) == v1::ARCHIVE_STATE_OPENING;
      doubtful.push_back({name, NeighbourhoodOf(entry.argument),
                          has_it.has_value() || is_awaited});
    }
  });
  {
    // After the entries: contents are noted here when they leave them.
    MutexLock lock(&mutex_);
    has_withdrawn = has_withdrawn || redacted_.Has(part, hash) == true;
    for (const auto& [name, parts] : former_) {
      if (parts.Has(part, hash) == true && !names.contains(name)) {
        doubtful.push_back({name, "", true});
      }
    }
  }
  // Where nothing is known, it may have the parts of those next to it.
  return has_withdrawn ||
         std::ranges::any_of(doubtful, [&](const Doubtful& archive) {
           return (archive.is_withheld_from_all ||
                   places.contains(archive.neighbourhood)) &&
                  has_rules_(archive.name);
         });
}

absl::StatusOr<std::shared_ptr<const ServedArchive>> Catalog::Find(
    absl::string_view name) {
  std::optional<ArchiveArgument> asked;
  std::optional<Clock::duration> delay;
  bool is_known = false;
  bool is_broken = false;
  {
    // Look up under the lock: holding a snapshot would cost each call two more
    // changes of a reference count that all calls share.
    MutexLock lock(&mutex_);
    if (const auto found = entries_.find(name); found != entries_.end()) {
      Entry& entry = found->second;
      if (entry.served != nullptr) {
        if (entry.wanted == Wanted::kOnUse) {
          entry.used_at = now_();
        }
        return entry.served;
      }
      is_known = entry.wanted != Wanted::kLeaving;
      is_broken = entry.wanted == Wanted::kAlways && entry.failure_count > 0;
      if (entry.wanted == Wanted::kOnUse && entry.attempt == Attempt::kNone) {
        const Clock::time_point now = now_();
        if (entry.failure_count > 0 && now < entry.retry_at) {
          delay = entry.retry_at - now;
          is_broken = true;
        } else if (demand_) {
          SetAttempt(entry, Attempt::kQueued);
          asked = entry.argument;
        }
      }
    }
  }
  if (!is_known) {
    return NoSuchArchive(
        name, SampleNames([](const std::string& /*name*/) { return true; }));
  }
  if (asked.has_value()) {
    demand_(*asked);
  }
  return is_broken ? CouldNotBeOpened(std::string(name), delay)
                   : StillOpening(std::string(name));
}

absl::Status Catalog::Await(const std::string& name) {
  const absl::Status status = Find(name).status();
  return absl::IsUnavailable(status) ? status : StillOpening(name);
}

std::shared_ptr<const ServedArchive> Catalog::FindOpen(
    absl::string_view name) const {
  MutexLock lock(&mutex_);
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : found->second.served;
}

Catalog::ByName Catalog::Get() const {
  ByName archives;
  MutexLock lock(&mutex_);
  for (const std::string& name : open_) {
    archives.emplace_hint(archives.end(), name,
                          entries_.find(name)->second.served);
  }
  return archives;
}

std::optional<Catalog::Shown> Catalog::Show(absl::string_view name) const {
  MutexLock lock(&mutex_);
  const auto found = entries_.find(name);
  return found == entries_.end() || found->second.wanted == Wanted::kLeaving
             ? std::nullopt
             : std::optional(ShowEntry(found->first, found->second));
}

void Catalog::Visit(absl::FunctionRef<void(const Shown&)> visit) const {
  std::optional<std::string> last;
  std::vector<Shown> some;
  bool has_more = true;
  while (has_more) {
    some.clear();
    has_more =
        VisitSome(last, [&](const std::string& name, const Entry& entry) {
          if (StateOf(entry) != v1::ARCHIVE_STATE_UNSPECIFIED) {
            some.push_back(ShowEntry(name, entry));
          }
        });
    for (const Shown& one : some) {
      visit(one);
    }
  }
}

NameSample Catalog::SampleNames(
    absl::FunctionRef<bool(const std::string&)> is_shown) const {
  std::vector<std::string> considered;
  {
    MutexLock lock(&mutex_);
    for (auto entry = entries_.begin();
         entry != entries_.end() && considered.size() <= kConsideredNamesMax;
         ++entry) {
      if (StateOf(entry->second) != v1::ARCHIVE_STATE_UNSPECIFIED) {
        considered.push_back(entry->first);
      }
    }
  }
  NameSample sample;
  for (size_t i = 0; i < considered.size(); ++i) {
    if (i == kConsideredNamesMax) {
      sample.has_more = true;
    } else if (is_shown(considered[i])) {
      if (sample.names.size() == kSampledNamesMax) {
        sample.has_more = true;
        break;
      }
      sample.names.push_back(considered[i]);
    }
  }
  return sample;
}

void Catalog::AskForAnother(std::string& last) {
  std::string asked;
  {
    MutexLock lock(&mutex_);
    const Clock::time_point now = now_();
    auto next = entries_.upper_bound(last);
    for (size_t i = 0; i < std::min(entries_.size(), kConsideredNamesMax);
         ++i, ++next) {
      next = next == entries_.end() ? entries_.begin() : next;
      const Entry& entry = next->second;
      last = next->first;
      if (entry.wanted == Wanted::kOnUse && entry.served == nullptr &&
          entry.attempt == Attempt::kNone &&
          (entry.failure_count == 0 || now >= entry.retry_at)) {
        asked = last;
        break;
      }
    }
  }
  if (!asked.empty()) {
    Find(asked).IgnoreError();
  }
}

std::vector<Catalog::Held> Catalog::GetHeld() const {
  std::vector<Held> held;
  MutexLock lock(&mutex_);
  for (const std::string& name : open_) {
    const Entry& entry = entries_.find(name)->second;
    held.push_back({.served = entry.served,
                    .archive = entry.served->archive,
                    .is_current = true,
                    .is_on_use = entry.wanted == Wanted::kOnUse});
  }
  std::erase_if(retired_, [&](const Retired& one) {
    std::shared_ptr<const Archive> archive = one.archive.lock();
    if (archive == nullptr) {
      return true;
    }
    held.push_back(
        {.served = one.served.lock(), .archive = std::move(archive)});
    return false;
  });
  return held;
}

std::vector<ArchiveArgument> Catalog::GetClosedRemote() const {
  std::vector<std::pair<Clock::time_point, ArchiveArgument>> closed;
  ForEach([&](const std::string& /*name*/, const Entry& entry) {
    if (entry.wanted == Wanted::kOnUse && entry.served == nullptr &&
        !entry.argument.url.empty()) {
      closed.emplace_back(entry.used_at, entry.argument);
    }
  });
  std::ranges::stable_sort(closed, {},
                           [](const auto& one) { return one.first; });
  std::vector<ArchiveArgument> arguments;
  arguments.reserve(closed.size());
  for (auto& [used_at, argument] : closed) {
    arguments.push_back(std::move(argument));
  }
  return arguments;
}

Catalog::Counts Catalog::counts() const {
  MutexLock lock(&mutex_);
  return counts_;
}

Catalog::TrafficByName Catalog::GetTraffic() const {
  MutexLock lock(&mutex_);
  return traffic_;
}

std::shared_ptr<ArchiveTraffic> Catalog::TrafficOf(const std::string& name) {
  const auto found = traffic_.find(name);
  if (found != traffic_.end()) {
    return found->second;
  }
  const bool has_space =
      traffic_.size() - traffic_.count(kOtherArchives) < kTrafficArchivesMax;
  std::shared_ptr<ArchiveTraffic>& traffic =
      traffic_[has_space ? name : kOtherArchives];
  if (traffic == nullptr) {
    traffic = std::make_shared<ArchiveTraffic>();
  }
  return traffic;
}

}  // namespace quire

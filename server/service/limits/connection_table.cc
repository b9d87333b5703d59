// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/limits/connection_table.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace quire {
namespace {

// Each look makes a system call for each connection.
constexpr absl::Duration kBetweenLooks = absl::Milliseconds(50);
constexpr absl::Duration kBetweenFits = absl::Minutes(1);

// Returns the socket that `fd` refers to now; 0 if none.
ino_t FileOf(int fd) {
  struct stat info {};

  return fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode) ? info.st_ino : 0;
}

// Removes the zone of a link-local address, which gRPC writes in its own way.
// The port distinguishes connections of one zone well enough.
std::string WithoutZone(std::string peer) {
  if (const size_t zone = peer.find("%25"); zone != std::string::npos) {
    const size_t end = peer.find("%5D", zone);
    peer.erase(zone, end == std::string::npos ? end : end - zone);
  }
  return peer;
}

}  // namespace

ConnectionLimits LimitConnections(
    absl::Duration silence_max, size_t connections_max,
    std::function<size_t(size_t)> reserve_memory) {
  constexpr uint64_t kDescriptorsMax = std::numeric_limits<int>::max();
  rlimit files{};
  const uint64_t descriptors =
      getrlimit(RLIMIT_NOFILE, &files) == 0
          ? std::min<uint64_t>(files.rlim_cur, kDescriptorsMax)
          : 1024;
  const uint64_t crowded = descriptors - descriptors / 4;
  return {.client_connections_max = std::max<uint64_t>(
              1, std::min<uint64_t>(crowded, connections_max) / 2),
          .crowded_descriptor = static_cast<int>(crowded),
          .last_descriptor = static_cast<int>(descriptors - descriptors / 8),
          .reserve_memory = std::move(reserve_memory),
          .silence_max = silence_max};
}

ConnectionVerdict ConnectionTable::Add(int fd, std::string peer,
                                       std::string client) {
  FitMemory(1);
  MutexLock lock(&mutex_);
  // The earlier connection with this number has ended.
  Forget(fd);
  const ConnectionVerdict verdict = Place(fd, client);
  verdicts_[static_cast<size_t>(verdict)].fetch_add(1);
  if (verdict != ConnectionVerdict::kTaken) {
    return verdict;
  }
  ++arrivals_;
  silent_.emplace(arrivals_, Silent{fd, clock_()});
  silent_by_peer_.insert_or_assign(peer, fd);
  silent_count_.store(silent_.size());
  ++count_by_client_[client];
  connections_.insert_or_assign(fd, Connection{FileOf(fd), std::move(peer),
                                               std::move(client), arrivals_});
  return verdict;
}

void ConnectionTable::FitMemory(size_t more) {
  if (limits_.reserve_memory == nullptr) {
    return;
  }
  size_t count = 0;
  {
    MutexLock lock(&mutex_);
    if (more > 0 && connections_.size() + more <= reserved_count_) {
      return;
    }
    ForgetEnded();
    count = connections_.size() + more;
  }
  // No lock is held: this resizes the block cache.
  const size_t reserved_count = limits_.reserve_memory(count);
  MutexLock lock(&mutex_);
  reserved_count_ = reserved_count;
}

ConnectionVerdict ConnectionTable::Place(int fd, const std::string& client) {
  if (CountOf(client) >= limits_.client_connections_max) {
    ForgetEnded();
    if (CountOf(client) >= limits_.client_connections_max &&
        !EndOldestSilent(&client)) {
      return ConnectionVerdict::kClientHasItsShare;
    }
  }
  if (connections_.size() >= reserved_count_ && !EndOldestSilent(nullptr)) {
    return ConnectionVerdict::kNoMemory;
  }
  if (fd >= limits_.crowded_descriptor) {
    ForgetEnded();
    if (!EndOldestSilent(nullptr) || fd >= limits_.last_descriptor) {
      return ConnectionVerdict::kNoDescriptors;
    }
  }
  return ConnectionVerdict::kTaken;
}

void ConnectionTable::CallBegan(const std::string& peer) {
  if (silent_count_.load(std::memory_order_relaxed) == 0) {
    return;
  }
  MutexLock lock(&mutex_);
  const auto found = silent_by_peer_.find(WithoutZone(peer));
  if (found == silent_by_peer_.end()) {
    return;
  }
  Connection& connection = connections_[found->second];
  silent_.erase(std::exchange(connection.silent_since, 0));
  silent_by_peer_.erase(found);
  silent_count_.store(silent_.size());
}

std::string ConnectionTable::ClientOf(std::string peer) const {
  absl::string_view number = peer;
  int fd = -1;
  if (absl::ConsumePrefix(&number, "fd:") && absl::SimpleAtoi(number, &fd)) {
    MutexLock lock(&mutex_);
    if (const auto found = connections_.find(fd); found != connections_.end()) {
      return found->second.client;
    }
  }
  return peer;
}

absl::Duration ConnectionTable::EndSilent() {
  bool is_due = false;
  {
    MutexLock lock(&mutex_);
    if (clock_() >= next_fit_) {
      next_fit_ = clock_() + kBetweenFits;
      is_due = true;
    }
  }
  if (is_due) {
    FitMemory(0);
  }
  MutexLock lock(&mutex_);
  while (!silent_.empty()) {
    const Silent& oldest = silent_.begin()->second;
    const absl::Duration wait = oldest.since + limits_.silence_max - clock_();
    if (wait > absl::ZeroDuration()) {
      return wait;
    }
    End(oldest.fd);
  }
  return absl::InfiniteDuration();
}

size_t ConnectionTable::Count() {
  MutexLock lock(&mutex_);
  next_look_ = absl::InfinitePast();
  ForgetEnded();
  return connections_.size();
}

size_t ConnectionTable::CountOf(const std::string& client) const {
  const auto found = count_by_client_.find(client);
  return found == count_by_client_.end() ? 0 : found->second;
}

void ConnectionTable::Forget(int fd) {
  const auto found = connections_.find(fd);
  if (found == connections_.end()) {
    return;
  }
  const Connection& connection = found->second;
  if (connection.silent_since != 0) {
    silent_.erase(connection.silent_since);
    // A client may have reused its port for a later connection.
    if (const auto named = silent_by_peer_.find(connection.peer);
        named != silent_by_peer_.end() && named->second == fd) {
      silent_by_peer_.erase(named);
    }
    silent_count_.store(silent_.size());
  }
  const auto count = count_by_client_.find(connection.client);
  if (--count->second == 0) {
    count_by_client_.erase(count);
  }
  connections_.erase(found);
}

void ConnectionTable::ForgetEnded() {
  const absl::Time now = clock_();
  if (now < next_look_) {
    return;
  }
  next_look_ = now + kBetweenLooks;
  std::vector<int> ended;
  for (const auto& [fd, connection] : connections_) {
    if (FileOf(fd) != connection.file) {
      ended.push_back(fd);
    }
  }
  for (const int fd : ended) {
    Forget(fd);
  }
}

bool ConnectionTable::EndOldestSilent(const std::string* client) {
  for (const auto& [arrival, silent] : silent_) {
    if (client == nullptr || connections_[silent.fd].client == *client) {
      End(silent.fd);
      return true;
    }
  }
  return false;
}

// gRPC closes the descriptor when it sees the end, and may be doing so now. A
// duplicate keeps the number from being reused meanwhile.
void ConnectionTable::End(int fd) {
  const int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  // Without a free descriptor, use the number itself.
  const int pinned = own >= 0 ? own : fd;
  if (FileOf(pinned) == connections_[fd].file) {
    shutdown(pinned, SHUT_RDWR);
    silent_ended_count_.fetch_add(1);
  }
  if (own >= 0) {
    close(own);
  }
  Forget(fd);
}

}  // namespace quire

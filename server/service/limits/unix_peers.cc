// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/limits/unix_peers.h"

#include "absl/strings/str_cat.h"

namespace quire {

void UnixPeers::Add(int fd, uid_t user) {
  MutexLock lock(&mutex_);
  user_by_peer_.insert_or_assign(absl::StrCat("fd:", fd), user);
}

std::string UnixPeers::NameOf(std::string peer) const {
  if (peer.starts_with("fd:")) {
    MutexLock lock(&mutex_);
    if (const auto found = user_by_peer_.find(peer);
        found != user_by_peer_.end()) {
      return absl::StrCat("unix:user=", found->second);
    }
  }
  return peer;
}

}  // namespace quire

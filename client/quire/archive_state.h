// SPDX-License-Identifier: Apache-2.0
//
// States of an archive that grows.
#ifndef QUIRE_CLIENT_QUIRE_ARCHIVE_STATE_H_
#define QUIRE_CLIENT_QUIRE_ARCHIVE_STATE_H_

#include <optional>

#include "absl/strings/string_view.h"

#include "proto/quire/v1/archive.pb.h"

namespace quire {

// Returns the state `uuid` of an archive that Client::GetArchive() describes:
// the present one, one of its history, or one before documents were removed for
// good. Unset if it has no such state, or if that would be larger than the
// archive.
std::optional<v1::EarlierState> FindState(const v1::ArchiveDescription& archive,
                                          absl::string_view uuid);

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_ARCHIVE_STATE_H_

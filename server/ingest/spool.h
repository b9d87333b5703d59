// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_INGEST_SPOOL_H_
#define QUIRE_SERVER_INGEST_SPOOL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "server/ingest/byte_stream.h"

namespace quire {

// Copies all that `fd` still has to a file without a name in `folder`, which
// disappears with the last user of the result, or with the process, however it
// ends. Blocks until the input ends. `name` is for messages.
// Errors: Unavailable  the input cannot be read, or the folder has no room.
absl::StatusOr<std::shared_ptr<const InputFile>> SpoolToUnnamedFile(
    int fd, const std::string& name, const std::string& folder);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SPOOL_H_

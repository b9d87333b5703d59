// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_INGEST_SOURCES_ARCHIVE_DEPOSIT_H_
#define QUIRE_SERVER_INGEST_SOURCES_ARCHIVE_DEPOSIT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "server/archive/archive.h"
#include "server/archive/deposited_files.h"
#include "server/ingest/sources/deposit_source.h"

namespace quire {

// The deposited files of an archive, or the rests of them, as sources of files
// for another one. Thread-compatible.
class ArchiveDeposits {
 public:
  // Of the documents from byte `begin` of the logical space on. A file that
  // begins before continues the one in the segments before.
  ArchiveDeposits(std::shared_ptr<const Archive> archive, uint64_t begin);

  struct Found {
    const DepositedFile* file = nullptr;
    std::shared_ptr<const DepositSource> source;
  };

  // Returns the file that the byte of text is part of; null without one. Calls
  // ascend.
  Found At(uint64_t offset);

 private:
  const std::shared_ptr<const Archive> archive_;
  const uint64_t begin_;
  // Files with text from `begin_` on, in order of their text.
  std::vector<const DepositedFile*> files_;
  size_t next_ = 0;
  std::shared_ptr<const DepositSource> source_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_ARCHIVE_DEPOSIT_H_

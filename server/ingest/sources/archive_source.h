// SPDX-License-Identifier: GPL-3.0-or-later
//
// An archive of Quire as an input: all its documents, in order, with their
// attributes.
#ifndef QUIRE_SERVER_INGEST_SOURCES_ARCHIVE_SOURCE_H_
#define QUIRE_SERVER_INGEST_SOURCES_ARCHIVE_SOURCE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "server/archive/archive.h"
#include "server/ingest/sources/source.h"

namespace quire {

// Immutable, thread-safe.
class ArchiveSource final : public Source {
 public:
  // All documents; or those from ordinal `first_ordinal` on, for the archive
  // itself, which keeps its unread inputs. Each reader decodes on `threads`
  // threads, at least 1, once its text is read.
  ArchiveSource(std::shared_ptr<const Archive> archive, uint32_t threads,
                std::optional<uint64_t> first_ordinal = std::nullopt)
      : archive_(std::move(archive)),
        threads_(threads),
        first_ordinal_(first_ordinal) {}

  const std::string& name() const override { return archive_->path(); }

  const char* kind() const override { return "archive"; }

  std::vector<SourceField> fields() const override;

  UnreadInputs unread_inputs() const override;

  absl::StatusOr<std::unique_ptr<SourceReader>> Open() const override;

 private:
  const std::shared_ptr<const Archive> archive_;
  const uint32_t threads_;
  const std::optional<uint64_t> first_ordinal_;
};

// True if the directory `path` has the manifest of an archive, of any version.
bool IsArchive(const std::string& path);

// Opens an archive as an input. Errors: as Archive::Open();
// FailedPrecondition also if the archive has parts that this program does not
// know (ArchiveInfo::unknown_part), which would be lost.
absl::StatusOr<std::unique_ptr<Source>> OpenArchiveSource(
    const std::string& path, uint32_t threads);

// Returns the number of documents whose id an earlier document has.
uint64_t CountRepeatedIds(const Archive& archive);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_ARCHIVE_SOURCE_H_

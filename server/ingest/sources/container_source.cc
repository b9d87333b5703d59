// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/container_source.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/check.h"
#include "codecs/base/mutex.h"
#include "codecs/base/status_macros.h"
#include "server/ingest/sources/entry_walker.h"
#include "server/ingest/sources/hard_links.h"
#include "server/ingest/sources/zip_stream.h"

namespace quire {
namespace {

using Format = LibarchiveInput::Format;
using Kind = EntryWalker::Kind;

// Looks for text outside of a zip's entries at the first use. Thread-safe.
class LazyUnlisted {
 public:
  absl::StatusOr<ZipDirectory::Unlisted> Get(
      const std::shared_ptr<const InputFile>& file)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(&mutex_);
    if (!found_.has_value()) {
      const absl::StatusOr<std::shared_ptr<const ZipDirectory>> directory =
          ZipDirectory::Read(file);
      found_ = directory.ok()
                   ? (*directory)->FindUnlisted()
                   : absl::StatusOr<ZipDirectory::Unlisted>(directory.status());
    }
    return *found_;
  }

 private:
  Mutex mutex_;
  std::optional<absl::StatusOr<ZipDirectory::Unlisted>> found_
      ABSL_GUARDED_BY(mutex_);
};

class ContainerReader final : public SourceReader {
 public:
  ContainerReader(ContainerInput input, Format format,
                  std::shared_ptr<LazyHardLinkTable> links,
                  std::shared_ptr<LazyUnlisted> unlisted,
                  std::unique_ptr<EntryWalker> walker)
      : input_(std::move(input)),
        format_(format),
        links_(std::move(links)),
        unlisted_(std::move(unlisted)),
        walker_(std::move(walker)) {}

  absl::StatusOr<std::optional<SourceDocument>> Next() override {
    if (failed_fatally_) {
      QUIRE_RETURN_IF_ERROR(PassFailedEntry());
    }
    if (has_ended_) {
      return End();
    }
    while (true) {
      const absl::StatusOr<bool> more = walker_->Next();
      if (!more.ok()) {
        if (!walker_->can_continue()) {
          FailFatally(walker_->entry_count());
        }
        return more.status();
      }
      if (!*more) {
        QUIRE_ASSIGN_OR_RETURN(const bool opened, OpenNextPart());
        if (opened) {
          continue;
        }
        has_ended_ = true;
        return End();
      }
      switch (walker_->kind()) {
        case Kind::kFile:
          if (walker_->is_name_converted()) {
            Note(EntryNote::kTolerated,
                 absl::StrCat(input_.name, ": ", walker_->Place(),
                              ": its name was converted from code page 437"));
          }
          current_ = walker_.get();
          return Describe(walker_->size_bytes());
        case Kind::kHardLink: {
          QUIRE_ASSIGN_OR_RETURN(const bool found, FollowLink());
          if (found) {
            return Describe(current_ != nullptr ? current_->size_bytes()
                                                : spool_rest_bytes_);
          }
          Note(EntryNote::kDanglingLink, NameOfEntry());
          break;
        }
        case Kind::kSymbolicLink:
          Note(EntryNote::kSymbolicLink, NameOfEntry());
          break;
        case Kind::kSpecial:
          Note(EntryNote::kSpecialFile, NameOfEntry());
          break;
        case Kind::kDirectory:
          break;
      }
    }
  }

  std::string Place() const override { return walker_->Place(); }

  absl::StatusOr<size_t> Read(MutableByteView out) override {
    if (current_ != nullptr) {
      absl::StatusOr<size_t> got = current_->Read(out);
      // A failing target of a hard link leaves walker_ unchanged.
      if (!got.ok() && current_ == walker_.get() && !walker_->can_continue()) {
        FailFatally(walker_->index());
      }
      return got;
    }
    if (spool_rest_bytes_ == 0) {
      return 0;
    }
    QUIRE_ASSIGN_OR_RETURN(
        const size_t got,
        spool_->Read(out.first(static_cast<size_t>(
            std::min<uint64_t>(out.size(), spool_rest_bytes_)))));
    QUIRE_CHECK(got > 0, "the spool of hard links is shorter than its table");
    spool_rest_bytes_ -= got;
    return got;
  }

  std::shared_ptr<const TextCheck> AwaitedCheck() const override {
    return walker_->AwaitedCheck();
  }

  bool CanContinue() const override {
    return failed_fatally_ ? directory_ != nullptr
                           : has_ended_ || walker_->can_continue();
  }

 private:
  // Entries of the first part that is opened after a failure.
  static constexpr uint64_t kPartEntryCountMin = 16;

  // walker_ is unusable from now on. A zip lists its entries, so others can be
  // read without the one with this index.
  void FailFatally(uint64_t failed_index) {
    failed_fatally_ = true;
    if (directory_ == nullptr && format_ == Format::kZip &&
        input_.file != nullptr) {
      absl::StatusOr<std::shared_ptr<const ZipDirectory>> directory =
          ZipDirectory::Read(input_.file);
      directory_ = directory.ok() ? *std::move(directory) : nullptr;
    }
    next_index_ = failed_index + 1;
    part_entry_count_ = kPartEntryCountMin;
  }

  // REQUIRES: CanContinue().
  absl::Status PassFailedEntry() {
    QUIRE_ASSIGN_OR_RETURN(const bool opened, OpenNextPart());
    // Without a part the old walker stays, after its last entry.
    failed_fatally_ = false;
    has_ended_ = !opened;
    return absl::OkStatus();
  }

  // Opens the next part of the zip, after a failure; false after the last. A
  // part that is read whole is followed by one of twice the size, so that many
  // failures cost no more than their number.
  absl::StatusOr<bool> OpenNextPart() {
    if (directory_ == nullptr || next_index_ >= directory_->entry_count()) {
      return false;
    }
    const uint64_t end =
        std::min(directory_->entry_count(), next_index_ + part_entry_count_);
    absl::StatusOr<std::unique_ptr<EntryWalker>> part =
        EntryWalker::OpenPart(input_.name, directory_, next_index_, end);
    if (!part.ok()) {
      // The file has changed.
      directory_.reset();
      failed_fatally_ = true;
      return part.status();
    }
    walker_ = *std::move(part);
    next_index_ = end;
    part_entry_count_ *= 2;
    return true;
  }

  void NoteMissingEnd() {
    if (walker_->lacks_end()) {
      Note(EntryNote::kTolerated,
           absl::StrCat(
               input_.name, ": ends after ",
               FormatCounted(walker_->entry_count(), "entry", "entries"),
               " without the zeros that end a tar; if entries are "
               "missing, it was truncated, or is one of several "
               "volumes"));
    }
  }

  // Returns the end, or first the error of text of a zip outside of its
  // entries.
  absl::StatusOr<std::optional<SourceDocument>> End() {
    if (!std::exchange(is_end_checked_, true)) {
      NoteMissingEnd();
      QUIRE_RETURN_IF_ERROR(CheckUnlisted());
    }
    return std::nullopt;
  }

  // Errors: DataLoss  text of a zip is outside of its entries.
  absl::Status CheckUnlisted() {
    if (format_ != Format::kZip || input_.file == nullptr) {
      return input_.damage;
    }
    const absl::StatusOr<ZipDirectory::Unlisted> unlisted =
        unlisted_->Get(input_.file);
    if (!unlisted.ok()) {
      Note(EntryNote::kTolerated,
           absl::StrCat(unlisted.status().message(),
                        "; text outside of its entries was not looked for"));
      return absl::OkStatus();
    }
    if (!unlisted->between.empty()) {
      Note(EntryNote::kTolerated, unlisted->between);
    }
    return unlisted->lost.empty() ? absl::OkStatus()
                                  : absl::DataLossError(unlisted->lost);
  }

  std::string NameOfEntry() const {
    return absl::StrCat(input_.name, ": ", walker_->entry_name());
  }

  SourceDocument Describe(std::optional<uint64_t> size_bytes) const {
    SourceDocument document;
    absl::string_view id = walker_->entry_name();
    while (absl::ConsumePrefix(&id, "./")) {
    }
    document.id = std::string(id);
    document.size_bytes = size_bytes;
    document.capture_time_ms = walker_->time_ms();
    document.has_mode = walker_->has_mode();
    document.has_owner = walker_->has_owner();
    return document;
  }

  // Moves to the contents of walker_'s hard link; false if they are not in the
  // tar.
  absl::StatusOr<bool> FollowLink() {
    QUIRE_ASSIGN_OR_RETURN(const std::shared_ptr<const HardLinkTable> table,
                           links_->Get(input_));
    const std::optional<LinkTarget> target = table->Find(walker_->index());
    if (!target.has_value()) {
      return false;
    }
    if (table->spool() != nullptr) {
      spool_.emplace(table->spool(), target->spool_offset);
      spool_rest_bytes_ = target->size_bytes;
      current_ = nullptr;
      return true;
    }
    QUIRE_ASSIGN_OR_RETURN(
        follower_, EntryWalker::Open(input_, format_, target->header_offset));
    QUIRE_ASSIGN_OR_RETURN(const bool there, follower_->Next());
    if (!there || follower_->kind() != Kind::kFile) {
      return absl::UnavailableError(absl::StrCat(
          input_.name, ": ", walker_->Place(),
          ": the target of this hard link ", "is no longer at byte ",
          target->header_offset, ", where it was; do ",
          "not change the input during a build"));
    }
    current_ = follower_.get();
    return true;
  }

  const ContainerInput input_;
  const Format format_;
  const std::shared_ptr<LazyHardLinkTable> links_;
  const std::shared_ptr<LazyUnlisted> unlisted_;
  std::unique_ptr<EntryWalker> walker_;
  // walker_ is unusable.
  bool failed_fatally_ = false;
  // No entry follows.
  bool has_ended_ = false;
  bool is_end_checked_ = false;
  // Entries of a zip, after a failure; those from next_index_ on are not opened
  // yet.
  std::shared_ptr<const ZipDirectory> directory_;
  uint64_t next_index_ = 0;
  uint64_t part_entry_count_ = kPartEntryCountMin;
  // Reads the target of a hard link in an uncompressed tar.
  std::unique_ptr<EntryWalker> follower_;
  // Reads the target in a compressed tar; and the rest of its size.
  std::optional<FileStream> spool_;
  uint64_t spool_rest_bytes_ = 0;
  // The walker with the contents of the current document; null if spool_ has
  // them.
  EntryWalker* current_ = nullptr;
};

// Returns the error of a zip of which no entry can be read, as its list is
// damaged.
absl::Status ListDamage(const ContainerInput& zip) {
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<EntryWalker> walker,
                         EntryWalker::Open(zip, Format::kZip));
  return walker->Next().ok() ? absl::OkStatus()
                             : ZipDirectory::Read(zip.file).status();
}

class ContainerSource final : public Source {
 public:
  ContainerSource(ContainerInput input, Format format)
      : input_(std::move(input)), format_(format) {}

  const std::string& name() const override { return input_.name; }

  const char* kind() const override {
    return format_ == Format::kTar ? "tar" : "zip";
  }

  absl::StatusOr<std::optional<uint64_t>> StoredSizeBytes() const override {
    return input_.stored_size_bytes;
  }

  absl::StatusOr<std::unique_ptr<SourceReader>> Open() const override {
    QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<EntryWalker> walker,
                           EntryWalker::Open(input_, format_));
    return std::make_unique<ContainerReader>(input_, format_, links_, unlisted_,
                                             std::move(walker));
  }

 private:
  const ContainerInput input_;
  const Format format_;
  const std::shared_ptr<LazyHardLinkTable> links_ =
      std::make_shared<LazyHardLinkTable>();
  const std::shared_ptr<LazyUnlisted> unlisted_ =
      std::make_shared<LazyUnlisted>();
};

}  // namespace

bool IsTarHeader(ByteView block) {
  constexpr size_t kChecksumOffset = 148;
  constexpr size_t kChecksumSize = 8;
  // Sum of all bytes, counting those of the field itself as spaces. Some old
  // programs added signed bytes.
  uint32_t unsigned_sum = 0;
  int32_t signed_sum = 0;
  for (size_t i = 0; i < block.size(); ++i) {
    const bool in_field =
        i >= kChecksumOffset && i < kChecksumOffset + kChecksumSize;
    const uint8_t byte = in_field ? uint8_t{' '} : block[i];
    unsigned_sum += byte;
    signed_sum += static_cast<int8_t>(byte);
  }
  uint32_t stated = 0;
  size_t digit_count = 0;
  for (const uint8_t c : block.subspan(kChecksumOffset, kChecksumSize)) {
    if (c >= '0' && c <= '7') {
      stated = stated * 8 + (c - '0');
      ++digit_count;
    } else if (digit_count > 0 || c != ' ') {
      break;
    }
  }
  return digit_count > 0 &&
         (stated == unsigned_sum || static_cast<int32_t>(stated) == signed_sum);
}

std::unique_ptr<Source> MakeTarSource(ContainerInput input) {
  return std::make_unique<ContainerSource>(std::move(input), Format::kTar);
}

std::unique_ptr<Source> MakeZipSource(ContainerInput input, bool skip_damage) {
  if (skip_damage && input.file != nullptr) {
    input.damage = ListDamage(input);
    if (absl::IsDataLoss(input.damage)) {
      input.damage = absl::DataLossError(
          absl::StrCat(input.damage.message(),
                       "; its entries were read by their headers, up to the "
                       "first bytes that are none"));
      input.file = nullptr;
    }
  }
  return std::make_unique<ContainerSource>(std::move(input), Format::kZip);
}

}  // namespace quire

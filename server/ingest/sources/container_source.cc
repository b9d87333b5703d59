// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/container_source.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "codecs/base/check.h"
#include "codecs/base/status_macros.h"
#include "server/ingest/sources/entry_walker.h"
#include "server/ingest/sources/hard_links.h"

namespace quire {
namespace {

using Format = LibarchiveInput::Format;
using Kind = EntryWalker::Kind;

class ContainerReader final : public SourceReader {
 public:
  ContainerReader(ContainerInput input, Format format,
                  std::shared_ptr<LazyHardLinkTable> links,
                  std::unique_ptr<EntryWalker> walker)
      : input_(std::move(input)),
        format_(format),
        links_(std::move(links)),
        walker_(std::move(walker)) {}

  absl::StatusOr<std::optional<SourceDocument>> Next() override {
    if (!CanReadOn()) {
      QUIRE_RETURN_IF_ERROR(PassFailedEntry());
    }
    while (true) {
      QUIRE_ASSIGN_OR_RETURN(const bool more, walker_->Next());
      if (!more) {
        return std::nullopt;
      }
      switch (walker_->kind()) {
        case Kind::kFile:
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
      failed_fatally_ =
          !got.ok() && current_ == walker_.get() && !walker_->can_continue();
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

  bool CanContinue() const override {
    return CanReadOn() ? walker_->can_continue() : CanReopen();
  }

 private:
  // True if walker_ is usable after the last Read().
  bool CanReadOn() const { return !failed_fatally_; }

  // A zip lists its entries, so a new walker can skip an unreadable one.
  bool CanReopen() const {
    return format_ == Format::kZip && input_.file != nullptr;
  }

  // REQUIRES: CanReopen().
  absl::Status PassFailedEntry() {
    const uint64_t failed_index = walker_->index();
    QUIRE_ASSIGN_OR_RETURN(walker_, EntryWalker::Open(input_, format_));
    failed_fatally_ = false;
    for (uint64_t i = 0; i <= failed_index; ++i) {
      const absl::StatusOr<bool> more = walker_->Next();
      if (!more.ok() && !walker_->can_continue()) {
        return more.status();
      }
    }
    return absl::OkStatus();
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
  std::unique_ptr<EntryWalker> walker_;
  bool failed_fatally_ = false;
  // Reads the target of a hard link in an uncompressed tar.
  std::unique_ptr<EntryWalker> follower_;
  // Reads the target in a compressed tar; and the rest of its size.
  std::optional<FileStream> spool_;
  uint64_t spool_rest_bytes_ = 0;
  // The walker with the contents of the current document; null if spool_ has
  // them.
  EntryWalker* current_ = nullptr;
};

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
    return std::make_unique<ContainerReader>(input_, format_, links_,
                                             std::move(walker));
  }

 private:
  const ContainerInput input_;
  const Format format_;
  const std::shared_ptr<LazyHardLinkTable> links_ =
      std::make_shared<LazyHardLinkTable>();
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

std::unique_ptr<Source> MakeZipSource(ContainerInput input) {
  return std::make_unique<ContainerSource>(std::move(input), Format::kZip);
}

}  // namespace quire

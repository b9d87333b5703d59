// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/crawl/wacz_source.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "server/ingest/sources/compressed_text.h"
#include "server/ingest/sources/entry_walker.h"
#include "server/ingest/sources/libarchive_input.h"

namespace quire {
namespace {

constexpr absl::string_view kDescription = "datapackage.json";
constexpr absl::string_view kArchiveDirectory = "archive/";

struct ZipMember {
  std::string name;
  // Number of entries before it.
  uint64_t index = 0;
};

struct WaczListing {
  uint64_t entry_count = 0;
  bool has_description = false;
  // In order of their names.
  std::vector<ZipMember> warcs;
  // Names of files in archive/ that are not WARCs.
  std::vector<std::string> others;
  // Finds members without those before them.
  std::shared_ptr<const ZipDirectory> directory;
};

// Moves to the next entry, also past one that cannot be read alone: encrypted,
// for example.
absl::StatusOr<bool> NextListed(EntryWalker& walker) {
  absl::StatusOr<bool> more = walker.Next();
  return !more.ok() && walker.can_continue() ? absl::StatusOr<bool>(true)
                                             : std::move(more);
}

absl::StatusOr<WaczListing> ListWacz(const ContainerInput& input) {
  QUIRE_ASSIGN_OR_RETURN(
      const std::unique_ptr<EntryWalker> walker,
      EntryWalker::Open(input, LibarchiveInput::Format::kZip));
  WaczListing listing;
  while (true) {
    QUIRE_ASSIGN_OR_RETURN(const bool more, NextListed(*walker));
    if (!more) {
      break;
    }
    ++listing.entry_count;
    const std::string& name = walker->entry_name();
    if (walker->kind() != EntryWalker::Kind::kFile) {
      continue;
    }
    if (name == kDescription) {
      listing.has_description = true;
    } else if (absl::StartsWith(name, kArchiveDirectory)) {
      if (absl::EndsWith(name, ".warc") || absl::EndsWith(name, ".warc.gz")) {
        listing.warcs.push_back({.name = name, .index = walker->index()});
      } else {
        listing.others.push_back(name);
      }
    }
  }
  std::stable_sort(
      listing.warcs.begin(), listing.warcs.end(),
      [](const ZipMember& a, const ZipMember& b) { return a.name < b.name; });
  return listing;
}

// The bytes of a member of a zip, which it stores or deflates. Holds the last
// MiB, so that a seek back after damage costs nothing; a seek further back
// reads the member again from its start.
class ZipMemberStream final : public ByteStream {
 public:
  ZipMemberStream(std::string name,
                  std::shared_ptr<const ZipDirectory> directory,
                  ZipMember member)
      : name_(std::move(name)),
        directory_(std::move(directory)),
        member_(std::move(member)) {}

  ~ZipMemberStream() override {
    if (check_->state == TextCheck::State::kAwaited) {
      check_->state = TextCheck::State::kFailed;
    }
  }

  ZipMemberStream(const ZipMemberStream&) = delete;
  ZipMemberStream& operator=(const ZipMemberStream&) = delete;

  std::shared_ptr<const TextCheck> AwaitedCheck(
      uint64_t /*text_size_bytes*/) const override {
    return check_->state == TextCheck::State::kPassed ? nullptr : check_;
  }

  absl::StatusOr<size_t> Read(MutableByteView out) override {
    if (target_ < position_ && position_ - target_ <= recent_.size()) {
      const ByteView held =
          ByteView(recent_).last(static_cast<size_t>(position_ - target_));
      const size_t size = std::min(out.size(), held.size());
      std::ranges::copy(held.first(size), out.begin());
      target_ += size;
      return size;
    }
    QUIRE_RETURN_IF_ERROR(MoveToTarget());
    QUIRE_ASSIGN_OR_RETURN(const size_t got, ReadOn(out));
    target_ = position_;
    return got;
  }

  bool Seek(uint64_t offset) override {
    target_ = offset;
    return true;
  }

 private:
  static constexpr size_t kRecentSizeBytes = size_t{1} << 20;

  // Reads at position_.
  absl::StatusOr<size_t> ReadOn(MutableByteView out) {
    const absl::StatusOr<size_t> read = walker_->Read(out);
    if (!read.ok()) {
      check_->state = TextCheck::State::kFailed;
      return read;
    }
    const size_t got = *read;
    if (got == 0) {
      check_->state = TextCheck::State::kPassed;
    }
    position_ += got;
    // Moved after each MiB.
    if (recent_.size() + got > 2 * kRecentSizeBytes) {
      recent_.erase(recent_.begin(),
                    recent_.end() - static_cast<ptrdiff_t>(std::min(
                                        recent_.size(), kRecentSizeBytes)));
    }
    recent_.insert(recent_.end(), out.begin(),
                   out.begin() + static_cast<ptrdiff_t>(got));
    return got;
  }

  absl::Status MoveToTarget() {
    if (walker_ == nullptr || target_ < position_) {
      QUIRE_RETURN_IF_ERROR(Open());
    }
    while (position_ < target_) {
      scratch_.resize(size_t{64} << 10);
      QUIRE_ASSIGN_OR_RETURN(
          const size_t got,
          ReadOn(MutableByteView(scratch_).first(static_cast<size_t>(
              std::min<uint64_t>(scratch_.size(), target_ - position_)))));
      if (got == 0) {
        break;
      }
    }
    return absl::OkStatus();
  }

  absl::Status Open() {
    position_ = 0;
    recent_.clear();
    QUIRE_ASSIGN_OR_RETURN(
        walker_, EntryWalker::OpenPart(name_, directory_, member_.index,
                                       member_.index + 1));
    QUIRE_ASSIGN_OR_RETURN(const bool is_there, walker_->Next());
    if (!is_there || walker_->entry_name() != member_.name) {
      return absl::UnavailableError(absl::StrCat(
          name_, ": ", QuotedText(member_.name), " is no longer entry ",
          member_.index, "; do not change the input during a build"));
    }
    return absl::OkStatus();
  }

  const std::string name_;
  const std::shared_ptr<const ZipDirectory> directory_;
  const ZipMember member_;
  // The checksum of the zip.
  const std::shared_ptr<TextCheck> check_ = std::make_shared<TextCheck>();
  std::unique_ptr<EntryWalker> walker_;
  uint64_t position_ = 0;
  // Where the next Read() begins.
  uint64_t target_ = 0;
  std::vector<uint8_t> scratch_;
  // The bytes before position_, at least the last kRecentSizeBytes of them.
  std::vector<uint8_t> recent_;
};

class WaczReader final : public SourceReader {
 public:
  WaczReader(ContainerInput input, std::shared_ptr<const WaczListing> listing,
             WarcDamage damage)
      : input_(std::move(input)),
        listing_(std::move(listing)),
        damage_(damage) {}

  absl::StatusOr<std::optional<SourceDocument>> Next() override {
    NoteOthers();
    if (std::exchange(has_failed_, false)) {
      warc_.reset();
    }
    while (true) {
      if (warc_ == nullptr) {
        if (next_ == listing_->warcs.size()) {
          return std::nullopt;
        }
        QUIRE_ASSIGN_OR_RETURN(warc_, OpenWarc(listing_->warcs[next_++]));
      }
      absl::StatusOr<std::optional<SourceDocument>> document = warc_->Next();
      has_failed_ = !document.ok() && !warc_->CanContinue();
      if (!document.ok() || document->has_value()) {
        return document;
      }
      warc_.reset();
    }
  }

  std::string Place() const override {
    return absl::StrCat(QuotedText(listing_->warcs[next_ - 1].name), ", ",
                        warc_->Place());
  }

  absl::StatusOr<size_t> Read(MutableByteView out) override {
    return Checked(warc_->Read(out));
  }

  absl::StatusOr<uint64_t> Skip(uint64_t size_bytes) override {
    return Checked(warc_->Skip(size_bytes));
  }

  std::shared_ptr<const TextCheck> AwaitedCheck() const override {
    return warc_ != nullptr ? warc_->AwaitedCheck() : nullptr;
  }

  bool CanContinue() const override { return true; }

 private:
  template <typename Size>
  absl::StatusOr<Size> Checked(absl::StatusOr<Size> size) {
    has_failed_ = !size.ok() && !warc_->CanContinue();
    return size;
  }

  absl::StatusOr<std::unique_ptr<SourceReader>> OpenWarc(
      const ZipMember& member) const {
    std::string name = absl::StrCat(input_.name, ": ", QuotedText(member.name));
    QUIRE_ASSIGN_OR_RETURN(
        const CompressedText text,
        CompressedText::Detect(
            [input = input_, directory = listing_->directory, member,
             name]() -> absl::StatusOr<std::unique_ptr<ByteStream>> {
              return std::make_unique<BoundedStream>(
                  std::make_unique<ZipMemberStream>(input.name, directory,
                                                    member),
                  name, input.size_bytes_max);
            },
            name, input_.size_bytes_max, input_.window_size_bytes_max));
    QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> stream, text.Open());
    return std::make_unique<WarcReader>(std::move(stream), std::move(name),
                                        RecordFormat::kWarc, damage_);
  }

  void NoteOthers() {
    if (std::exchange(has_noted_others_, true)) {
      return;
    }
    for (const std::string& name : listing_->others) {
      Note(EntryNote::kMisnamed,
           absl::StrCat(input_.name, ": ", QuotedText(name),
                        " is in archive/ and not named like a WARC; it is "
                        "left out"));
    }
  }

  const ContainerInput input_;
  const std::shared_ptr<const WaczListing> listing_;
  const WarcDamage damage_;
  // Index in listing_->warcs.
  size_t next_ = 0;
  std::unique_ptr<SourceReader> warc_;
  // The current WARC cannot be continued.
  bool has_failed_ = false;
  bool has_noted_others_ = false;
};

class WaczSource final : public Source {
 public:
  WaczSource(ContainerInput input, absl::StatusOr<WaczListing> listing,
             WarcDamage damage)
      : input_(std::move(input)),
        status_(listing.status()),
        listing_(listing.ok()
                     ? std::make_shared<const WaczListing>(*std::move(listing))
                     : nullptr),
        damage_(damage) {}

  const std::string& name() const override { return input_.name; }

  const char* kind() const override { return "wacz"; }

  absl::StatusOr<std::optional<uint64_t>> StoredSizeBytes() const override {
    return input_.stored_size_bytes;
  }

  absl::StatusOr<std::unique_ptr<SourceReader>> Open() const override {
    QUIRE_RETURN_IF_ERROR(status_);
    if (listing_->warcs.empty()) {
      return absl::DataLossError(absl::StrCat(
          input_.name, ": a WACZ must hold archive/*.warc or archive/*.warc.gz",
          ", and none of its ",
          FormatCounted(listing_->entry_count, "entry", "entries"), " is one"));
    }
    return std::make_unique<WaczReader>(input_, listing_, damage_);
  }

 private:
  const ContainerInput input_;
  // Error of listing the zip.
  const absl::Status status_;
  const std::shared_ptr<const WaczListing> listing_;
  const WarcDamage damage_;
};

}  // namespace

bool IsNamedWacz(absl::string_view path) {
  return absl::EndsWithIgnoreCase(path, ".wacz");
}

absl::StatusOr<std::unique_ptr<Source>> MakeWaczSource(
    const ContainerInput& input, WarcDamage damage) {
  absl::StatusOr<WaczListing> listing = ListWacz(input);
  if (absl::IsUnavailable(listing.status())) {
    return listing.status();
  }
  const bool is_wacz = IsNamedWacz(input.name) ||
                       (listing.ok() && listing->has_description &&
                        !(listing->warcs.empty() && listing->others.empty()));
  if (!is_wacz) {
    return nullptr;
  }
  if (listing.ok()) {
    absl::StatusOr<std::shared_ptr<const ZipDirectory>> directory =
        ZipDirectory::Read(input.file);
    if (!directory.ok()) {
      listing = directory.status();
    } else {
      listing->directory = *std::move(directory);
    }
  }
  return std::make_unique<WaczSource>(input, std::move(listing), damage);
}

}  // namespace quire

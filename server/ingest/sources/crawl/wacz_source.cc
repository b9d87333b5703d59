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
#include "absl/strings/strip.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "server/ingest/sources/compressed_text.h"
#include "server/ingest/sources/crawl/file_deposit.h"
#include "server/ingest/sources/entry_walker.h"
#include "server/ingest/sources/libarchive_input.h"
#include "server/ingest/sources/spool.h"

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
  // WARCs, ARCs and WACZs, in the order of the zip.
  std::vector<ZipMember> warcs;
  // Names of files in archive/ that are none of these.
  std::vector<std::string> others;
  // Names of WARCs and ARCs outside of archive/.
  std::vector<std::string> misplaced;
  // Error after the last entry that could be listed.
  absl::Status damage;
  // Finds members without those before them; null if the zip is truncated.
  std::shared_ptr<const ZipDirectory> directory;
  // The WACZ as a file; null if it is part of another file, or is damaged.
  std::shared_ptr<const DepositSource> deposit;
};

// WACZs in each other; more may have been made to expand for ever.
constexpr int kDepthMax = 4;

// Format of the records in a file of this name; nullopt for other names.
std::optional<RecordFormat> NamedFormat(absl::string_view name) {
  for (const char* const compression : {".gz", ".zst", ".bz2", ".xz"}) {
    if (absl::ConsumeSuffix(&name, compression)) {
      break;
    }
  }
  return absl::EndsWith(name, ".warc")  ? std::optional(RecordFormat::kWarc)
         : absl::EndsWith(name, ".arc") ? std::optional(RecordFormat::kArc)
                                        : std::nullopt;
}

// Moves to the next entry, also past one that cannot be read alone: encrypted,
// for example.
absl::StatusOr<bool> NextListed(EntryWalker& walker) {
  absl::StatusOr<bool> more = walker.Next();
  return !more.ok() && walker.can_continue() ? absl::StatusOr<bool>(true)
                                             : std::move(more);
}

void TakeEntry(const EntryWalker& walker, WaczListing& listing) {
  ++listing.entry_count;
  const std::string& name = walker.entry_name();
  if (walker.kind() != EntryWalker::Kind::kFile) {
    return;
  }
  const bool is_in_archive = absl::StartsWith(name, kArchiveDirectory);
  if (name == kDescription) {
    listing.has_description = true;
  } else if (IsNamedWacz(name) ||
             (is_in_archive && NamedFormat(name).has_value())) {
    listing.warcs.push_back({.name = name, .index = walker.index()});
  } else if (is_in_archive) {
    listing.others.push_back(name);
  } else if (NamedFormat(name).has_value()) {
    listing.misplaced.push_back(name);
  }
}

// An error of an entry after the first one is the listing's damage.
absl::StatusOr<WaczListing> ListWacz(const ContainerInput& input) {
  QUIRE_ASSIGN_OR_RETURN(
      const std::unique_ptr<EntryWalker> walker,
      EntryWalker::Open(input, LibarchiveInput::Format::kZip));
  WaczListing listing;
  while (true) {
    const absl::StatusOr<bool> more = NextListed(*walker);
    if (!more.ok() &&
        (absl::IsUnavailable(more.status()) || listing.entry_count == 0)) {
      return more.status();
    }
    listing.damage = more.status();
    if (!more.ok() || !*more) {
      break;
    }
    TakeEntry(*walker, listing);
  }
  return listing;
}

// The bytes of a member of a zip, which it stores or deflates. Holds the last
// MiB, so that a seek back after damage costs nothing; a seek further back
// reads the member again from its start.
class ZipMemberStream final : public ByteStream {
 public:
  // Without `directory` reads the entries before the member, too.
  ZipMemberStream(ContainerInput input,
                  std::shared_ptr<const ZipDirectory> directory,
                  ZipMember member)
      : input_(std::move(input)),
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
    if (directory_ != nullptr) {
      QUIRE_ASSIGN_OR_RETURN(
          walker_, EntryWalker::OpenPart(input_.name, directory_, member_.index,
                                         member_.index + 1));
    } else {
      QUIRE_ASSIGN_OR_RETURN(
          walker_, EntryWalker::Open(input_, LibarchiveInput::Format::kZip));
      for (uint64_t i = 0; i < member_.index; ++i) {
        QUIRE_RETURN_IF_ERROR(NextListed(*walker_).status());
      }
    }
    QUIRE_ASSIGN_OR_RETURN(const bool is_there, walker_->Next());
    if (!is_there || walker_->entry_name() != member_.name) {
      return absl::UnavailableError(absl::StrCat(
          input_.name, ": ", QuotedText(member_.name), " is no longer entry ",
          member_.index, "; do not change the input during a build"));
    }
    return absl::OkStatus();
  }

  const ContainerInput input_;
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

// The whole zip as a file whose text is that of its members.
// Errors: DataLoss, Unavailable.
absl::StatusOr<std::shared_ptr<const DepositSource>> MakeWaczDeposit(
    const std::shared_ptr<const InputFile>& file, const WaczListing& listing) {
  std::vector<DepositRange> ranges;
  for (const ZipMember& member : listing.warcs) {
    QUIRE_ASSIGN_OR_RETURN(const ZipDirectory::Contents contents,
                           listing.directory->FindContents(member.index));
    ranges.push_back({.offset = contents.offset,
                      .size_bytes = contents.size_bytes,
                      // A WACZ in it has text and more.
                      .is_packed = !contents.is_stored ||
                                   !NamedFormat(member.name).has_value()});
  }
  return MakeFileDeposit(file, std::move(ranges));
}

// MakeWaczSource() for a WACZ that is in `depth` others.
absl::StatusOr<std::unique_ptr<Source>> MakeWaczAt(ContainerInput input,
                                                   WarcDamage damage,
                                                   int depth);

class WaczReader final : public SourceReader {
 public:
  WaczReader(ContainerInput input, std::shared_ptr<const WaczListing> listing,
             WarcDamage damage, int depth)
      : input_(std::move(input)),
        listing_(std::move(listing)),
        damage_(damage),
        depth_(depth) {}

  absl::StatusOr<std::optional<SourceDocument>> Next() override {
    NoteOthers();
    if (std::exchange(has_failed_, false)) {
      warc_.reset();
    }
    while (true) {
      if (warc_ == nullptr) {
        if (next_ == listing_->warcs.size()) {
          return End();
        }
        QUIRE_ASSIGN_OR_RETURN(warc_, OpenMember(listing_->warcs[next_++]));
        warc_->Listen(listener());
      }
      absl::StatusOr<std::optional<SourceDocument>> document = warc_->Next();
      has_failed_ = !document.ok() && !warc_->CanContinue();
      if (!document.ok()) {
        return document;
      }
      if (document->has_value()) {
        SourceDocument& found = **document;
        found.deposit = listing_->deposit;
        if (found.deposit != nullptr) {
          found.deposit_path = input_.name.substr(input_.name.rfind('/') + 1);
        }
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

  // Returns the end, or first the damage of the listing.
  absl::StatusOr<std::optional<SourceDocument>> End() {
    if (!std::exchange(has_ended_, true)) {
      QUIRE_RETURN_IF_ERROR(listing_->damage);
    }
    return std::nullopt;
  }

  absl::StatusOr<std::unique_ptr<SourceReader>> OpenMember(
      const ZipMember& member) const {
    std::string name = absl::StrCat(input_.name, ": ", QuotedText(member.name));
    const OpenStream open =
        [input = input_, directory = listing_->directory, member,
         name]() -> absl::StatusOr<std::unique_ptr<ByteStream>> {
      return std::make_unique<BoundedStream>(
          std::make_unique<ZipMemberStream>(input, directory, member), name,
          input.size_bytes_max);
    };
    const std::optional<RecordFormat> format = NamedFormat(member.name);
    if (!format.has_value()) {
      return OpenWacz(open, std::move(name));
    }
    QUIRE_ASSIGN_OR_RETURN(
        const CompressedText text,
        CompressedText::Detect(open, name, input_.size_bytes_max,
                               input_.window_size_bytes_max));
    QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> stream, text.Open());
    return std::make_unique<WarcReader>(std::move(stream), std::move(name),
                                        *format, damage_);
  }

  absl::StatusOr<std::unique_ptr<SourceReader>> OpenWacz(
      const OpenStream& open, std::string name) const {
    if (depth_ == kDepthMax) {
      return absl::DataLossError(absl::StrCat(
          name, ": a WACZ in a WACZ must be at most ", kDepthMax, " deep"));
    }
    ContainerInput inner = input_;
    QUIRE_ASSIGN_OR_RETURN(inner.file, SpoolMember(open, name));
    inner.name = std::move(name);
    inner.open =
        [file = inner.file]() -> absl::StatusOr<std::unique_ptr<ByteStream>> {
      return std::make_unique<FileStream>(file);
    };
    QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<Source> source,
                           MakeWaczAt(inner, damage_, depth_ + 1));
    return source->Open();
  }

  // Copies as much of a damaged member as there is.
  absl::StatusOr<std::shared_ptr<const InputFile>> SpoolMember(
      const OpenStream& open, const std::string& name) const {
    QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<ByteStream> stream, open());
    QUIRE_ASSIGN_OR_RETURN(Spool spool,
                           Spool::Create(input_.spool_directory, name));
    std::vector<uint8_t> piece(size_t{1} << 20);
    while (true) {
      const absl::StatusOr<size_t> got = stream->Read(piece);
      if (!got.ok() &&
          !(absl::IsDataLoss(got.status()) && damage_ == WarcDamage::kSkip)) {
        return got.status();
      }
      if (!got.ok() || *got == 0) {
        break;
      }
      QUIRE_RETURN_IF_ERROR(spool.Append(ByteView(piece).first(*got)));
    }
    return std::move(spool).Finish(name);
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
    for (const std::string& name : listing_->misplaced) {
      Note(EntryNote::kMisnamed,
           absl::StrCat(input_.name, ": ", QuotedText(name),
                        " is named like a WARC and not in archive/; it is "
                        "left out"));
    }
  }

  const ContainerInput input_;
  const std::shared_ptr<const WaczListing> listing_;
  const WarcDamage damage_;
  // Number of WACZs that it is in.
  const int depth_;
  // Index in listing_->warcs.
  size_t next_ = 0;
  std::unique_ptr<SourceReader> warc_;
  // The current WARC cannot be continued.
  bool has_failed_ = false;
  bool has_noted_others_ = false;
  bool has_ended_ = false;
};

class WaczSource final : public Source {
 public:
  WaczSource(ContainerInput input, absl::StatusOr<WaczListing> listing,
             WarcDamage damage, int depth)
      : input_(std::move(input)),
        status_(listing.status()),
        listing_(listing.ok()
                     ? std::make_shared<const WaczListing>(*std::move(listing))
                     : nullptr),
        damage_(damage),
        depth_(depth) {}

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
    return std::make_unique<WaczReader>(input_, listing_, damage_, depth_);
  }

 private:
  const ContainerInput input_;
  // Error of listing the zip.
  const absl::Status status_;
  const std::shared_ptr<const WaczListing> listing_;
  const WarcDamage damage_;
  const int depth_;
};

absl::StatusOr<std::unique_ptr<Source>> MakeWaczAt(ContainerInput input,
                                                   WarcDamage damage,
                                                   int depth) {
  absl::StatusOr<WaczListing> listing = ListWacz(input);
  const absl::Status damaged =
      listing.ok() ? listing->damage : listing.status();
  if (absl::IsDataLoss(damaged) && damage == WarcDamage::kSkip &&
      input.file != nullptr) {
    // Entries have headers of their own, too.
    ContainerInput forward = input;
    forward.file = nullptr;
    absl::StatusOr<WaczListing> found = ListWacz(forward);
    if (found.ok()) {
      found->damage = damaged;
      listing = std::move(found);
      input = std::move(forward);
    }
  } else if (listing.ok() && !damaged.ok()) {
    listing = damaged;
  }
  if (absl::IsUnavailable(listing.status())) {
    return listing.status();
  }
  const bool is_wacz = IsNamedWacz(input.name) || depth > 0 ||
                       (listing.ok() && listing->has_description &&
                        !(listing->warcs.empty() && listing->others.empty()));
  if (!is_wacz) {
    return nullptr;
  }
  if (listing.ok() && input.file != nullptr) {
    absl::StatusOr<std::shared_ptr<const ZipDirectory>> directory =
        ZipDirectory::Read(input.file);
    if (directory.ok()) {
      QUIRE_ASSIGN_OR_RETURN(const ZipDirectory::Unlisted unlisted,
                             (*directory)->FindUnlisted());
      if (listing->damage.ok() && !unlisted.lost.empty()) {
        listing->damage = absl::DataLossError(unlisted.lost);
      }
      listing->directory = *std::move(directory);
      // A damaged member is an error once it is read.
      if (depth == 0 && listing->damage.ok() && !listing->warcs.empty()) {
        absl::StatusOr<std::shared_ptr<const DepositSource>> deposit =
            MakeWaczDeposit(input.file, *listing);
        if (absl::IsUnavailable(deposit.status())) {
          return deposit.status();
        }
        listing->deposit = deposit.ok() ? *std::move(deposit) : nullptr;
      }
    } else {
      listing = directory.status();
    }
  }
  return std::make_unique<WaczSource>(std::move(input), std::move(listing),
                                      damage, depth);
}

}  // namespace

bool IsNamedWacz(absl::string_view path) {
  return absl::EndsWithIgnoreCase(path, ".wacz");
}

absl::StatusOr<std::unique_ptr<Source>> MakeWaczSource(
    const ContainerInput& input, WarcDamage damage) {
  return MakeWaczAt(input, damage, /*depth=*/0);
}

}  // namespace quire

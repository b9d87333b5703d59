// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/deposit_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "server/archive/files/sha256.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/segment_reader.h"

namespace quire {
namespace {

// Pieces in which a file is read, and their text.
constexpr size_t kPieceSizeBytes = size_t{4} << 20;

std::string Hex(const DepositDigest& digest) {
  return absl::BytesToHexString(AsText(digest));
}

}  // namespace

DepositPlanner::DepositPlanner(const Archive& archive,
                               const DepositedFile& file,
                               ArchivePartLoader load)
    : archive_(archive), file_(file), load_(std::move(load)) {}

DepositPlanner::PlacedPage DepositPlanner::PageAt(uint64_t offset) const {
  PlacedPage placed;
  for (const DepositedFile::Portion& at : file_.portions) {
    const DepositPortion& portion =
        archive_.ReaderOf(at.segment_index).deposits().portions()[at.index];
    placed.segment_index = at.segment_index;
    placed.text_in_segment = portion.text_offset;
    for (const DepositPageEntry& page : portion.pages) {
      placed.entry = &page;
      if (offset - placed.offset < page.totals.size_bytes) {
        placed.text_offset =
            archive_.SegmentStart(at.segment_index) + placed.text_in_segment;
        return placed;
      }
      placed.offset += page.totals.size_bytes;
      placed.text_in_segment += page.totals.text_size_bytes;
    }
  }
  return placed;
}

absl::StatusOr<bool> DepositPlanner::Load(const PlacedPage& page) {
  if (page_ != nullptr && placed_.entry == page.entry) {
    return true;
  }
  page_.reset();
  QUIRE_ASSIGN_OR_RETURN(
      const std::optional<PartBytes> bytes,
      SegmentPartLoader(archive_, page.segment_index, load_)(page.entry->part));
  if (!bytes.has_value()) {
    return false;
  }
  const SegmentReader& segment = archive_.ReaderOf(page.segment_index);
  absl::StatusOr<DepositPage> parsed = DepositPage::Parse(
      bytes->bytes, page.entry->totals, page.text_in_segment,
      [&segment](uint64_t offset) {
        const DocumentIndex& documents = segment.documents();
        const LogicalRange range = documents.Range(documents.At(offset));
        return range.offset.value + range.size_bytes;
      });
  QUIRE_RETURN_IF_ERROR(InFile(segment.file(), parsed.status()));
  Start start = {.offset = page.offset, .text_offset = page.text_offset};
  starts_.clear();
  for (const DepositItem& item : parsed->items()) {
    starts_.push_back(start);
    start.offset += item.size_bytes;
    start.text_offset += item.text_size_bytes;
    start.literal_offset +=
        item.kind == DepositItem::Kind::kLiteral ? item.size_bytes : 0;
  }
  page_ = std::make_shared<const DepositPage>(*std::move(parsed));
  placed_ = page;
  return true;
}

absl::StatusOr<std::optional<DepositStep>> DepositPlanner::LiteralStep(
    uint64_t literal_offset, uint64_t size_bytes) {
  for (const ContainerPart& part : placed_.entry->literals) {
    if (literal_offset >= part.size_bytes) {
      literal_offset -= part.size_bytes;
      continue;
    }
    QUIRE_ASSIGN_OR_RETURN(
        std::optional<PartBytes> bytes,
        SegmentPartLoader(archive_, placed_.segment_index, load_)(part));
    if (!bytes.has_value()) {
      return std::optional<DepositStep>();
    }
    DepositStep step;
    step.size_bytes = std::min(size_bytes, part.size_bytes - literal_offset);
    step.literal = *std::move(bytes);
    step.literal.bytes =
        step.literal.bytes.subspan(literal_offset, step.size_bytes);
    return std::optional(std::move(step));
  }
  // The page was compared with the sizes of its literals.
  return absl::InternalError("a literal is past the end of those of its page");
}

absl::StatusOr<std::optional<DepositStep>> DepositPlanner::StepAt(
    uint64_t offset, uint64_t size_bytes_max) {
  QUIRE_ASSIGN_OR_RETURN(const bool is_loaded, Load(PageAt(offset)));
  if (!is_loaded) {
    return std::optional<DepositStep>();
  }
  const auto after =
      std::ranges::upper_bound(starts_, offset, {}, &Start::offset);
  const auto index = static_cast<size_t>(after - starts_.begin()) - 1;
  const Start& start = starts_[index];
  const DepositItem& item = page_->items()[index];
  const uint64_t skipped = offset - start.offset;
  const uint64_t size_bytes =
      std::min(size_bytes_max, item.size_bytes - skipped);
  if (item.kind == DepositItem::Kind::kLiteral) {
    QUIRE_ASSIGN_OR_RETURN(
        std::optional<DepositStep> step,
        LiteralStep(start.literal_offset + skipped, size_bytes));
    if (step.has_value()) {
      step->item = item;
      step->item_offset = start.offset;
    }
    return step;
  }
  DepositStep step = {.item = item,
                      .item_offset = start.offset,
                      .page = page_,
                      .size_bytes = size_bytes};
  if (item.kind == DepositItem::Kind::kText) {
    step.text = {{start.text_offset + skipped}, size_bytes};
  } else {
    step.skipped_bytes = skipped;
    step.text = {{start.text_offset}, item.text_size_bytes};
  }
  return std::optional(std::move(step));
}

absl::StatusOr<std::optional<DepositPlan>> DepositPlanner::Plan(
    uint64_t offset, const Bounds& bounds) {
  DepositPlan plan;
  const uint64_t size_bytes_max =
      std::min(bounds.size_bytes_max, file_.size_bytes - offset);
  while (plan.size_bytes < size_bytes_max) {
    // Text is a member's or of about the size of the bytes.
    const uint64_t left =
        std::min(size_bytes_max - plan.size_bytes, bounds.text_size_bytes_max);
    QUIRE_ASSIGN_OR_RETURN(std::optional<DepositStep> step,
                           StepAt(offset + plan.size_bytes, left));
    if (!step.has_value()) {
      return std::optional<DepositPlan>();
    }
    if (step->text.size_bytes > 0) {
      const bool is_first = plan.text.size_bytes == 0;
      const uint64_t begin =
          is_first ? step->text.offset.value : plan.text.offset.value;
      const uint64_t size_bytes =
          step->text.offset.value + step->text.size_bytes - begin;
      if (!plan.steps.empty() && size_bytes > bounds.text_size_bytes_max) {
        break;
      }
      plan.text = {{begin}, size_bytes};
    }
    plan.size_bytes += step->size_bytes;
    plan.steps.push_back(*std::move(step));
  }
  return std::optional(std::move(plan));
}

absl::Status DepositPlanner::VisitItems(
    absl::FunctionRef<absl::Status(const DepositItem&, const DepositPage&)>
        visit) {
  uint64_t offset = 0;
  while (offset < file_.size_bytes) {
    const PlacedPage page = PageAt(offset);
    QUIRE_ASSIGN_OR_RETURN(const bool is_loaded, Load(page));
    if (!is_loaded) {
      return absl::InternalError("a page of a deposited file is not at hand");
    }
    for (const DepositItem& item : page_->items()) {
      QUIRE_RETURN_IF_ERROR(visit(item, *page_));
    }
    offset = page.offset + page.entry->totals.size_bytes;
  }
  return absl::OkStatus();
}

absl::Status DepositMaker::Make(const DepositStep& step, ByteView text,
                                MutableByteView out,
                                absl::FunctionRef<bool()> cancelled) {
  switch (step.item.kind) {
    case DepositItem::Kind::kLiteral:
      std::ranges::copy(step.literal.bytes, out.begin());
      return absl::OkStatus();
    case DepositItem::Kind::kText:
      std::ranges::copy(text, out.begin());
      return absl::OkStatus();
    case DepositItem::Kind::kMember:
      break;
  }
  const auto recreate = [&](MutableByteView member) {
    return RecreateDepositMember(
        step.item, step.page->headers()[step.item.header],
        [&text]() -> absl::StatusOr<ByteView> {
          return std::exchange(text, ByteView());
        },
        encoder_, member, cancelled);
  };
  if (!Holds(step)) {
    if (step.size_bytes == step.item.size_bytes) {
      return recreate(out);
    }
    member_.resize(step.item.size_bytes);
    member_offset_ = step.item_offset;
    if (absl::Status made = recreate(member_); !made.ok()) {
      member_.clear();
      return made;
    }
  }
  std::ranges::copy(
      ByteView(member_).subspan(step.skipped_bytes, step.size_bytes),
      out.begin());
  return absl::OkStatus();
}

DepositReader::DepositReader(const Archive& archive, const DepositedFile& file)
    : archive_(archive),
      file_(file),
      planner_(archive, file, BlockingPartLoader(archive)) {}

absl::Status DepositReader::ReadText(LogicalOffset offset,
                                     MutableByteView out) {
  while (!out.empty()) {
    QUIRE_ASSIGN_OR_RETURN(const DocumentOrdinal ordinal,
                           archive_.DocumentAt(offset));
    const Archive::DocumentsOfSegment documents = archive_.SegmentAt(ordinal);
    if (segment_text_ == nullptr || segment_index_ != documents.segment_index) {
      segment_index_ = documents.segment_index;
      segment_text_ = std::make_unique<SegmentText>(
          archive_.ReaderOf(segment_index_), &archive_.codec(),
          archive_.info().block_size_bytes_max);
    }
    const uint64_t begin = offset.value - archive_.SegmentStart(segment_index_);
    const uint64_t size_bytes = std::min<uint64_t>(
        out.size(), archive_.ReaderOf(segment_index_).size_bytes() - begin);
    MutableByteView left = out.first(size_bytes);
    QUIRE_RETURN_IF_ERROR(segment_text_->Visit(
        begin, size_bytes,
        [&left](uint64_t, const absl::StatusOr<ByteView>& part) {
          if (part.ok()) {
            std::ranges::copy(*part, left.begin());
            left = left.subspan(part->size());
          }
          return part.status();
        }));
    out = out.subspan(size_bytes);
    offset.value += size_bytes;
  }
  return absl::OkStatus();
}

absl::Status DepositReader::Read(uint64_t offset, MutableByteView out) {
  while (!out.empty()) {
    QUIRE_ASSIGN_OR_RETURN(
        const std::optional<DepositPlan> plan,
        planner_.Plan(offset, {.size_bytes_max = out.size(),
                               .text_size_bytes_max = kPieceSizeBytes}));
    if (!plan.has_value()) {
      return absl::InternalError("a blocking loader has all parts at hand");
    }
    for (const DepositStep& step : plan->steps) {
      text_.resize(maker_.Holds(step) ? 0 : step.text.size_bytes);
      QUIRE_RETURN_IF_ERROR(ReadText(step.text.offset, text_));
      absl::Status made = maker_.Make(step, text_, out.first(step.size_bytes));
      QUIRE_RETURN_IF_ERROR(InFile(
          archive_.SegmentPath(file_.portions.front().segment_index), made));
      out = out.subspan(step.size_bytes);
    }
    offset += plan->size_bytes;
  }
  return absl::OkStatus();
}

absl::Status DepositReader::CheckDigest(
    absl::FunctionRef<absl::Status(uint64_t size_bytes)> on_read) {
  Sha256Summer sum;
  std::vector<uint8_t> piece(
      std::min<uint64_t>(kPieceSizeBytes, file_.size_bytes));
  for (uint64_t offset = 0; offset < file_.size_bytes;) {
    const MutableByteView part = MutableByteView(piece).first(
        std::min<uint64_t>(piece.size(), file_.size_bytes - offset));
    QUIRE_RETURN_IF_ERROR(Read(offset, part));
    QUIRE_RETURN_IF_ERROR(on_read(part.size()));
    sum.Add(part);
    offset += part.size();
  }
  const DepositDigest found = sum.Finish();
  if (found != file_.digest) {
    return Damaged(absl::StrCat(archive_.path(), ": SHA-256 of deposited file ",
                                QuotedText(file_.path), " is ", Hex(found),
                                ", expected ", Hex(file_.digest),
                                "; restore the archive from a copy"));
  }
  return absl::OkStatus();
}

}  // namespace quire

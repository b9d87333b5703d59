// SPDX-License-Identifier: Apache-2.0
#include "client/cli/export_format.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "client/cli/warc_format.h"
#include "codecs/base/byte_size.h"
#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "codecs/base/tar_format.h"

namespace quire {
namespace {

constexpr size_t kNamesMax = 4'000'000;
constexpr size_t kZerosSizeBytes = size_t{64} << 10;

class TarExport final : public ExportFormat {
 public:
  std::string Before(const v1::Document& document) override {
    const std::string name = TarName(document.id());
    changed_count_ += name == document.id() ? 0 : 1;
    const uint64_t hash = Checksum64(AsBytes(name));
    if (names_.contains(hash)) {
      ++repeated_count_;
    } else if (names_.size() < kNamesMax) {
      names_.insert(hash);
    }
    return TarHeader(name, document.range().size_bytes(),
                     document.has_capture_time_ms()
                         ? std::optional<int64_t>(document.capture_time_ms())
                         : std::nullopt);
  }

  std::string After(const v1::Document& document) override {
    return TarPadding(document.range().size_bytes());
  }

  std::string End() override { return TarEnd(); }

  std::vector<std::string> Notes() const override {
    std::vector<std::string> notes;
    if (repeated_count_ > 0) {
      notes.push_back(absl::StrCat(
          FormatCounted(repeated_count_, "member has", "members have"),
          " the name of an earlier one; unpacking keeps the last of each name, "
          "quire batch --output-dir writes every document"));
    }
    if (changed_count_ > 0) {
      notes.push_back(absl::StrCat(
          FormatCounted(changed_count_, "id", "ids"),
          " that no file can be named by or that would be unpacked elsewhere, "
          "being empty or having a NUL byte, a slash at the start or the end, "
          "or a component . or ..: there the name has %, %00, %2F or %2E"));
    }
    return notes;
  }

 private:
  absl::flat_hash_set<uint64_t> names_;
  uint64_t repeated_count_ = 0;
  uint64_t changed_count_ = 0;
};

class WarcExport final : public ExportFormat {
 public:
  WarcExport(v1::ArchiveDescription archive, int64_t now_ms)
      : archive_(std::move(archive)), now_ms_(now_ms) {}

  std::string Before(const v1::Document& document) override {
    if (document.has_record_type()) {
      ++record_count_;
      return "";
    }
    return absl::StrCat(
        resource_count_++ == 0 ? WarcInfoRecord(archive_, now_ms_) : "",
        WarcResourceHeader(archive_, document, now_ms_));
  }

  std::string After(const v1::Document& document) override {
    return document.has_record_type() ? "" : std::string(kWarcRecordEnd);
  }

  std::string End() override { return ""; }

  absl::string_view MustBeginWith(const v1::Document& document) const override {
    return document.has_record_type() ? "WARC/" : "";
  }

  bool has_members() const override { return true; }

  std::vector<std::string> Notes() const override {
    std::vector<std::string> notes;
    if (resource_count_ > 0) {
      notes.push_back(absl::StrCat(
          FormatCounted(resource_count_, "document", "documents"),
          " in records of type resource, ", FormatCount(record_count_),
          " WARC records as they were"));
    }
    return notes;
  }

 private:
  const v1::ArchiveDescription archive_;
  const int64_t now_ms_;
  uint64_t record_count_ = 0;
  uint64_t resource_count_ = 0;
};

}  // namespace

ExportOutput::ExportOutput(OutputFile& file, bool is_compressed)
    : file_(&file),
      gzip_(is_compressed ? std::make_unique<GzipMembers>() : nullptr) {}

absl::Status ExportOutput::Write(ByteView bytes) {
  return gzip_ == nullptr ? file_->Write(bytes)
                          : gzip_->Write(bytes, [this](ByteView compressed) {
                              return file_->Write(compressed);
                            });
}

absl::Status ExportOutput::WriteZeros(uint64_t size_bytes) {
  const std::string zeros(kZerosSizeBytes, '\0');
  while (size_bytes > 0) {
    const uint64_t part = std::min<uint64_t>(size_bytes, zeros.size());
    QUIRE_RETURN_IF_ERROR(Write(AsBytes(zeros).first(part)));
    size_bytes -= part;
  }
  return absl::OkStatus();
}

absl::Status ExportOutput::EndMember() {
  return gzip_ == nullptr ? absl::OkStatus()
                          : gzip_->EndMember([this](ByteView compressed) {
                              return file_->Write(compressed);
                            });
}

absl::Status ExportFormat::CheckPart(const v1::Document& document,
                                     uint64_t offset,
                                     absl::string_view part) const {
  absl::string_view expected = MustBeginWith(document);
  expected.remove_prefix(std::min<uint64_t>(offset, expected.size()));
  expected = expected.substr(0, part.size());
  if (absl::StartsWith(part, expected)) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(
      "document number ", document.ordinal(), ", ", QuotedText(document.id()),
      ", is marked as a WARC record of type ",
      QuotedText(document.record_type()),
      " and must begin with WARC/, but does not; --tar writes it as it is"));
}

std::unique_ptr<ExportFormat> MakeTarExport() {
  return std::make_unique<TarExport>();
}

std::unique_ptr<ExportFormat> MakeWarcExport(v1::ArchiveDescription archive,
                                             int64_t now_ms) {
  return std::make_unique<WarcExport>(std::move(archive), now_ms);
}

}  // namespace quire

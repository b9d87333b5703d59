// SPDX-License-Identifier: GPL-3.0-or-later
//
// Removal of documents from archives with parts of deposited files.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"

#include "codecs/base/status_macros.h"
#include "server/archive/archive.h"
#include "server/ingest/build_pipeline.h"
#include "server/ingest/sources/deposit_source.h"
#include "server/ingest/testing/build_testing.h"
#include "server/redaction/redact.h"
#include "server/redaction/redaction_proof.h"
#include "server/redaction/removed_documents.h"
#include "testing/base/status_matchers.h"
#include "testing/base/temporary_directory.h"

namespace quire {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kDocumentSizeBytes = 5000;

// A file of one literal, whose text is that of three documents.
class LiteralDeposit final : public DepositSource {
 public:
  absl::StatusOr<Result> Draft(const Options& options) const override {
    constexpr uint64_t kSizeBytes = 4000;
    DepositDraft::File file = {.path = options.path, .size_bytes = kSizeBytes};
    file.items = {
        {.size_bytes = kSizeBytes, .text_size_bytes = 3 * kDocumentSizeBytes}};
    file.read = [](uint64_t /*offset*/, MutableByteView out) {
      std::ranges::fill(out, uint8_t{'S'});
      return absl::OkStatus();
    };
    return Result{.draft = std::make_shared<DepositDraft>(std::move(file))};
  }
};

// Two documents of such a file, which became shorter, then.
class ShorterSource final : public Source {
 public:
  const std::string& name() const override { return name_; }

  const char* kind() const override { return "memory"; }

  absl::StatusOr<std::unique_ptr<SourceReader>> Open() const override {
    return std::make_unique<Reader>();
  }

 private:
  class Reader final : public SourceReader {
   public:
    absl::StatusOr<std::optional<SourceDocument>> Next() override {
      if (count_ == 2) {
        return std::nullopt;
      }
      text_ = MakeTestText(kDocumentSizeBytes, count_);
      SourceDocument document = {.id = count_ == 0 ? "a" : "b"};
      document.deposit = deposit_;
      document.deposit_path = "file";
      ++count_;
      return document;
    }

    std::string Place() const override { return "document"; }

    absl::StatusOr<size_t> Read(MutableByteView out) override {
      const size_t size = std::min(out.size(), text_.size());
      std::ranges::copy(text_.substr(0, size), out.begin());
      text_.erase(0, size);
      return size;
    }

   private:
    const std::shared_ptr<const DepositSource> deposit_ =
        std::make_shared<LiteralDeposit>();
    uint64_t count_ = 0;
    std::string text_;
  };

  const std::string name_ = "memory";
};

// A literal that a segment's end divides has bytes of the next segment's
// document in the first part.
TEST(RedactDepositsTest, LeavesOutPartsOfIncompleteFiles) {
  const TemporaryDirectory directory;
  const std::string path = directory / "x.quire";
  BuildOptions options = SmallBuildOptions("lz4", kDocumentSizeBytes);
  options.deposits = DepositMode::kAll;
  std::vector<std::unique_ptr<Source>> sources;
  sources.push_back(std::make_unique<ShorterSource>());
  QUIRE_ASSERT_OK_AND_ASSIGN(const BuildSummary built,
                             BuildArchive(path, sources, options));
  EXPECT_THAT(built.deposits.refusals, Contains(HasSubstr("became shorter")));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto before, Archive::Open(path));
  ASSERT_EQ(before->deposited_files().incomplete_files().size(), 1);
  EXPECT_TRUE(HasDepositPages(
      *before, before->deposited_files().incomplete_files().front()));
  const std::vector<std::string> items = {"b"};
  // The proof finds what an earlier version left.
  QUIRE_ASSERT_OK_AND_ASSIGN(const RemovedDocuments removed,
                             RemovedDocuments::Find(*before, items));
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const RedactionProof refuted,
      ProveRedaction(*before, *before, removed, 1 << 20,
                     [](uint64_t) { return absl::OkStatus(); }));
  EXPECT_THAT(refuted.failures, Contains(HasSubstr("\"file\", which is "
                                                   "incomplete")));

  QUIRE_ASSERT_OK_AND_ASSIGN(const RedactReport report,
                             RedactArchive(path, items, {.prove = true}));
  EXPECT_EQ(report.segment_count, 2);
  EXPECT_THAT(report.proof->failures, IsEmpty());
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto after, Archive::Open(path));
  EXPECT_EQ(after->deposited_files().incomplete_files().size(), 1);
  EXPECT_FALSE(HasDepositPages(
      *after, after->deposited_files().incomplete_files().front()));
}

}  // namespace
}  // namespace quire

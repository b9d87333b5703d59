// SPDX-License-Identifier: GPL-3.0-or-later
//
// Tests builds with unreadable inputs: the rest is complete, byte for byte, and
// missing parts are named.
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/endian.h"
#include "codecs/base/status_macros.h"
#include "server/archive/archive.h"
#include "server/ingest/build_pipeline.h"
#include "server/ingest/testing/ingest_testing.h"
#include "testing/base/sanitized.h"
#include "testing/base/status_matchers.h"

namespace {

// Selects the damaged bytes of files; may be empty.
std::function<bool(const std::string& path, off_t offset)>& BadSector() {
  static std::function<bool(const std::string&, off_t)> is_bad;
  return is_bad;
}

}  // namespace

// Replaces the C library's: reads fail like those of a failing drive.
extern "C" ssize_t pread(int fd, void* buf, size_t nbytes, off_t offset) {
  if (BadSector()) {
    std::error_code error;
    const std::string path = std::filesystem::read_symlink(
        "/proc/self/fd/" + std::to_string(fd), error);
    if (!error && BadSector()(path, offset)) {
      errno = EIO;
      return -1;
    }
  }
  return syscall(SYS_pread64, fd, buf, nbytes, offset);
}

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class KeepGoingTest : public ::testing::Test {
 protected:
  ~KeepGoingTest() override { BadSector() = nullptr; }

  absl::StatusOr<BuildSummary> Build(const std::vector<std::string>& inputs,
                                     uint32_t threads = 2) {
    std::vector<std::unique_ptr<Source>> sources;
    for (const std::string& input : inputs) {
      QUIRE_ASSIGN_OR_RETURN(
          sources.emplace_back(),
          OpenSource(input, {.spool_directory = directory_.path(),
                             .expand = true,
                             .skip_damage = keep_going_,
                             .split = split_}));
    }
    failures_ = std::make_unique<InputFailures>();
    BuildOptions options;
    // Uses all passes.
    options.archive.codec = *ParseCodecSpec("rlz");
    options.archive.block_size_bytes = 4096;
    options.archive.replace = true;
    options.dictionary_size_bytes = 8192;
    options.threads = threads;
    options.failures = keep_going_ ? failures_.get() : nullptr;
    notes_.clear();
    options.on_note = [this](EntryNote note, const std::string& text) {
      if (note == EntryNote::kTolerated) {
        notes_.push_back(text);
      }
    };
    options.on_progress = [this](const BuildProgress& progress) {
      if (on_phase_ && progress.phase != phase_) {
        phase_ = progress.phase;
        on_phase_(phase_);
      }
    };
    return BuildArchive(path(), sources, options);
  }

  std::string path() const { return directory_ / "x.quire"; }

  absl::StatusOr<IdsAndContents> ReadBack() const {
    QUIRE_ASSIGN_OR_RETURN(const std::shared_ptr<const Archive> archive,
                           Archive::Open(path()));
    EXPECT_EQ(archive->info().unread_input_count, failures_->count());
    EXPECT_EQ(archive->info().unread_inputs, failures_->messages());
    const auto scratch = archive->codec().NewScratch();
    IdsAndContents documents;
    for (uint64_t i = 0; i < archive->info().document_count; ++i) {
      QUIRE_ASSIGN_OR_RETURN(const Document document,
                             archive->GetDocument(DocumentOrdinal{i}));
      QUIRE_ASSIGN_OR_RETURN(const std::vector<BlockSlice> slices,
                             archive->Plan(document.range));
      std::string text;
      for (const BlockSlice& slice : slices) {
        std::string block(archive->BlockSizeBytes(slice.block), '\0');
        QUIRE_RETURN_IF_ERROR(
            archive->ReadBlock(slice.block, AsMutableBytes(block), *scratch));
        text.append(block, slice.offset_in_block, slice.size_bytes);
      }
      documents.emplace_back(document.id, std::move(text));
    }
    return documents;
  }

  const TemporaryDirectory directory_;
  bool keep_going_ = true;
  std::optional<LineSplit> split_;
  std::function<void(BuildPhase)> on_phase_;
  BuildPhase phase_ = BuildPhase::kFinish;
  std::unique_ptr<InputFailures> failures_;
  std::vector<std::string> notes_;
};

std::string Record(const std::string& uri, const std::string& block) {
  return MakeWarcRecord({"WARC-Target-URI: " + uri, "WARC-Type: resource"},
                        block);
}

TEST_F(KeepGoingTest, LeavesOutFilesThatCannotBeReadToTheirEnd) {
  IdsAndContents expected;
  constexpr size_t kSize = kIsSanitized ? 600'000 : 3'000'000;
  for (uint64_t i = 0; i < 9; ++i) {
    const std::string name = absl::StrCat("f", i);
    const std::string text = MakeTestText(kSize, i);
    directory_.Write("in/" + name, text);
    if (i != 0 && i != 4 && i != 8) {
      expected.emplace_back(name, text);
    }
  }
  // At the start, in the middle, and at the end.
  BadSector() = [](const std::string& path, off_t offset) {
    return absl::EndsWith(path, "in/f0") ||
           (absl::EndsWith(path, "in/f4") && offset >= off_t{kSize} / 2) ||
           (absl::EndsWith(path, "in/f8") && offset >= off_t{kSize} - 1);
  };
  for (const uint32_t threads : {1u, 3u}) {
    QUIRE_ASSERT_OK(Build({directory_ / "in"}, threads));
    EXPECT_THAT(failures_->messages(),
                ElementsAre(HasSubstr("in/f0"), HasSubstr("in/f4"),
                            HasSubstr("in/f8")));
    QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents documents, ReadBack());
    EXPECT_TRUE(documents == expected);
  }
  keep_going_ = false;
  EXPECT_THAT(Build({directory_ / "in"}),
              FailsWith(absl::StatusCode::kUnavailable, HasSubstr("f0")));
}

TEST_F(KeepGoingTest, KeepsWhatComesBeforeTheEndOfATruncatedWarc) {
  const std::string whole = Record("http://u/1", MakeTestText(9000, 1)) +
                            Record("http://u/2", MakeTestText(70000, 2));
  const std::string gzipped =
      Gzip(Record("http://u/1", "one")) +
      Gzip(Record("http://u/2", MakeTestText(70000, 2)));
  directory_.Write("in/a.warc", whole.substr(0, whole.size() - 3000));
  directory_.Write("in/b.warc.gz", gzipped.substr(0, gzipped.size() - 300));
  directory_.Write("in/c", "the rest");
  QUIRE_ASSERT_OK(Build({directory_ / "in"}));
  EXPECT_THAT(
      failures_->messages(),
      ElementsAre(AllOf(HasSubstr("a.warc: record 1"), HasSubstr("truncated")),
                  HasSubstr("b.warc.gz")));
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents documents, ReadBack());
  EXPECT_THAT(
      documents,
      ElementsAre(
          testing::Pair("a.warc/http://u/1",
                        Record("http://u/1", MakeTestText(9000, 1))),
          testing::Pair("b.warc.gz/http://u/1", Record("http://u/1", "one")),
          testing::Pair("c", "the rest")));
  // The same as direct inputs.
  QUIRE_ASSERT_OK(Build({directory_ / "in/a.warc", directory_ / "in/c",
                         directory_ / "in/b.warc.gz"}));
  EXPECT_EQ(failures_->count(), 2);
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents again, ReadBack());
  ASSERT_EQ(again.size(), 3);
  EXPECT_EQ(again[1].second, "the rest");
}

// The text of the first part, which is all of it, is shorter than what is
// looked at to recognise it.
TEST_F(KeepGoingTest, KeepsASmallPartBeforeOtherBytes) {
  const std::string record = Record("http://u/1", "one");
  const std::string file = MakeTestArchive("zip", "none", {{"one", "text"}});
  const std::vector<std::pair<std::string, std::string>> inputs = {
      {"a.warc.gz", Gzip(record) + "x"},
      {"b.warc.zst", Zstd(record) + "words"},
      {"c.arc.gz", Gzip("filedesc://a.arc 0.0.0.0 20210101000000 text/plain "
                        "4\n1 0\n\n") +
                       "x"},
      {"d.zip.gz", Gzip(file) + "x"}};
  for (const auto& [name, bytes] : inputs) {
    QUIRE_ASSERT_OK(Build({directory_.Write(name, bytes)}));
    EXPECT_THAT(failures_->messages(), ElementsAre(HasSubstr("from byte")))
        << name;
    QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents documents, ReadBack());
    EXPECT_EQ(documents.size(), 1u) << name;
  }
}

TEST_F(KeepGoingTest, NamesTextOfAZipThatItsListLeavesOut) {
  const std::string first = MakeTestArchive("zip", "none", {{"a", "one"}});
  const std::string second =
      MakeTestArchive("zip", "none", {{"b", "two"}, {"c", "three"}});
  std::string unlisted = second;
  // The list with its last entry alone, whose record is 46 bytes, its name and
  // fields.
  const size_t list = unlisted.find("PK\1\2");
  const size_t last = unlisted.rfind("PK\1\2");
  unlisted.erase(list, last - list);
  const size_t end = unlisted.rfind("PK\5\6");
  unlisted[end + 8] = unlisted[end + 10] = 1;
  StoreLittleEndian(static_cast<uint32_t>(end - list),
                    AsMutableBytes(unlisted).data() + end + 12);

  const struct {
    std::string bytes;
    std::string offset;
    size_t document_count;
  } cases[] = {
      {first + second, "at offset 0", 2},
      {second + "words", absl::StrCat("5 bytes at offset ", second.size()), 2},
      {unlisted, "at offset 0", 1},
      {second + std::string(512, '\0'), "", 2}};

  for (const auto& c : cases) {
    for (const char* name : {"in/x.zip", "in"}) {
      keep_going_ = true;
      directory_.Write("in/x.zip", c.bytes);
      QUIRE_ASSERT_OK(Build({directory_ / name}));
      QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents documents, ReadBack());
      EXPECT_EQ(documents.size(), c.document_count);
      if (c.offset.empty()) {
        EXPECT_THAT(failures_->messages(), IsEmpty());
        continue;
      }
      EXPECT_THAT(failures_->messages(),
                  ElementsAre(AllOf(HasSubstr("x.zip: left out: "),
                                    HasSubstr(c.offset))));
      keep_going_ = false;
      EXPECT_THAT(Build({directory_ / name}),
                  FailsWith(absl::StatusCode::kDataLoss, HasSubstr(c.offset)));
    }
  }
}

TEST_F(KeepGoingTest, KeepsEntriesOfAZipWithoutItsList) {
  const std::string zip = MakeTestArchive(
      "zip", "none",
      {{"a", "one"}, {"b", MakeTestText(9000, 1)}, {"c", "three"}});
  for (const auto& [size, count] : {std::pair(zip.find("PK\1\2") + 20, 3u),
                                    {zip.size() - 5, 3u},
                                    {zip.rfind("PK\3\4") + 35, 2u}}) {
    QUIRE_ASSERT_OK(Build({directory_.Write("x.zip", zip.substr(0, size))}));
    EXPECT_THAT(failures_->messages(), ElementsAre(HasSubstr("x.zip")));
    QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents documents, ReadBack());
    EXPECT_EQ(documents.size(), count) << size;
  }
}

// It is damage, not an input over the limit.
TEST_F(KeepGoingTest, KeepsWhatComesBeforeADamagedLength) {
  const std::string first = Record("http://u/1", "one");
  std::string second = Record("http://u/2", "two");
  second.insert(second.find(": 3\r\n") + 2, "99999999999999");
  directory_.Write("in/a.warc", first + second);
  directory_.Write("in/b", "the rest");
  for (const std::vector<std::string>& inputs :
       {std::vector<std::string>{directory_ / "in"},
        std::vector<std::string>{directory_ / "in/a.warc",
                                 directory_ / "in/b"}}) {
    QUIRE_ASSERT_OK(Build(inputs));
    EXPECT_THAT(failures_->messages(),
                ElementsAre(AllOf(HasSubstr("a.warc: record 1"),
                                  HasSubstr("the file ends after"))));
    QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents documents, ReadBack());
    ASSERT_EQ(documents.size(), 2u);
    EXPECT_EQ(documents[0].second, first);
    EXPECT_EQ(documents[1].second, "the rest");
  }
}

// Returns the offset of each record in a WARC that is gzipped by record, and
// then the end of the file.
std::string GzippedRecords(size_t count, std::vector<size_t>& offsets) {
  std::string warc;
  for (size_t i = 0; i < count; ++i) {
    offsets.push_back(warc.size());
    warc += Gzip(Record(absl::StrCat("http://u/", i),
                        MakeTestText(100 + i * 1000 % 9000, i)));
  }
  offsets.push_back(warc.size());
  return warc;
}

// In a directory and as a direct input, at the first, a middle and the last
// record: only that one is lost, and skipped bytes are reported.
TEST_F(KeepGoingTest, LosesOnlyTheRecordsOfDamagedGzipMembers) {
  constexpr size_t kCount = 12;
  std::vector<size_t> offsets;
  const std::string whole = GzippedRecords(kCount, offsets);
  for (const auto& [record, input] : {std::pair(size_t{0}, "in"),
                                      {size_t{5}, "in/a.warc.gz"},
                                      {kCount - 1, "in/a.warc.gz"}}) {
    const size_t offset = offsets[record];
    const size_t end = offsets[record + 1];
    std::string damaged = whole;
    damaged[end - 8] = static_cast<char>(damaged[end - 8] ^ 0x55);
    directory_.Write("in/a.warc.gz", damaged);
    QUIRE_ASSERT_OK(Build({directory_ / input}));
    EXPECT_THAT(
        failures_->messages(),
        ElementsAre(HasSubstr(absl::StrCat(
            "; left out: ", FormatCounted(end - offset, "", "bytes"),
            " of the file at offset ", offset,
            record == kCount - 1 ? ", its rest" : ", up to the next"))));
    QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents documents, ReadBack());
    ASSERT_EQ(documents.size(), kCount - 1);
    for (size_t i = 0; i < documents.size(); ++i) {
      EXPECT_THAT(documents[i].first,
                  EndsWith(absl::StrCat("u/", i < record ? i : i + 1)));
    }
  }
}

TEST_F(KeepGoingTest, ReadsOnAfterEachOfManyDamagedMembers) {
  constexpr size_t kCount = 60;
  std::vector<size_t> offsets;
  std::string warc = GzippedRecords(kCount, offsets);
  for (size_t i = 3; i < kCount; i += 7) {
    warc[offsets[i] + 40] = static_cast<char>(warc[offsets[i] + 40] ^ 0xFF);
  }
  // Two consecutive ones, the first of which loses its start.
  std::fill_n(warc.begin() + static_cast<std::ptrdiff_t>(offsets[11]), 30, 'x');
  QUIRE_ASSERT_OK(Build({directory_.Write("a.warc.gz", warc)}));
  // 3, 10 with 11 or without it, 17, 24, 31, 38, 45, 52 and 59.
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents documents, ReadBack());
  EXPECT_EQ(documents.size(), kCount - 10);
  keep_going_ = false;
  EXPECT_THAT(Build({directory_ / "a.warc.gz"}),
              FailsWith(absl::StatusCode::kDataLoss,
                        ::testing::Not(HasSubstr("left out"))));
}

// A member that decompresses to no record costs no other one, and a length that
// is larger than its member costs none.
TEST_F(KeepGoingTest, ReadsOnAfterAMemberThatIsNoRecord) {
  const std::string second = Record("http://u/2", "two");
  std::string longer = second;
  longer.replace(longer.find("Content-Length: 3"), 17, "Content-Length: 9");
  const std::string warc = Gzip(Record("http://u/1", "one")) + Gzip(longer) +
                           Gzip(Record("http://u/3", "three")) +
                           Gzip("no record") +
                           Gzip(Record("http://u/4", "four"));
  QUIRE_ASSERT_OK(Build({directory_.Write("a.warc.gz", warc)}));
  EXPECT_EQ(failures_->count(), 1);
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents documents, ReadBack());
  ASSERT_EQ(documents.size(), 4);
  EXPECT_EQ(documents[1].second, longer);
  EXPECT_EQ(documents[2].first, "http://u/3");
  EXPECT_EQ(documents[3].second, Record("http://u/4", "four"));
}

TEST_F(KeepGoingTest, GoesOnBehindMembersThatFail) {
  std::vector<TestEntry> entries;
  IdsAndContents expected;
  std::mt19937 random(1);
  for (int i = 0; i < 5; ++i) {
    std::string contents(20000, '\0');
    for (char& c : contents) {
      c = static_cast<char>('a' + random() % 16);
    }
    entries.push_back({absl::StrCat("member-", i), contents});
    if (i != 1 && i != 3) {
      expected.emplace_back(entries.back().name, entries.back().contents);
    }
  }
  std::string zip = MakeTestArchive("zip", "none", entries);
  // In the deflated data of two members.
  for (const char* name : {"member-1", "member-3"}) {
    zip.replace(zip.find(name) + 200, 40, std::string(40, '\xFF'));
  }
  const std::string path = directory_.Write("x.zip", zip);
  QUIRE_ASSERT_OK(Build({path}));
  EXPECT_THAT(failures_->messages(), ElementsAre(HasSubstr("\"member-1\""),
                                                 HasSubstr("\"member-3\"")));
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents documents, ReadBack());
  EXPECT_TRUE(documents == expected);

  const std::string tar = MakeTestArchive("pax", "none", entries);
  QUIRE_ASSERT_OK(Build({directory_.Write("x.tar", tar.substr(0, 50000))}));
  EXPECT_THAT(failures_->messages(), ElementsAre(HasSubstr("\"member-2\"")));
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents start, ReadBack());
  EXPECT_EQ(start.size(), 2);
}

TEST_F(KeepGoingTest, LeavesOutNamesThatAreTooLong) {
  const std::string long_name(70000, 'n');
  const std::string tar = MakeTestArchive(
      "pax", "none", {{"a", "1"}, {long_name, "2"}, {"c", "3"}});
  QUIRE_ASSERT_OK(Build({directory_.Write("x.tar", tar)}));
  EXPECT_THAT(failures_->messages(), ElementsAre(HasSubstr("70,000 bytes")));
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents documents, ReadBack());
  EXPECT_THAT(documents,
              ElementsAre(testing::Pair("a", "1"), testing::Pair("c", "3")));
}

TEST_F(KeepGoingTest, WithoutFailuresTheArchiveIsTheSame) {
  for (uint64_t i = 0; i < 5; ++i) {
    directory_.Write(absl::StrCat("in/", i), MakeTestText(20000, i));
  }
  const auto files = [this] {
    std::vector<std::pair<std::string, std::string>> all;
    for (const auto& entry : std::filesystem::directory_iterator(path())) {
      all.emplace_back(entry.path().filename(), ReadTestFile(entry.path()));
    }
    std::sort(all.begin(), all.end());
    return all;
  };
  QUIRE_ASSERT_OK(Build({directory_ / "in"}));
  EXPECT_THAT(failures_->messages(), IsEmpty());
  const auto kept_going = files();
  keep_going_ = false;
  QUIRE_ASSERT_OK(Build({directory_ / "in"}));
  EXPECT_TRUE(files() == kept_going);
}

TEST_F(KeepGoingTest, NamesWhatFailsLaterThanInTheFirstPass) {
  const std::string text = MakeTestText(50000, 2);
  directory_.Write("in/a", MakeTestText(50000, 1));
  directory_.Write("in/b", text);
  directory_.Write("in/c", "last");
  on_phase_ = [](BuildPhase phase) {
    if (phase == BuildPhase::kEncode) {
      BadSector() = [](const std::string& path, off_t offset) {
        return absl::EndsWith(path, "in/b") && offset >= 30000;
      };
    }
  };
  QUIRE_ASSERT_OK(Build({directory_ / "in"}));
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents documents, ReadBack());
  ASSERT_EQ(documents.size(), 3u);
  EXPECT_TRUE(absl::StartsWith(text, documents[1].second));
  EXPECT_LT(documents[1].second.size(), text.size());
  EXPECT_EQ(documents[2].second, "last");
  EXPECT_THAT(failures_->messages(),
              ElementsAre(AllOf(HasSubstr("in/b"),
                                HasSubstr(absl::StrCat(
                                    "at most the first ",
                                    FormatCount(documents[1].second.size()),
                                    " bytes are in the archive")))));
  BadSector() = nullptr;
  keep_going_ = false;
  EXPECT_THAT(Build({directory_ / "in"}),
              FailsWith(absl::StatusCode::kUnavailable, HasSubstr("in/b")));
}

TEST_F(KeepGoingTest, NamesInputsThatChange) {
  const std::string text = MakeTestText(50000, 2);
  for (const bool keeps_going : {true, false}) {
    keep_going_ = keeps_going;
    directory_.Write("in/a", text);
    directory_.Write("in/b", "second");
    directory_.Write("in/c", "third");
    on_phase_ = [this](BuildPhase phase) {
      if (phase == BuildPhase::kEncode) {
        std::filesystem::remove(directory_ / "in/b");
      }
    };
    // Shorter than it was when it was opened, in the last pass.
    BadSector() = [this, &text](const std::string& path, off_t offset) {
      if (phase_ == BuildPhase::kEncode && absl::EndsWith(path, "in/a") &&
          offset == 0) {
        std::filesystem::resize_file(path, text.size() / 2);
      }
      return false;
    };
    const absl::StatusOr<BuildSummary> built = Build({directory_ / "in"});
    if (!keeps_going) {
      EXPECT_THAT(built, FailsWith(absl::StatusCode::kUnavailable,
                                   AllOf(HasSubstr("in/a: had 50,000 bytes"),
                                         HasSubstr("ends after 25,000"))));
      continue;
    }
    QUIRE_ASSERT_OK(built);
    EXPECT_THAT(failures_->messages(),
                ElementsAre(AllOf(HasSubstr("in/a: had 50,000 bytes"),
                                  HasSubstr("first 25,000 bytes are"))));
    EXPECT_THAT(notes_,
                ElementsAre(HasSubstr(
                    "in: changed during the build: it had 3 documents with "
                    "50,011 bytes, and then 2 with 25,005;")));
    QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents documents, ReadBack());
    EXPECT_THAT(documents,
                ElementsAre(testing::Pair("a", text.substr(0, 25000)),
                            testing::Pair("c", "third")));
  }
}

// Returns text of `count` lines and their number from `first` on.
std::string Lines(size_t first, size_t count) {
  std::string text;
  for (size_t i = first; i < first + count; ++i) {
    absl::StrAppend(&text, "line ", i, " of ", i * 7919 % 100'003, "\n");
  }
  return text;
}

std::string WithFlippedByte(std::string bytes, size_t offset) {
  bytes[offset] = static_cast<char>(bytes[offset] ^ 0x55);
  return bytes;
}

TEST_F(KeepGoingTest, NamesLinesWhoseChecksumIsWrong) {
  split_.emplace();
  const std::string first = Gzip(Lines(1, 100));
  const std::string second = Gzip(Lines(101, 100));
  for (const std::string& input :
       {std::string("in"), std::string("in/a.log.gz")}) {
    directory_.Write(
        "in/a.log.gz",
        first + WithFlippedByte(second, second.size() - 8) + first);
    directory_.Write("in/b.log.gz", first);
    QUIRE_ASSERT_OK(Build({directory_ / input}));
    EXPECT_THAT(
        failures_->messages(),
        ElementsAre(AllOf(
            HasSubstr(absl::StrCat("gzip member 2 that starts at byte ",
                                   first.size())),
            HasSubstr("; 100 documents of the same compressed part are in the "
                      "archive unchecked, and may be altered: "
                      "\"a.log.gz:101\" to \"a.log.gz:200\""))));
    QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents documents, ReadBack());
    EXPECT_EQ(documents.size(), input == "in" ? 300u : 200u);
  }
  // One that is damaged from the first line on.
  directory_.Write("in/b.log.gz", WithFlippedByte(Gzip("short\n"), 18));
  QUIRE_ASSERT_OK(Build({directory_ / "in"}));
  EXPECT_EQ(failures_->count(), 2u);
  QUIRE_ASSERT_OK(ReadBack());
}

// Damage in one file does not mark checked text of another.
TEST_F(KeepGoingTest, NamesNoTextThatWasChecked) {
  split_.emplace();
  directory_.Write("in/a.gz", Gzip(Lines(1, 100)));
  directory_.Write("in/b", "text\n");
  directory_.Write("in/c.gz", Gzip(Lines(1, 5)));
  directory_.Write("in/d.tar", MakeTestArchive("pax", "gzip", {{"e", "1\n"}}));
  BadSector() = [](const std::string& path, off_t) {
    return absl::EndsWith(path, "in/b");
  };
  QUIRE_ASSERT_OK(Build({directory_ / "in"}));
  EXPECT_THAT(failures_->messages(),
              ElementsAre(AllOf(HasSubstr("in/b"), Not(HasSubstr("altered")))));
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents documents, ReadBack());
  EXPECT_EQ(documents.size(), 106u);
}

TEST_F(KeepGoingTest, NamesMembersOfADamagedCompressedTar) {
  std::vector<TestEntry> entries;
  for (uint64_t i = 0; i < 5; ++i) {
    // More than a decoder returns at once.
    entries.push_back({absl::StrCat("m", i), MakeTestText(90000, i)});
  }
  for (const std::string filter : {"gzip", "zstd", "xz", "bzip2"}) {
    // libarchive writes no checksum of zstd.
    const std::string tar = filter == "zstd"
                                ? Zstd(MakeTestArchive("pax", "none", entries))
                                : MakeTestArchive("pax", filter, entries);
    // In the checksum at its end; in xz an index of this size follows.
    const size_t index_size =
        size_t{LoadLittleEndian<uint32_t>(&AsBytes(tar)[tar.size() - 8])} * 4 +
        4;
    const size_t offset = filter == "zstd"   ? tar.size() - 2
                          : filter == "gzip" ? tar.size() - 7
                          : filter == "xz"   ? tar.size() - 12 - index_size - 4
                                             : tar.size() - 3;
    directory_.Write("in/x.tar.y", WithFlippedByte(tar, offset));
    const bool is_in_directory = filter == "gzip" || filter == "zstd";
    QUIRE_ASSERT_OK(
        Build({directory_ / (is_in_directory ? "in" : "in/x.tar.y")}));
    QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents documents, ReadBack());
    EXPECT_EQ(documents.size(), 5u) << filter;
    const std::string prefix = is_in_directory ? "x.tar.y/" : "";
    EXPECT_THAT(
        failures_->messages(),
        ElementsAre(AllOf(
            HasSubstr("(in the header of entry 5, from 0)"),
            HasSubstr(absl::StrCat(
                "; 5 documents of the same compressed part are in the archive "
                "unchecked, and may be altered: \"",
                prefix, "m0\" to \"", prefix, "m4\"")))))
        << filter;
  }
}

TEST_F(KeepGoingTest, ReadsAZipOnceHoweverManyEntriesFail) {
  std::vector<int> calls;
  for (const size_t count : {size_t{100}, size_t{200}}) {
    std::vector<TestEntry> entries;
    for (size_t i = 0; i < count; ++i) {
      entries.push_back({absl::StrCat("member-", 1000 + i), Lines(i, 20)});
    }
    std::string zip = MakeTestArchive("zip", "none", entries);
    IdsAndContents expected;
    for (size_t i = 0; i < count; ++i) {
      if (i % 3 == 1) {
        zip.replace(zip.find(entries[i].name) + 50, 40,
                    std::string(40, '\xFF'));
      } else if (i % 3 == 2 && i % 2 == 0) {
        // The header before its data.
        zip[zip.find(entries[i].name) - 28] = 'x';
      } else {
        expected.emplace_back(entries[i].name, entries[i].contents);
      }
    }
    calls.push_back(0);
    BadSector() = [&calls](const std::string& path, off_t) {
      calls.back() += absl::EndsWith(path, "x.zip") ? 1 : 0;
      return false;
    };
    QUIRE_ASSERT_OK(Build({directory_.Write("x.zip", zip)}));
    QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents documents, ReadBack());
    EXPECT_TRUE(documents == expected) << documents.size();
    EXPECT_EQ(failures_->count(), count - expected.size());
  }
  EXPECT_LT(calls[1], calls[0] * 3);
}

TEST_F(KeepGoingTest, ReadsAWaczOnceHoweverManyWarcsItHas) {
  std::vector<int> calls;
  for (const size_t count : {size_t{40}, size_t{80}}) {
    std::vector<TestEntry> entries = {{"datapackage.json", "{}"}};
    for (size_t i = 0; i < count; ++i) {
      entries.push_back(
          {absl::StrCat("archive/", 1000 + i, ".warc"),
           Record(absl::StrCat("http://u/", i), MakeTestText(3000, i))});
    }
    calls.push_back(0);
    BadSector() = [&calls](const std::string& path, off_t) {
      calls.back() += absl::EndsWith(path, "x.wacz") ? 1 : 0;
      return false;
    };
    QUIRE_ASSERT_OK(Build(
        {directory_.Write("x.wacz", MakeTestArchive("zip", "none", entries))}));
    QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents documents, ReadBack());
    ASSERT_EQ(documents.size(), count);
    for (size_t i = 0; i < count; ++i) {
      EXPECT_EQ(documents[i].first, absl::StrCat("http://u/", i));
    }
  }
  EXPECT_LT(calls[1], calls[0] * 3);
}

TEST_F(KeepGoingTest, LeavesOutNothingElseThatHasALongPath) {
  // Messages truncate such paths, so that both look alike.
  const std::string above = absl::StrCat("in/", std::string(250, 'd'), "/");
  for (const char* name : {"a", "b", "c"}) {
    directory_.Write(above + name, MakeTestText(2'000'000, 1));
  }
  BadSector() = [](const std::string& path, off_t offset) {
    return absl::EndsWith(path, "d/a") && offset > 1'000'000;
  };
  QUIRE_ASSERT_OK(Build({directory_ / "in"}));
  EXPECT_EQ(failures_->count(), 1);
  QUIRE_ASSERT_OK_AND_ASSIGN(const IdsAndContents documents, ReadBack());
  EXPECT_EQ(documents.size(), 2);
}

TEST_F(KeepGoingTest, NamesTheFirstFewAndCountsAll) {
  for (int i = 0; i < 100; ++i) {
    directory_.Write(absl::StrCat("in/", i), "text");
  }
  BadSector() = [](const std::string& path, off_t) {
    return path.find("/in/1") != std::string::npos;
  };
  QUIRE_ASSERT_OK(Build({directory_ / "in"}));
  EXPECT_EQ(failures_->count(), 11);
  BadSector() = [](const std::string& path, off_t) {
    return path.find("/in/") != std::string::npos;
  };
  QUIRE_ASSERT_OK(Build({directory_ / "in"}));
  EXPECT_EQ(failures_->count(), 100);
  EXPECT_EQ(failures_->messages().size(), InputFailures::kKeptMessageCount);
}

}  // namespace
}  // namespace quire

// SPDX-License-Identifier: GPL-3.0-or-later
//
// Removal from archives whose layouts no build makes, refusals, and kills at
// every system call.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

#include "server/archive/archive_verifier.h"
#include "server/archive/files/archive_change.h"
#include "server/archive/format/archive_format.h"
#include "server/redaction/redact.h"
#include "server/redaction/redaction_proof.h"
#include "server/redaction/removed_documents.h"
#include "testing/archive/archive_testing.h"
#include "testing/archive/damaged_archive.h"
#include "testing/archive/system_call_hooks.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string RandomBytes(size_t size, std::mt19937_64& random) {
  std::string bytes;
  while (bytes.size() < size) {
    bytes.push_back(static_cast<char>(random() % 255 + 1));
  }
  return bytes;
}

// Documents made of a few shared chunks and of bytes of their own.
TestSegment ChunkedSegment(const std::vector<std::string>& chunks,
                           std::mt19937_64& random) {
  TestSegment segment;
  for (uint64_t i = 0; i < 12; ++i) {
    TestDocument document{.id = absl::StrCat("page-", random() % 9),
                          .capture_time_ms = static_cast<int64_t>(i * 1000),
                          .record_type = "response",
                          .media_type = "text/html"};
    for (uint64_t n = random() % 6; n > 0; --n) {
      document.text += random() % 3 == 0 ? RandomBytes(random() % 700, random)
                                         : chunks[random() % chunks.size()];
    }
    segment.push_back(std::move(document));
  }
  return segment;
}

// Stores each chunk once where it first occurs, and everything else in order.
void StoreOnce(const TestSegment& segment,
               const std::vector<std::string>& chunks, std::string& stored,
               std::vector<StoredRun>& runs) {
  std::string text;
  for (const TestDocument& document : segment) {
    text += document.text;
  }
  std::vector<size_t> places(chunks.size(), std::string::npos);
  RunList list;
  for (size_t at = 0; at < text.size();) {
    size_t size = 1;
    size_t place = stored.size();
    for (size_t i = 0; i < chunks.size(); ++i) {
      if (text.compare(at, chunks[i].size(), chunks[i]) == 0) {
        size = chunks[i].size();
        places[i] = std::min(places[i], stored.size());
        place = places[i];
        break;
      }
    }
    if (place == stored.size()) {
      stored += text.substr(at, size);
    }
    list.Append(size, place);
    at += size;
  }
  runs = std::move(list).Take();
}

// Returns the text of all documents.
std::vector<std::string> ReadTexts(const Archive& archive) {
  std::vector<std::string> texts;
  for (uint64_t i = 0; i < archive.info().document_count; ++i) {
    texts.push_back(
        ReadTestRange(archive, archive.GetDocument({i})->range).value());
  }
  return texts;
}

class RedactLayoutTest : public ::testing::Test {
 protected:
  // Writes an archive of two segments, one of them with a layout.
  void Write(const char* codec_name, std::mt19937_64& random) {
    std::vector<std::string> chunks;
    for (int i = 0; i < 5; ++i) {
      chunks.push_back(RandomBytes(random() % 900 + 20, random));
    }
    ArchiveWriterOptions options;
    options.codec = ParseCodecSpec(codec_name).value();
    options.block_size_bytes = 4096;
    std::filesystem::remove_all(path_);
    const TestSegment first = ChunkedSegment(chunks, random);
    const TestSegment second = ChunkedSegment(chunks, random);
    std::string dictionary = RandomBytes(200, random);
    for (const TestDocument& document : first) {
      dictionary += document.text.substr(0, 500);
    }
    const auto context = std::make_shared<CodecContext>(
        CodecContext{.dictionary = dictionary, .symbol_table = ""});
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const auto codec,
        MakePayloadCodec(options.codec, context, CodecUse::kEncodeAndDecode));
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto writer,
                               ArchiveWriter::Create(path_, options, context));
    std::string stored;
    std::vector<StoredRun> runs;
    StoreOnce(first, chunks, stored, runs);
    QUIRE_ASSERT_OK(WriteTestSegment(
        first, stored, runs, {4096, 100, 700, 4096}, codec.get(), *writer));
    QUIRE_ASSERT_OK(WriteTestSegment(second, 4096, codec.get(), *writer));
    QUIRE_ASSERT_OK(writer->Commit().status());
    documents_ = first;
    documents_.insert(documents_.end(), second.begin(), second.end());
  }

  void ExpectRemoved(const std::string& id) {
    const auto report = VerifyArchive(
        path_, {}, [](const ArchiveDamage& d) { ADD_FAILURE() << d.status; });
    QUIRE_ASSERT_OK(report.status());
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
    const std::vector<std::string> texts = ReadTexts(*archive);
    ASSERT_EQ(texts.size(), documents_.size());
    for (uint64_t i = 0; i < texts.size(); ++i) {
      const TestDocument& before = documents_[i];
      const Document document = archive->GetDocument({i}).value();
      if (before.id == id) {
        EXPECT_EQ(document.id, "");
        EXPECT_EQ(document.record_type, kWithdrawnRecordType);
        EXPECT_EQ(document.media_type, "");
        EXPECT_EQ(document.capture_time_ms, std::nullopt);
        ASSERT_EQ(texts[i], std::string(before.text.size(), '\0'));
      } else {
        EXPECT_EQ(document.id, before.id);
        EXPECT_EQ(document.record_type, before.record_type);
        EXPECT_EQ(document.media_type, before.media_type);
        EXPECT_EQ(document.capture_time_ms, before.capture_time_ms);
        ASSERT_EQ(texts[i], before.text);
      }
    }
  }

  std::string AnyId(std::mt19937_64& random) const {
    return documents_[random() % documents_.size()].id;
  }

  absl::StatusOr<RedactReport> Redact(const std::string& id,
                                      const RedactOptions& options = {}) const {
    return RedactArchive(path_, std::vector<std::string>{id}, options);
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_ / "a";
  TestSegment documents_;
};

TEST_F(RedactLayoutTest, RemovesDocumentsThatShareStoredText) {
  uint64_t shared_bytes = 0;
  for (const char* const codec : {"copy", "rlz", "auto", "lz4", "rlz-zz"}) {
    for (uint64_t seed = 0; seed < 8; ++seed) {
      SCOPED_TRACE(absl::StrCat(codec, " seed ", seed));
      std::mt19937_64 random(seed);
      ASSERT_NO_FATAL_FAILURE(Write(codec, random));
      const std::string id = AnyId(random);
      QUIRE_ASSERT_OK_AND_ASSIGN(const RedactReport report,
                                 Redact(id, {.prove = true}));
      ASSERT_NO_FATAL_FAILURE(ExpectRemoved(id));
      EXPECT_THAT(report.proof->failures, IsEmpty());
      EXPECT_THAT(report.after->history, IsEmpty());
      ASSERT_FALSE(report.after->redacted_states.empty());
      EXPECT_EQ(report.after->redacted_states.back().uuid, report.before.uuid);
      shared_bytes += report.shared_size_bytes;
    }
  }
  EXPECT_GT(shared_bytes, 1000u);
}

// The segment without such a document stays as it is, with its number.
TEST_F(RedactLayoutTest, RewritesOnlySegmentsThatChange) {
  std::mt19937_64 random(1);
  ASSERT_NO_FATAL_FAILURE(Write("zstd", random));
  ArchiveWriterOptions options;
  options.codec = ParseCodecSpec("zstd").value();
  options.replace = true;
  QUIRE_ASSERT_OK(
      WriteTestArchive(path_, options,
                       {{{.id = "a", .text = RandomBytes(9000, random)}},
                        {{.id = "b", .text = RandomBytes(9000, random)}},
                        {{.id = "c", .text = RandomBytes(9000, random)}}})
          .status());
  const TestFiles before = ReadTestFiles(path_);
  QUIRE_ASSERT_OK_AND_ASSIGN(const RedactReport report, Redact("b"));
  EXPECT_EQ(report.segment_count, 1u);
  EXPECT_EQ(report.changed_block_count, 1u);
  const TestFiles after = ReadTestFiles(path_);
  EXPECT_EQ(after.at("segment-00000000"), before.at("segment-00000000"));
  EXPECT_EQ(after.at("segment-00000002"), before.at("segment-00000002"));
  EXPECT_TRUE(after.contains("segment-00000003"));
  EXPECT_FALSE(after.contains("segment-00000001"));
}

// A reader that has the archive open goes on with the old files.
TEST_F(RedactLayoutTest, OpenReadersKeepTheOldArchive) {
  std::mt19937_64 random(2);
  ASSERT_NO_FATAL_FAILURE(Write("rlz", random));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto before, Archive::Open(path_));
  const std::vector<std::string> texts = ReadTexts(*before);
  const std::string id = AnyId(random);
  QUIRE_ASSERT_OK(Redact(id).status());
  EXPECT_EQ(ReadTexts(*before), texts);
  ASSERT_NO_FATAL_FAILURE(ExpectRemoved(id));
}

// Items are those of quire ls.
TEST_F(RedactLayoutTest, RemovesOneOfSeveralDocumentsOfAnId) {
  ArchiveWriterOptions options;
  options.codec = ParseCodecSpec("copy").value();
  options.block_size_bytes = 4096;
  options.replace = true;
  const auto removed = [&](const std::vector<std::string>& items,
                           RedactOptions redact = {}) {
    const TestSegment segment = {{.id = "a", .text = "0"},
                                 {.id = "b", .text = "1"},
                                 {.id = "a", .text = "2"},
                                 {.id = "a\t@1", .text = "3"}};
    const TestSegment more = {{.id = "a", .text = "4"},
                              {.id = "", .text = "5"}};
    EXPECT_THAT(WriteTestArchive(path_, options, {segment, more}), IsOk());
    if (redact.archive_uuid == "of the archive") {
      redact.archive_uuid = (*Archive::Open(path_))->info().uuid;
    }
    const auto report = RedactArchive(path_, items, redact);
    if (!report.ok()) {
      return std::string(report.status().message());
    }
    EXPECT_TRUE(report->proof->failures.empty());
    QUIRE_EXPECT_OK(report->old_files);
    std::string left;
    const auto archive = *Archive::Open(path_);
    for (const std::string& text : ReadTexts(*archive)) {
      left += text[0] == '\0' ? "-" : text;
    }
    // A repeated call removes nothing else.
    EXPECT_FALSE(RedactArchive(path_, items, redact).ok());
    return left;
  };
  const RedactOptions prove = {.prove = true};
  EXPECT_EQ(removed({"a"}, prove), "-1-3-5");
  EXPECT_EQ(removed({"a\t@0", "a\t@1", "a\t@2"}, prove), "-1-3-5");
  EXPECT_EQ(removed({"a\t@2", "a\t@2"}, prove), "0123-5");
  EXPECT_EQ(removed({"a\t@1\t@0"}, prove), "012-45");
  // Nothing else has the id that is not there a second time.
  EXPECT_EQ(removed({"a\t@0", "b"}, prove), "--2345");
  EXPECT_EQ(removed({"\t@0", "b"}, prove), "0-234-");
  EXPECT_THAT(removed({"a\t@0"}),
              HasSubstr("\"a\\x09@0\" would name another document afterwards"));
  EXPECT_EQ(
      removed({"a\t@0"}, {.archive_uuid = "of the archive", .prove = true}),
      "-12345");
  EXPECT_THAT(removed({"a"}, {.archive_uuid = "another"}),
              HasSubstr("expected uuid \"another\", found "));
  EXPECT_THAT(removed({"a\t@3", "c"}),
              HasSubstr("no document has the id \"a\" as number 3 (there are "
                        "3, from 0) or \"c\"; nothing was changed"));
}

TEST_F(RedactLayoutTest, RefusesAndChangesNothing) {
  std::mt19937_64 random(3);
  ASSERT_NO_FATAL_FAILURE(Write("rlz", random));
  const TestFiles files = ReadTestFiles(path_);
  const std::vector<std::string> ids = {documents_[0].id, "not there", "nor"};
  const auto missing = RedactArchive(path_, ids, {});
  EXPECT_THAT(missing, FailsWith(absl::StatusCode::kNotFound,
                                 HasSubstr("\"not there\" or \"nor\"")));
  EXPECT_THAT(RedactArchive(path_, {}, {}),
              HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(RedactArchive(directory_ / "none", ids, {}),
              HasCode(absl::StatusCode::kNotFound));
  const std::atomic<bool> cancel = true;
  EXPECT_THAT(Redact(ids[0], {.cancel = &cancel}),
              HasCode(absl::StatusCode::kCancelled));
  {
    QUIRE_ASSERT_OK_AND_ASSIGN(const ArchiveChange change,
                               ArchiveChange::Begin(path_));
    EXPECT_THAT(Redact(ids[0]), FailsWith(absl::StatusCode::kFailedPrecondition,
                                          HasSubstr("another")));
    // Needs no lock.
    QUIRE_EXPECT_OK(Redact(ids[0], {.dry_run = true}).status());
  }
  EXPECT_EQ(ReadTestFiles(path_), files);
  EXPECT_FALSE(std::filesystem::exists(path_ + ".partial"));
}

TEST_F(RedactLayoutTest, RefusesDamageOrRemoves) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    ASSERT_NO_FATAL_FAILURE(Write(seed % 2 == 0 ? "rlz" : "auto", random));
    TestFiles files = ReadTestFiles(path_);
    auto victim = files.begin();
    std::advance(victim, random() % files.size());
    DamageFile(std::string(victim->first), random, files);
    WriteTestFiles(path_, files);
    const std::string id = AnyId(random);
    const auto report = Redact(id);
    if (report.ok()) {
      // Bytes past the end, for example, do not matter.
      ASSERT_NO_FATAL_FAILURE(ExpectRemoved(id));
    } else {
      EXPECT_THAT(report.status().message(), HasSubstr(path_));
      EXPECT_EQ(ReadTestFiles(path_), files);
    }
  }
}

// Each archive has one fault that a removal must not leave.
TEST_F(RedactLayoutTest, AProofNamesWhatIsLeft) {
  std::mt19937_64 random(5);
  const std::string secret = RandomBytes(3000, random);
  const std::string other = RandomBytes(5000, random);
  const std::string part = secret.substr(1000, 100);
  const TestDocument removed_document{
      .id = "", .text = std::string(3000, '\0'), .record_type = "withdrawn"};
  const TestDocument kept{.id = "b", .text = other};
  ArchiveWriterOptions options;
  options.codec = ParseCodecSpec("rlz").value();
  options.block_size_bytes = 4096;
  options.replace = true;
  const auto write = [&](const TestDocument& first, const TestDocument& second,
                         const std::string& in_dictionary) {
    const auto context = std::make_shared<CodecContext>(
        CodecContext{.dictionary = other.substr(0, 300) + in_dictionary,
                     .symbol_table = ""});
    EXPECT_THAT(WriteTestArchive(path_, options, {{first, second}}, context),
                IsOk());
    return Archive::Open(path_).value();
  };
  const auto before =
      write({.id = "a", .text = secret, .media_type = "x"}, kept, part);
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const RemovedDocuments removed,
      RemovedDocuments::Find(*before, std::vector<std::string>{"a"}));
  const auto prove = [&](const TestDocument& first, const TestDocument& second,
                         const std::string& in_dictionary) {
    const auto after = write(first, second, in_dictionary);
    return ProveRedaction(*before, *after, removed, 500,
                          [](uint64_t) { return absl::OkStatus(); })
        .value();
  };
  const std::string zeros(part.size(), '\0');
  const RedactionProof good = prove(removed_document, kept, zeros);
  EXPECT_THAT(good.failures, IsEmpty());
  EXPECT_EQ(good.window_count, secret.size() - 31);
  EXPECT_EQ(good.id_count, 1u);

  TestDocument faulty = removed_document;
  faulty.id = "a";
  EXPECT_THAT(prove(faulty, kept, zeros).failures,
              ElementsAre(HasSubstr("document 0 still has a description")));
  faulty = removed_document;
  faulty.text[17] = 'x';
  EXPECT_THAT(prove(faulty, kept, zeros).failures,
              ElementsAre(HasSubstr("1 bytes that are not zero")));
  EXPECT_THAT(prove(removed_document, kept, part).failures,
              ElementsAre(HasSubstr("the dictionary has text")));
  faulty = kept;
  faulty.id = part.substr(0, 32);
  EXPECT_THAT(prove(removed_document, faulty, zeros).failures,
              ElementsAre(HasSubstr("the index of ids and types has")));
  faulty = kept;
  faulty.text.replace(4090, 32, part.substr(0, 32));
  EXPECT_THAT(prove(removed_document, faulty, zeros).failures,
              ElementsAre(HasSubstr("segment-00000000 has text")));
}

// The message of a failed proof also says that the text is still there.
TEST_F(RedactLayoutTest, AFailedProofDoesNotHideOldFiles) {
  std::mt19937_64 random(6);
  ASSERT_NO_FATAL_FAILURE(Write("copy", random));
  // Cannot be removed like a file.
  const std::string left = path_ + "/segment-00000099";
  const auto on_progress = [&](const RedactProgress& progress) {
    if (progress.phase == RedactPhase::kRewrite) {
      std::filesystem::create_directory(left);
    }
    if (progress.phase == RedactPhase::kProve) {
      for (const auto& entry : std::filesystem::directory_iterator(path_)) {
        if (entry.is_regular_file()) {
          std::filesystem::resize_file(entry.path(), 100);
        }
      }
    }
  };
  const auto report =
      Redact(AnyId(random), {.prove = true, .on_progress = on_progress});
  EXPECT_THAT(report, FailsWith(absl::StatusCode::kDataLoss,
                                HasSubstr("this is not proved")));
  EXPECT_THAT(report.status().message(), HasSubstr(left));
}

TEST_F(RedactLayoutTest, AKillAtAnySystemCallLeavesTheOldOrTheNewArchive) {
  std::mt19937_64 random(4);
  ASSERT_NO_FATAL_FAILURE(Write("rlz", random));
  const std::string id = documents_[0].id;
  const TestFiles files = ReadTestFiles(path_);
  int old_count = 0;
  int new_count = 0;
  for (int call = 0;; ++call) {
    SCOPED_TRACE(call);
    WriteTestFiles(path_, files);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const ScopedSystemCallHooks hooks(KillBefore(call));
      _exit(Redact(id).ok() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    const bool is_killed = WIFSIGNALED(status);
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
    const bool is_old = archive->FindDocuments(id).ok();
    ASSERT_NO_FATAL_FAILURE(ExpectRemoved(is_old ? "no id" : id));
    if (!is_killed) {
      ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
      EXPECT_FALSE(is_old);
      break;
    }
    (is_old ? old_count : new_count) += 1;
    // Repeating it removes what the killed one left.
    const auto repeated = Redact(id);
    EXPECT_EQ(repeated.ok(), is_old) << repeated.status();
    ASSERT_NO_FATAL_FAILURE(ExpectRemoved(id));
    for (const auto& [name, bytes] : ReadTestFiles(path_)) {
      EXPECT_TRUE(name == "MANIFEST" || !files.contains(name)) << name;
    }
    EXPECT_FALSE(std::filesystem::exists(path_ + ".partial"));
  }
  EXPECT_GT(old_count, 10);
  EXPECT_GT(new_count, 1);
}

}  // namespace
}  // namespace quire

// SPDX-License-Identifier: GPL-3.0-or-later
//
// Tests the writer's errors, and that a path holds a complete archive or
// nothing, whenever the writer is killed and whatever error the file system
// returns.
#include "server/archive/archive_writer.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "codecs/base/checksum.h"
#include "server/archive/archive.h"
#include "server/archive/files/file_io.h"
#include "server/archive/format/archive_format.h"
#include "testing/archive/archive_testing.h"
#include "testing/base/no_more_threads.h"
#include "testing/base/status_matchers.h"
#include "testing/base/test_level.h"

namespace quire {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint32_t kWrittenBlockSize = 4096;

ArchiveWriterOptions CopyOptions(bool replace = false) {
  ArchiveWriterOptions options;
  options.codec = ParseCodecSpec("copy").value();
  options.block_size_bytes = kWrittenBlockSize;
  options.replace = replace;
  return options;
}

// An archive of two segments whose documents all consist of `letter`.
std::vector<TestSegment> Segments(char letter) {
  TestSegment segment;
  for (int i = 0; i < 20; ++i) {
    segment.push_back({.id = absl::StrCat("document ", i),
                       .text = std::string(7000, letter)});
  }
  return {segment, segment};
}

void ExpectWhole(const std::string& path, char letter) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path));
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const std::string text,
      ReadTestRange(*archive, {{0}, archive->info().size_bytes}));
  EXPECT_EQ(text, std::string(size_t{2} * 20 * 7000, letter));
}

TEST(ArchiveWriterTest, RefusesWhatCannotBe) {
  const TemporaryDirectory directory;
  const auto create = [&](const std::string& path) {
    return ArchiveWriter::Create(path, CopyOptions(), nullptr);
  };
  EXPECT_THAT(create(directory / "none/a"),
              FailsWith(absl::StatusCode::kNotFound, HasSubstr("none")));
  for (const std::string& path :
       {std::string(), std::string("/"), directory.path() + "/.",
        directory.path() + "/..", std::string("..")}) {
    EXPECT_THAT(create(path), HasCode(absl::StatusCode::kInvalidArgument))
        << path;
  }
  WriteTestFile(directory / "file", "x");
  EXPECT_THAT(create(directory / "file"),
              FailsWith(absl::StatusCode::kAlreadyExists,
                        HasSubstr("is no directory")));
  EXPECT_THAT(create(directory / "file/a"), Not(IsOk()));
  std::filesystem::create_directory(directory / "directory");
  EXPECT_THAT(
      create(directory / "directory"),
      FailsWith(absl::StatusCode::kAlreadyExists, HasSubstr("not an archive")));
  ArchiveWriterOptions options = CopyOptions();
  for (const uint32_t block_size_bytes : {0u, 2048u, 5000u, 2u << 20}) {
    options.block_size_bytes = block_size_bytes;
    EXPECT_THAT(ArchiveWriter::Create(directory / "a", options, nullptr),
                HasCode(absl::StatusCode::kInvalidArgument));
  }
  EXPECT_FALSE(std::filesystem::exists(directory / "a.partial"));
}

// Files are written in pieces of a mebibyte.
TEST(ArchiveWriterTest, WritesFilesLargerThanItsBuffer) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a";
  std::string text;
  for (int i = 0; text.size() < (3 << 20); ++i) {
    absl::StrAppend(&text, i, " ");
  }
  const TestSegment segment = {{.id = "a", .text = text}};
  QUIRE_ASSERT_OK(WriteTestArchive(path, CopyOptions(), {segment}));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path));
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::string back,
                             ReadTestRange(*archive, {{0}, text.size()}));
  EXPECT_TRUE(back == text);
}

TEST(ArchiveWriterTest, TakesATrailingSlash) {
  const TemporaryDirectory directory;
  QUIRE_ASSERT_OK(
      WriteTestArchive(directory / "a" + "//", CopyOptions(), Segments('x')));
  ExpectWhole(directory / "a", 'x');
}

TEST(ArchiveWriterTest, WritesItsDictionaryWithoutAThreadToSpare) {
  const TemporaryDirectory directory;
  ArchiveWriterOptions options = CopyOptions();
  options.codec = ParseCodecSpec("rlz").value();
  const auto context =
      std::make_shared<CodecContext>(CodecContext{std::string(5000, 'x'), ""});
  const NoMoreThreads none;
  QUIRE_ASSERT_OK(
      WriteTestArchive(directory / "a", options, Segments('x'), context));
  ExpectWhole(directory / "a", 'x');
}

TEST(ArchiveWriterTest, CompressesItsDictionaryForItsCodecAndLevel) {
  std::mt19937_64 random(1);  // NOLINT(cert-msc32-c,cert-msc51-cpp)
  std::string text;
  while (text.size() < 1'200'000) {
    absl::StrAppend(&text, random() % 5000, " ");
  }
  const auto context =
      std::make_shared<CodecContext>(CodecContext{std::move(text), ""});
  const std::string name =
      DictionaryFileName(Checksum64(AsBytes(context->dictionary)));

  const struct {
    const char* codec;
    CompressionMethod expected;
  } cases[] = {
      {"rlz:1", CompressionMethod::kZstd},
      {"rlz:2", CompressionMethod::kZstd},
      {"rlz:3", CompressionMethod::kXz},
      {"auto:1", CompressionMethod::kZstd},
      {"auto:2", CompressionMethod::kZstd},
      {"rlz-zz", CompressionMethod::kXz},
  };

  for (const auto& [codec, expected] : cases) {
    SCOPED_TRACE(codec);
    const TemporaryDirectory directory;
    ArchiveWriterOptions options = CopyOptions();
    options.codec = ParseCodecSpec(codec).value();
    QUIRE_ASSERT_OK(
        WriteTestArchive(directory / "a", options, Segments('x'), context));
    const std::string path = absl::StrCat(directory / "a", "/", name);
    QUIRE_ASSERT_OK_AND_ASSIGN(const ReadableFile file,
                               OpenReadableFile(AT_FDCWD, path, path));
    std::array<uint8_t, kDictionaryHeaderSizeBytes> header;
    QUIRE_ASSERT_OK(ReadExactly(file.fd.get(), 0, header, path));
    EXPECT_EQ(ParseDictionaryHeader(header)->method, expected);
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive,
                               Archive::Open(directory / "a"));
    EXPECT_TRUE(AsText(archive->dictionary()) == context->dictionary);
  }
}

TEST(ArchiveWriterTest, RefusesBlocksAndDocumentsThatDoNotFit) {
  const TemporaryDirectory directory;
  const std::vector<uint8_t> block(kWrittenBlockSize, 'x');
  const auto create = [&] {
    return ArchiveWriter::Create(directory / "a", CopyOptions(), nullptr)
        .value();
  };
  {
    const auto writer = create();
    EXPECT_THAT(writer->AppendBlock(ByteView(block).first(0), {}),
                HasCode(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(writer->Commit(), HasCode(absl::StatusCode::kInvalidArgument));
  }
  {
    const auto writer = create();
    QUIRE_EXPECT_OK(writer->AppendBlock(block, {}));
    QUIRE_EXPECT_OK(writer->AddDocument({.id = "a", .size_bytes = 4095}));
    EXPECT_THAT(writer->FinishSegment(),
                FailsWith(absl::StatusCode::kInvalidArgument,
                          HasSubstr("documents of 4095")));
    EXPECT_THAT(writer->Commit(), HasCode(absl::StatusCode::kInvalidArgument));
  }
  {
    const auto writer = create();
    const std::string id(65536, 'i');
    EXPECT_THAT(
        writer->AddDocument({.id = id}),
        FailsWith(absl::StatusCode::kInvalidArgument, HasSubstr("got 65536")));
  }
  EXPECT_FALSE(std::filesystem::exists(directory / "a"));
  EXPECT_FALSE(std::filesystem::exists(directory / "a.partial"));
}

TEST(ArchiveWriterTest, KeepsOthersOut) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a";
  QUIRE_ASSERT_OK_AND_ASSIGN(
      auto first, ArchiveWriter::Create(path, CopyOptions(), nullptr));
  EXPECT_THAT(ArchiveWriter::Create(path, CopyOptions(), nullptr),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        HasSubstr("another writer")));
  first.reset();
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
  QUIRE_EXPECT_OK(WriteTestArchive(path, CopyOptions(), Segments('x')));
  EXPECT_THAT(ArchiveWriter::Create(path, CopyOptions(), nullptr),
              HasCode(absl::StatusCode::kAlreadyExists));
}

TEST(ArchiveWriterTest, DoesNotOverwriteWhatCameMeanwhile) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a";
  QUIRE_ASSERT_OK_AND_ASSIGN(
      auto writer, ArchiveWriter::Create(path, CopyOptions(), nullptr));
  std::filesystem::create_directory(path);
  WriteTestFile(path + "/precious", "x");
  EXPECT_THAT(writer->Commit(), HasCode(absl::StatusCode::kAlreadyExists));
  writer.reset();
  EXPECT_EQ(ReadTestFile(path + "/precious"), "x");
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
}

TEST(ArchiveWriterTest, Replaces) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a";
  QUIRE_ASSERT_OK(WriteTestArchive(path, CopyOptions(true), Segments('x')));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto old, Archive::Open(path));
  QUIRE_ASSERT_OK(WriteTestArchive(path, CopyOptions(true), Segments('y')));
  ExpectWhole(path, 'y');
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
  // A reader of the old archive continues.
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::string text,
                             ReadTestRange(*old, {{0}, 100}));
  EXPECT_EQ(text, std::string(100, 'x'));
  WriteTestFile(path + "/notes.txt", "mine");
  EXPECT_THAT(
      ArchiveWriter::Create(path, CopyOptions(true), nullptr),
      FailsWith(absl::StatusCode::kAlreadyExists, HasSubstr("notes.txt")));
}

TEST(ArchiveWriterTest, ClearsLeftoversOfItsOwnKindOnly) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a";
  const std::string partial = path + ".partial";
  std::filesystem::create_directory(partial);
  for (const char* file : {"PARTIAL", "MANIFEST", "segment-00000007",
                           "dictionary-0123456789abcdef"}) {
    WriteTestFile(partial + "/" + file, "left over");
  }
  QUIRE_ASSERT_OK(WriteTestArchive(path, CopyOptions(), Segments('x')));
  ExpectWhole(path, 'x');
  EXPECT_FALSE(std::filesystem::exists(path + "/segment-00000007"));
  EXPECT_FALSE(std::filesystem::exists(path + "/PARTIAL"));

  const std::string other = directory / "b";
  std::filesystem::create_directory(other + ".partial");
  // The names of an archive's files have a fixed number of digits.
  for (const std::string name :
       {"thesis.tex", "segment-000000001", "symbols-0123456789abcdef0"}) {
    const std::string file = absl::StrCat(other, ".partial/", name);
    WriteTestFile(file, "precious");
    // With and without the mark.
    for (int i = 0; i < 2; ++i) {
      EXPECT_THAT(ArchiveWriter::Create(other, CopyOptions(), nullptr),
                  FailsWith(absl::StatusCode::kAlreadyExists, HasSubstr(name)));
      EXPECT_EQ(ReadTestFile(file), "precious");
      WriteTestFile(other + ".partial/PARTIAL", "");
    }
    std::filesystem::remove(file);
    std::filesystem::remove(other + ".partial/PARTIAL");
  }
  WriteTestFile(directory / "c.partial", "a file");
  EXPECT_THAT(ArchiveWriter::Create(directory / "c", CopyOptions(), nullptr),
              HasCode(absl::StatusCode::kAlreadyExists));
}

// Anybody may create the directory in a shared parent, and wait for an archive.
TEST(ArchiveWriterTest, RefusesAPartialDirectoryOfAnotherUser) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a";
  const std::string partial = path + ".partial";
  std::filesystem::create_directory(partial);
  std::filesystem::create_directory(partial + "/PARTIAL");
  EXPECT_FALSE(ArchiveWriter::Create(path, CopyOptions(), nullptr).ok());
  std::filesystem::remove(partial + "/PARTIAL");
  std::filesystem::create_directory(directory / "other");
  std::filesystem::remove(partial);
  std::filesystem::create_directory_symlink(directory / "other", partial);
  EXPECT_THAT(ArchiveWriter::Create(path, CopyOptions(), nullptr),
              HasCode(absl::StatusCode::kAlreadyExists));
  std::filesystem::remove(partial);
  if (geteuid() != 0) {
    GTEST_SKIP() << "only root can give a directory to another user";
  }
  std::filesystem::create_directory(partial);
  ASSERT_EQ(chown(partial.c_str(), 12345, 12345), 0);
  // With and without the mark.
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(
        ArchiveWriter::Create(path, CopyOptions(), nullptr),
        FailsWith(absl::StatusCode::kAlreadyExists,
                  HasSubstr("a.partial: belongs to user 12345, and this "
                            "process is of user 0")));
    WriteTestFile(partial + "/PARTIAL", "");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  size_t entry_count = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator(directory.path())) {
    ++entry_count;
  }
  EXPECT_EQ(entry_count, 2u);
}

TEST(ArchiveWriterTest, LeavesAnArchiveAloneThatIsCalledPartial) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a";
  const std::string partial = path + ".partial";
  QUIRE_ASSERT_OK(WriteTestArchive(partial, CopyOptions(), Segments('x')));
  EXPECT_THAT(
      ArchiveWriter::Create(path, CopyOptions(), nullptr),
      FailsWith(
          absl::StatusCode::kAlreadyExists,
          HasSubstr("a.partial: holds \"MANIFEST\" but no file PARTIAL")));
  ExpectWhole(partial, 'x');
  // A replaced archive is not removed either.
  QUIRE_ASSERT_OK(WriteTestArchive(partial, CopyOptions(true), Segments('y')));
  EXPECT_THAT(ArchiveWriter::Create(path, CopyOptions(), nullptr),
              HasCode(absl::StatusCode::kAlreadyExists));
  ExpectWhole(partial, 'y');
}

// Writes archives repeatedly in a child process, which is killed after the
// delay.
void KillAWriter(const std::string& path, char letter, bool replace,
                 useconds_t delay_us) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const char byte = 'r';
    if (write(ready[1], &byte, 1) != 1) {
      _exit(1);
    }
    const int rounds = replace ? 1000000 : 1;
    for (int i = 0; i < rounds; ++i) {
      WriteTestArchive(path, CopyOptions(replace), Segments(letter))
          .status()
          .IgnoreError();
    }
    _exit(0);
  }
  char byte = 0;
  EXPECT_EQ(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  close(ready[1]);
  usleep(delay_us);
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
}

TEST(ArchiveWriterCrashTest, LeavesAWholeArchiveOrNone) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  int absent = 0;
  for (int round = 0; round < 30; ++round) {
    const TemporaryDirectory directory;
    const std::string path = directory / "a";
    KillAWriter(path, 'x', false, static_cast<useconds_t>(random() % 40000));
    if (std::filesystem::exists(path)) {
      ExpectWhole(path, 'x');
    } else {
      ++absent;
      EXPECT_THAT(Archive::Open(path), HasCode(absl::StatusCode::kNotFound));
      // The next writer removes the leftovers.
      QUIRE_ASSERT_OK(WriteTestArchive(path, CopyOptions(), Segments('y')));
      ExpectWhole(path, 'y');
    }
    EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
  }
  RecordProperty("rounds_killed_before_commit", absent);
}

TEST(ArchiveWriterCrashTest, KeepsAWholeArchiveWhileItIsReplaced) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  const TemporaryDirectory directory;
  const std::string path = directory / "a";
  QUIRE_ASSERT_OK(WriteTestArchive(path, CopyOptions(), Segments('x')));
  for (int round = 0; round < 30; ++round) {
    KillAWriter(path, 'x', true, static_cast<useconds_t>(random() % 40000));
    ExpectWhole(path, 'x');
  }
  QUIRE_ASSERT_OK(WriteTestArchive(path, CopyOptions(true), Segments('y')));
  ExpectWhole(path, 'y');
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
}

TEST(ArchiveWriterTest, SurvivesAFullDisk) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a";
  // In a child process, because the limit and the signal affect the whole
  // process.
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    int failed = 0;
    for (const rlim_t limit :
         std::vector<rlim_t>{0, 20, 1000, 100000, 140500}) {
      const rlimit file_size = {limit, RLIM_INFINITY};
      setrlimit(RLIMIT_FSIZE, &file_size);
      const auto result = WriteTestArchive(path, CopyOptions(), Segments('x'));
      const bool named = absl::IsUnavailable(result.status()) &&
                         result.status().message().find("a.partial/") !=
                             absl::string_view::npos &&
                         result.status().message().find("File too large") !=
                             absl::string_view::npos;
      failed += named ? 0 : 1;
      failed += std::filesystem::exists(path) ? 1 : 0;
      failed += std::filesystem::exists(path + ".partial") ? 1 : 0;
    }
    _exit(failed);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  QUIRE_ASSERT_OK(WriteTestArchive(path, CopyOptions(), Segments('x')));
  ExpectWhole(path, 'x');
}

}  // namespace
}  // namespace quire

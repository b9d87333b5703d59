// SPDX-License-Identifier: GPL-3.0-or-later
//
// An archive that is replaced while it is opened or verified is not damaged.
#include <fcntl.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

#include "server/archive/archive.h"
#include "server/archive/archive_verifier.h"
#include "server/archive/archive_writer.h"
#include "server/archive/files/direct_file.h"
#include "server/archive/format/manifest.h"
#include "testing/archive/archive_testing.h"
#include "testing/archive/system_call_hooks.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

class ArchiveReplacementTest : public ::testing::Test {
 protected:
  void SetUp() override { Replace(); }

  // Replaces the archive by one with other contents, each time.
  void Replace() {
    ArchiveWriterOptions options;
    options.codec = ParseCodecSpec("rlz").value();
    options.block_size_bytes = 4096;
    options.replace = true;
    const std::string text =
        absl::StrCat("generation ", generation_++, std::string(5000, '.'));
    const TestSegment segment = {{.id = "a", .text = text}};
    const auto context =
        std::make_shared<CodecContext>(CodecContext{text.substr(0, 100), ""});
    QUIRE_ASSERT_OK(
        WriteTestArchive(path_, options, {segment, segment, segment}, context));
  }

  // Replaces the archive when `name` is about to be opened for the first time.
  SystemCallHooks ReplaceBefore(const std::string& name) {
    return {.before_openat = [this, name,
                              done = false](const std::string& opened) mutable {
      if (opened == name && !done) {
        done = true;
        Replace();
      }
    }};
  }

  void ExpectOpensNewest(const ArchiveOpenOptions& options = {}) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive,
                               Archive::Open(path_, options));
    QUIRE_ASSERT_OK_AND_ASSIGN(const std::string text,
                               ReadTestRange(*archive, {{0}, 12}));
    EXPECT_EQ(text, absl::StrCat("generation ", generation_ - 1));
  }

  void ExpectVerifies(
      const std::function<void(const VerifyProgress&)>& on_progress = {}) {
    VerifyOptions options;
    options.on_progress = on_progress;
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const VerifyReport report,
        VerifyArchive(path_, options, [](const ArchiveDamage& damage) {
          ADD_FAILURE() << damage.status;
        }));
    EXPECT_EQ(report.good_size_bytes, report.info.size_bytes);
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_ / "a";
  int generation_ = 0;
};

TEST_F(ArchiveReplacementTest, IsOpenedAnewWhereFilesAreGone) {
  for (const char* name :
       {"MANIFEST", "segment-00000000", "segment-00000002"}) {
    SCOPED_TRACE(name);
    {
      const ScopedSystemCallHooks hooks(ReplaceBefore(name));
      ExpectOpensNewest();
    }
    {
      const ScopedSystemCallHooks hooks(ReplaceBefore(name));
      ExpectOpensNewest({.direct_io = DirectIo::kAuto});
    }
    {
      const ScopedSystemCallHooks hooks(ReplaceBefore(name));
      ExpectVerifies();
    }
  }
  const ScopedSystemCallHooks hooks(ReplaceBefore("MANIFEST"));
  QUIRE_EXPECT_OK(Archive::ReadOutline(path_));
}

TEST_F(ArchiveReplacementTest, IsVerifiedToTheEndAsItWas) {
  bool done = false;
  ExpectVerifies([&](const VerifyProgress& progress) {
    if (!done && progress.blocks_done > 0) {
      done = true;
      Replace();
    }
  });
  EXPECT_TRUE(done);
}

TEST_F(ArchiveReplacementTest, ReadsNoFileDirectlyThatReplacedASegment) {
  const std::string segment = path_ + "/segment-00000001";
  if (!OpenDirect(AT_FDCWD, segment, "the segment").ok()) {
    GTEST_SKIP() << "the file system for temporary files has no direct reads";
  }
  // The first descriptor of a segment reads through the page cache.
  const ScopedSystemCallHooks hooks(
      {.before_openat = [&, count = 0](const std::string& name) mutable {
        if (name == "segment-00000001" && ++count == 2) {
          std::filesystem::copy_file(segment, directory_ / "copy");
          std::filesystem::rename(directory_ / "copy", segment);
        }
      }});
  EXPECT_THAT(Archive::Open(path_, {.direct_io = DirectIo::kAuto}),
              FailsWith(absl::StatusCode::kDataLoss,
                        HasSubstr("was replaced while it was opened")));
}

// As after a merge: MANIFEST is a new file in the same directory.
TEST_F(ArchiveReplacementTest, ReadsTheNewManifestWhereASegmentIsGone) {
  int manifest_count = 0;
  const std::string segment = path_ + "/segment-00000002";
  const ScopedSystemCallHooks hooks(
      {.before_openat = [&](const std::string& name) {
        manifest_count += name == "MANIFEST" ? 1 : 0;
        if (name == "segment-00000002" && std::filesystem::remove(segment)) {
          const std::string file = ReadTestFile(path_ + "/MANIFEST");
          auto manifest = ParseManifest(AsBytes(file));
          QUIRE_ASSERT_OK(manifest);
          manifest->segments.pop_back();
          WriteTestFile(path_ + "/new", EncodeManifest(*manifest));
          std::filesystem::rename(path_ + "/new", path_ + "/MANIFEST");
        }
      }});
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive, Archive::Open(path_));
  EXPECT_EQ(archive->info().segment_count, 2u);
  EXPECT_EQ(manifest_count, 2);
  // Without a new manifest the segment is lost.
  std::filesystem::remove(path_ + "/segment-00000001");
  manifest_count = 0;
  EXPECT_THAT(Archive::Open(path_),
              FailsWith(absl::StatusCode::kDataLoss, HasSubstr("is missing")));
  EXPECT_EQ(manifest_count, 1);
}

TEST_F(ArchiveReplacementTest, IsGivenUpWhenItNeverStands) {
  // Two archives, each without a file, are exchanged continually.
  const std::string other = directory_ / "b";
  std::filesystem::remove(path_ + "/segment-00000001");
  std::filesystem::copy(path_, other);
  const ScopedSystemCallHooks hooks(
      {.before_openat = [&](const std::string& name) {
        if (name == "MANIFEST") {
          EXPECT_EQ(renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, other.c_str(),
                              RENAME_EXCHANGE),
                    0);
        }
      }});
  EXPECT_THAT(Archive::Open(path_),
              FailsWith(absl::StatusCode::kAborted,
                        HasSubstr("was replaced 100 times")));
  EXPECT_THAT(VerifyArchive(path_, {}, [](const ArchiveDamage&) {}),
              HasCode(absl::StatusCode::kAborted));
}

TEST_F(ArchiveReplacementTest, NeverLooksDamagedWhileItIsReplacedAllTheTime) {
  constexpr int kReplacements = 20;
  std::atomic<bool> done = false;
  const auto until_done = [&done](const std::function<void()>& read) {
    return std::jthread([&done, read] {
      do {
        read();
      } while (!done);
    });
  };
  std::vector<std::jthread> readers;
  readers.push_back(until_done([&] { QUIRE_EXPECT_OK(Archive::Open(path_)); }));
  readers.push_back(
      until_done([&] { QUIRE_EXPECT_OK(Archive::ReadOutline(path_)); }));
  readers.push_back(until_done([&] { ExpectVerifies(); }));
  for (int i = 0; i < kReplacements; ++i) {
    Replace();
  }
  done = true;
}

}  // namespace
}  // namespace quire

// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/recompress.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"
#include "codecs/base/endian.h"
#include "server/archive/files/build_journal.h"
#include "server/archive/format/archive_format.h"
#include "server/ingest/append.h"
#include "server/ingest/sources/archive_source.h"
#include "server/ingest/testing/build_testing.h"
#include "server/ingest/testing/memory_source.h"
#include "testing/base/sanitized.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Files = std::map<std::string, std::string>;

std::string DocumentsAsWarc() {
  std::string warc;
  uint64_t i = 0;
  for (const size_t size :
       std::vector<size_t>{0, 1, 5000, 4096, 0, 30000, 8192, 13, 9000}) {
    absl::StrAppend(
        &warc, MakeWarcRecord(
                   {absl::StrCat("WARC-Target-URI: http://u/", i % 7),
                    "WARC-Type: response",
                    absl::StrCat("WARC-Date: 2020-01-0", 1 + i, "T00:00:00Z"),
                    "Content-Type: text/html"},
                   MakeTestText(size, i)));
    ++i;
  }
  return warc;
}

BuildOptions OptionsOf(absl::string_view codec) {
  BuildOptions options = SmallBuildOptions(codec, 20000);
  options.threads = 1;
  return options;
}

class RecompressTest : public ::testing::Test {
 protected:
  RecompressTest() : warc_(directory_.Write("in.warc", DocumentsAsWarc())) {}

  std::string Build(const std::string& name, const BuildOptions& options) {
    std::vector<std::unique_ptr<Source>> sources;
    auto source = OpenSource(warc_, {.spool_directory = directory_.path()});
    EXPECT_TRUE(source.ok()) << source.status();
    sources.push_back(*std::move(source));
    const std::string path = directory_ / name;
    const auto summary = BuildArchive(path, sources, options);
    EXPECT_TRUE(summary.ok()) << summary.status();
    return path;
  }

  absl::StatusOr<BuildSummary> Recompress(const std::string& from,
                                          const std::string& to,
                                          const BuildOptions& options) {
    const auto archive = Archive::Open(from);
    if (!archive.ok()) {
      return archive.status();
    }
    return RecompressArchive(to, *archive, options);
  }

  static void Flip(const std::string& file, size_t offset) {
    std::string contents = ReadTestFile(file);
    contents[offset] = static_cast<char>(contents[offset] ^ 1);
    std::ofstream(file, std::ios::binary | std::ios::trunc) << contents;
  }

  // Leaves OUT.partial like a run that is stopped at its end; returns the
  // result of a complete run.
  Files StartAndStop(const std::string& from, const std::string& to,
                     BuildOptions options) {
    const std::string reference = directory_ / "reference";
    EXPECT_TRUE(Recompress(from, reference, options).ok());
    Files files = FilesOf(reference);
    fs::remove_all(reference);
    std::atomic<bool> cancel = false;
    options.cancel = &cancel;
    options.on_progress = [&cancel](const BuildProgress& progress) {
      cancel = progress.phase == BuildPhase::kFinish;
    };
    EXPECT_EQ(Recompress(from, to, options).status().code(),
              absl::StatusCode::kCancelled);
    EXPECT_FALSE(fs::exists(to));
    EXPECT_TRUE(fs::exists(to + ".partial/JOURNAL"));
    return files;
  }

  const TemporaryDirectory directory_;
  const std::string warc_;
};

TEST_F(RecompressTest, MakesOfEveryCodecWhatBuildMakes) {
  std::map<std::string, Files> built;
  for (const CodecInfo& codec : AllCodecs()) {
    const std::string name(codec.name);
    built[name] = FilesOf(Build(name, OptionsOf(name)));
  }
  // Each one from each other, with steps that reach all.
  const auto codecs = AllCodecs();
  for (size_t step = 1; step < codecs.size(); step += 9) {
    for (size_t i = 0; i < codecs.size(); ++i) {
      const std::string from(codecs[i].name);
      const std::string to(codecs[(i + step) % codecs.size()].name);
      SCOPED_TRACE(absl::StrCat(from, " to ", to));
      const std::string out = directory_ / "out";
      QUIRE_ASSERT_OK(
          Recompress(directory_ / from, out, OptionsOf(to)).status());
      EXPECT_EQ(FilesOf(out), built[to]);
      fs::remove_all(out);
    }
  }
}

// The archive's own table is of the documents before an append, or of text with
// its members as they are.
TEST_F(RecompressTest, TrainsTheSymbolTableOfABuild) {
  const IdsAndContents documents = {
      {"a", MakeTestText(30000, 1)},
      {"b", std::string(30000, '=') + Gzip(MakeTestText(30000, 2))}};
  const std::string appended = directory_ / "appended";
  QUIRE_ASSERT_OK(
      BuildArchive(appended, OneSource({documents[0]}), OptionsOf("zstd"))
          .status());
  QUIRE_ASSERT_OK(AppendToArchive(appended, OneSource({documents[1]}),
                                  ExistingMode::kAdd, OptionsOf("zstd"))
                      .status());
  const std::string whole = directory_ / "whole";
  QUIRE_ASSERT_OK(
      BuildArchive(whole, OneSource(documents), OptionsOf("zstd")).status());
  BuildOptions inflating = OptionsOf("fsst");
  inflating.inflate = true;
  for (const auto& [from, options] :
       {std::pair(appended, OptionsOf("lz4")), std::pair(whole, inflating)}) {
    SCOPED_TRACE(from);
    const std::string built = directory_ / "built";
    QUIRE_ASSERT_OK(
        BuildArchive(built, OneSource(documents), options).status());
    const std::string out = directory_ / "out";
    QUIRE_ASSERT_OK(Recompress(from, out, options).status());
    EXPECT_EQ(FilesOf(out), FilesOf(built));
    fs::remove_all(built);
    fs::remove_all(out);
  }
}

TEST_F(RecompressTest, BlockSegmentAndPartitionSizesMayChange) {
  const std::string from = Build("from", OptionsOf("zstd"));
  BuildOptions options = OptionsOf("zstd/parts");
  options.archive.block_size_bytes = 16384;
  options.archive.codec.partition_size_bytes = 8192;
  options.segment_size_bytes = 1 << 20;
  options.symbol_table = false;
  const std::string out = directory_ / "out";
  QUIRE_ASSERT_OK(Recompress(from, out, options).status());
  EXPECT_EQ(FilesOf(out), FilesOf(Build("to", options)));
}

TEST_F(RecompressTest, ReadsAnArchiveWithALayoutAndMakesOne) {
  BuildOptions reordered = OptionsOf("zstd");
  reordered.reorder = ReorderMode::kDuplicates;
  const std::string from = Build("from", reordered);
  const std::string plain = directory_ / "plain";
  QUIRE_ASSERT_OK(Recompress(from, plain, OptionsOf("lz4")).status());
  EXPECT_EQ(FilesOf(plain), FilesOf(Build("lz4", OptionsOf("lz4"))));
  const std::string again = directory_ / "again";
  QUIRE_ASSERT_OK(Recompress(plain, again, reordered).status());
  EXPECT_EQ(FilesOf(again), FilesOf(from));
}

// A part of a block is read again after a shorter block was read whole.
TEST_F(RecompressTest, ReadsAPartOfABlockAgainAfterAShorterBlock) {
  std::string warc = MakeWarcRecord({"WARC-Target-URI: http://u/"}, "first");
  for (int i = 0; i < 5; ++i) {
    absl::StrAppend(&warc, MakeWarcRecord({"WARC-Target-URI: http://u/"},
                                          MakeTestText(20000, 3)));
  }
  directory_.Write("in.warc", warc);
  BuildOptions reordered = OptionsOf("zstd");
  reordered.segment_size_bytes = 1 << 20;
  reordered.reorder = ReorderMode::kDuplicates;
  const std::string from = Build("from", reordered);
  const std::string plain = directory_ / "plain";
  QUIRE_ASSERT_OK(Recompress(from, plain, OptionsOf("lz4")).status());
  EXPECT_EQ(FilesOf(plain), FilesOf(Build("lz4", OptionsOf("lz4"))));
}

TEST_F(RecompressTest, CopiesBlocksThatComeOutTheSame) {
  for (const auto& [codec, other_codec] :
       {std::pair("zstd", "zstd:max"), std::pair("rlz", "rlz:max"),
        std::pair("auto", "auto:max"), std::pair("fsst", "lz4"),
        std::pair("rlz/parts", "rlz:max/parts")}) {
    SCOPED_TRACE(codec);
    const std::string name = absl::StrReplaceAll(codec, {{"/", "-"}});
    const std::string from = Build(name, OptionsOf(codec));
    const std::string out = directory_ / absl::StrCat(name, "-again");
    QUIRE_ASSERT_OK_AND_ASSIGN(const BuildSummary summary,
                               Recompress(from, out, OptionsOf(codec)));
    EXPECT_EQ(summary.copied_block_count, summary.info.block_count);
    EXPECT_EQ(FilesOf(out), FilesOf(from));
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const BuildSummary other,
        Recompress(from, out + "-other", OptionsOf(other_codec)));
    EXPECT_EQ(other.copied_block_count, 0);
  }
}

// Blocks that are a part of one in the archive, or have other partitions, equal
// those of a build.
TEST_F(RecompressTest, CopiesWholeBlocksOnly) {
  for (const char* codec : {"zstd", "zlib/parts", "rlz/parts"}) {
    SCOPED_TRACE(codec);
    BuildOptions options = OptionsOf(codec);
    options.archive.block_size_bytes = 16384;
    options.segment_size_bytes = 1 << 20;
    const std::string prefix = absl::StrReplaceAll(codec, {{"/", "-"}});
    const std::string from = Build(prefix + "-from", options);
    const auto expect_as_built = [&](absl::string_view name) {
      const std::string out = directory_ / absl::StrCat(prefix, "-", name);
      const auto summary = Recompress(from, out, options);
      EXPECT_THAT(summary, IsOk());
      EXPECT_EQ(FilesOf(out),
                FilesOf(Build(absl::StrCat(prefix, "-built-", name), options)));
      EXPECT_EQ(summary->mismatched_block_count, 0u);
      return summary->copied_block_count;
    };
    // The last block of the first segment is the front of a longer one.
    options.segment_size_bytes = 20000;
    EXPECT_EQ(expect_as_built("segments"), 2u);
    options.segment_size_bytes = 1 << 20;
    if (options.archive.codec.partition_size_bytes != 0) {
      options.archive.codec.partition_size_bytes = 8192;
      EXPECT_EQ(expect_as_built("partitions"), 0u);
    }
  }
}

TEST_F(RecompressTest, KeepsTheCountOfInputsThatCouldNotBeRead) {
  InputFailures failures;
  BuildOptions options = OptionsOf("lz4");
  options.failures = &failures;
  failures.Tolerate(1, absl::NotFoundError("gone"));
  const std::string from = Build("from", options);
  const std::string out = directory_ / "out";
  QUIRE_ASSERT_OK_AND_ASSIGN(const BuildSummary summary,
                             Recompress(from, out, OptionsOf("zstd")));
  EXPECT_EQ(summary.info.unread_input_count, 1);
  EXPECT_EQ(summary.info.unread_inputs, std::vector<std::string>{"gone"});
  std::vector<std::unique_ptr<Source>> sources;
  for (const std::string& path : {from, out}) {
    QUIRE_ASSERT_OK_AND_ASSIGN(sources.emplace_back(),
                               OpenArchiveSource(path, 1));
  }
  const std::string both = directory_ / "both";
  QUIRE_ASSERT_OK_AND_ASSIGN(const BuildSummary built,
                             BuildArchive(both, sources, OptionsOf("lz4")));
  EXPECT_EQ(built.info.unread_input_count, 2);
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const CompactSummary compacted,
      CompactArchive(both, CompactedSegments::kAll, OptionsOf("lz4")));
  EXPECT_EQ(compacted.build.info.unread_input_count, 2);
}

TEST_F(RecompressTest, ReplacesTheArchiveItselfInTheEnd) {
  const std::string path = Build("x", OptionsOf("lz4"));
  EXPECT_EQ(Recompress(path, path, OptionsOf("zstd")).status().code(),
            absl::StatusCode::kAlreadyExists);
  BuildOptions options = OptionsOf("zstd");
  options.archive.replace = true;
  QUIRE_ASSERT_OK(Recompress(path, path, options).status());
  EXPECT_EQ(FilesOf(path), FilesOf(Build("zstd", OptionsOf("zstd"))));
  EXPECT_FALSE(fs::exists(path + ".partial"));
}

TEST_F(RecompressTest, GoesOnWhereItFailed) {
  for (const char* codec : {"zstd", "rlz", "auto", "fsst", "zlib/parts"}) {
    SCOPED_TRACE(codec);
    const std::string from = Build("from", OptionsOf("lz4"));
    const std::string out = directory_ / "out";
    const Files expected = StartAndStop(from, out, OptionsOf(codec));
    QUIRE_ASSERT_OK_AND_ASSIGN(const BuildSummary summary,
                               Recompress(from, out, OptionsOf(codec)));
    EXPECT_GT(summary.kept_block_count, 4);
    EXPECT_EQ(FilesOf(out), expected);
    EXPECT_FALSE(fs::exists(out + ".partial"));
    fs::remove_all(from);
    fs::remove_all(out);
  }
}

// In the only segment the last frame ends the file.
TEST_F(RecompressTest, KeepsAllBlocksThatAreWhole) {
  const std::string from = Build("from", OptionsOf("lz4"));
  const std::string out = directory_ / "out";
  BuildOptions options = OptionsOf("zstd");
  options.segment_size_bytes = 1 << 20;
  const Files expected = StartAndStop(from, out, options);
  const std::string segment = out + ".partial/segment-00000000";
  const uint64_t whole_size = fs::file_size(segment);
  const std::string saved = directory_ / "saved";
  fs::copy(out + ".partial", saved);
  for (const uint64_t missing : {uint64_t{0}, uint64_t{1}}) {
    SCOPED_TRACE(missing);
    fs::remove_all(out + ".partial");
    fs::copy(saved, out + ".partial");
    fs::resize_file(segment, whole_size - missing);
    QUIRE_ASSERT_OK_AND_ASSIGN(const BuildSummary summary,
                               Recompress(from, out, options));
    EXPECT_EQ(summary.kept_block_count, summary.info.block_count - missing);
    EXPECT_EQ(FilesOf(out), expected);
    fs::remove_all(out);
  }
}

TEST_F(RecompressTest, GoesOnWithALayout) {
  const std::string from = Build("from", OptionsOf("lz4"));
  const std::string out = directory_ / "out";
  BuildOptions options = OptionsOf("rlz");
  options.reorder = ReorderMode::kDuplicates;
  const Files expected = StartAndStop(from, out, options);
  QUIRE_ASSERT_OK_AND_ASSIGN(const BuildSummary summary,
                             Recompress(from, out, options));
  EXPECT_GT(summary.kept_block_count, 4);
  EXPECT_EQ(FilesOf(out), expected);
}

// Blocks are cut around inflated members, and so have any size.
TEST_F(RecompressTest, GoesOnWithMembersInflated) {
  std::string warc;
  for (uint64_t i = 0; i < 12; ++i) {
    absl::StrAppend(
        &warc, MakeWarcRecord({absl::StrCat("WARC-Target-URI: http://u/", i)},
                              Gzip(MakeTestText(9000 + 500 * i, i))));
  }
  directory_.Write("in.warc", warc);
  const std::string from = Build("from", OptionsOf("lz4"));
  BuildOptions options = OptionsOf("rlz");
  options.inflate = true;
  const std::string out = directory_ / "out";
  const Files expected = StartAndStop(from, out, options);
  QUIRE_ASSERT_OK_AND_ASSIGN(const BuildSummary summary,
                             Recompress(from, out, options));
  EXPECT_TRUE(summary.info.has_varying_blocks);
  EXPECT_GT(summary.kept_block_count, 4);
  EXPECT_EQ(FilesOf(out), expected);
  EXPECT_EQ(expected, FilesOf(Build("to", options)));
  // And back.
  const std::string back = directory_ / "back";
  QUIRE_ASSERT_OK(Recompress(out, back, OptionsOf("lz4")).status());
  EXPECT_EQ(FilesOf(back), FilesOf(from));
}

// It would omit them.
TEST_F(RecompressTest, RefusesAnArchiveWithUnknownParts) {
  const std::string from = Build("from", OptionsOf("zstd"));
  std::string manifest = ReadTestFile(from + "/MANIFEST");
  // Field 99 of the message, an integer.
  manifest.insert(manifest.size() - 8, "\x98\x06\x01");
  StoreLittleEndian(static_cast<uint32_t>(manifest.size() - 24),
                    AsMutableBytes(manifest).data() + 12);
  const size_t end = manifest.size() - sizeof(uint64_t);
  StoreLittleEndian(Checksum64(AsBytes(manifest).first(end)),
                    AsMutableBytes(manifest).data() + end);
  std::ofstream(from + "/MANIFEST", std::ios::binary) << manifest;
  const std::string out = directory_ / "out";
  EXPECT_THAT(Recompress(from, out, OptionsOf("lz4")),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        HasSubstr("the manifest has fields that this")));
  EXPECT_FALSE(fs::exists(out));
}

TEST_F(RecompressTest, NamesADamagedBlockAndKeepsWhatIsBeforeIt) {
  const std::string from = Build("from", OptionsOf("copy"));
  const std::string segment = from + "/segment-00000001";
  const std::string out = directory_ / "out";
  // Training a symbol table would meet the damage before the first block.
  BuildOptions options = OptionsOf("zstd");
  options.symbol_table = false;
  const std::string reference = directory_ / "reference";
  QUIRE_ASSERT_OK(Recompress(from, reference, options).status());
  const size_t in_block_2 = 48 + 2 * (4096 + 12) + 100;
  Flip(segment, in_block_2);
  const auto failed = Recompress(from, out, options);
  EXPECT_EQ(failed.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(failed.status().message(), HasSubstr(segment + ": block 2: "));
  EXPECT_FALSE(fs::exists(out));
  Flip(segment, in_block_2);
  QUIRE_ASSERT_OK_AND_ASSIGN(const BuildSummary summary,
                             Recompress(from, out, options));
  EXPECT_GT(summary.kept_block_count, 0);
  EXPECT_EQ(FilesOf(out), FilesOf(reference));
}

TEST_F(RecompressTest, DamageInWhatIsKeptIsSeen) {
  const std::string from = Build("from", OptionsOf("lz4"));
  const std::string out = directory_ / "out";
  const Files expected = StartAndStop(from, out, OptionsOf("rlz"));
  const std::string saved = directory_ / "saved";
  fs::copy(out + ".partial", saved);
  std::mt19937_64 random(20261123);
  for (int i = 0; i < Fewer(60); ++i) {
    fs::remove_all(out);
    fs::remove_all(out + ".partial");
    fs::copy(saved, out + ".partial");
    std::vector<std::string> names;
    for (const auto& [name, contents] : FilesOf(saved)) {
      if (!contents.empty()) {
        names.push_back(name);
      }
    }
    const std::string file = absl::StrCat(
        out, ".partial/", names[static_cast<size_t>(i) % names.size()]);
    const size_t offset = random() % fs::file_size(file);
    SCOPED_TRACE(absl::StrCat(file, " at ", offset));
    if (i % 3 == 0) {
      fs::resize_file(file, offset);
    } else {
      Flip(file, offset);
    }
    QUIRE_ASSERT_OK(Recompress(from, out, OptionsOf("rlz")).status());
    EXPECT_EQ(FilesOf(out), expected);
  }
}

TEST_F(RecompressTest, RefusesToGoOnWithOtherOptions) {
  const std::string from = Build("from", OptionsOf("lz4"));
  const std::string out = directory_ / "out";
  const Files expected = StartAndStop(from, out, OptionsOf("zstd:3"));
  const auto other = Recompress(from, out, OptionsOf("zstd:5"));
  EXPECT_EQ(other.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(other.status().message(),
              HasSubstr("was begun with codec zstd:3, not with codec zstd:5"));
  EXPECT_THAT(other.status().message(), HasSubstr("--restart"));
  // No blocks are lost.
  BuildOptions options = OptionsOf("zstd:3");
  options.threads = 3;
  QUIRE_ASSERT_OK_AND_ASSIGN(const BuildSummary summary,
                             Recompress(from, out, options));
  EXPECT_GT(summary.kept_block_count, 0);
  EXPECT_EQ(FilesOf(out), expected);
}

// Changes one option at a time, each of which gives other blocks.
TEST_F(RecompressTest, RefusesToGoOnWithAnyOtherOption) {
  const std::string from = Build("from", OptionsOf("lz4"));
  using Change = std::function<void(BuildOptions&)>;
  const auto reorder = [](ReorderMode mode) {
    return [mode](BuildOptions& options) { options.reorder = mode; };
  };
  const auto expect_refused = [&](const BuildOptions& begun,
                                  const std::map<std::string, Change>& others) {
    const std::string out = directory_ / "out";
    const Files expected = StartAndStop(from, out, begun);
    for (const auto& [line, change] : others) {
      BuildOptions options = begun;
      change(options);
      EXPECT_THAT(Recompress(from, out, options).status(),
                  FailsWith(absl::StatusCode::kFailedPrecondition,
                            HasSubstr(", not with " + line)))
          << line;
    }
    EXPECT_THAT(Recompress(from, out, begun), IsOk());
    EXPECT_EQ(FilesOf(out), expected);
    fs::remove_all(out);
  };
  const std::map<ReorderMode, std::string> modes = {
      {ReorderMode::kOff, "off"},
      {ReorderMode::kAuto, "auto"},
      {ReorderMode::kDuplicates, "dedup"},
      {ReorderMode::kFull, "full"}};
  for (const auto& [mode, name] : modes) {
    BuildOptions begun = OptionsOf("zstd");
    begun.reorder = mode;
    std::map<std::string, Change> others;
    for (const auto& [other, other_name] : modes) {
      if (other != mode) {
        others["reorder " + other_name] = reorder(other);
      }
    }
    expect_refused(begun, others);
  }
  BuildOptions begun = OptionsOf("rlz/parts");
  begun.archive.block_size_bytes = 16384;
  expect_refused(
      begun,
      {{"block size 8KiB",
        [](BuildOptions& o) { o.archive.block_size_bytes = 8192; }},
       {"partition size 8KiB",
        [](BuildOptions& o) { o.archive.codec.partition_size_bytes = 8192; }},
       {"segment size 30000",
        [](BuildOptions& o) { o.segment_size_bytes = 30000; }},
       {"dictionary size 4KiB",
        [](BuildOptions& o) { o.dictionary_size_bytes = 4096; }},
       {"dictionary method uniform",
        [](BuildOptions& o) {
          o.dictionary_method = DictionaryMethod::kUniform;
        }},
       {"symbol table no", [](BuildOptions& o) { o.symbol_table = false; }},
       {"inflate auto", [](BuildOptions& o) { o.inflate = true; }}});
  begun = OptionsOf("rlz");
  begun.inflate = true;
  expect_refused(begun, {{"inflate member size 1000", [](BuildOptions& o) {
                            o.inflate_member_size_bytes_max = 1000;
                          }}});
}

TEST_F(RecompressTest, StartsOverAfterAnotherVersion) {
  const std::string from = Build("from", OptionsOf("lz4"));
  const std::string out = directory_ / "out";
  BuildOptions options = OptionsOf("zstd");
  const Files expected = StartAndStop(from, out, options);
  int dropped_count = 0;
  options.resume.on_dropped = [&dropped_count] { ++dropped_count; };
  const std::string saved = directory_ / "saved";
  fs::copy(out + ".partial", saved);
  const auto resume = [&](const std::string& journal) -> uint64_t {
    fs::remove_all(out);
    fs::remove_all(out + ".partial");
    fs::copy(saved, out + ".partial");
    std::ofstream(out + ".partial/JOURNAL", std::ios::binary) << journal;
    const auto summary = Recompress(from, out, options);
    EXPECT_THAT(summary, IsOk());
    EXPECT_EQ(FilesOf(out), expected);
    return summary->kept_block_count;
  };
  const std::string journal = ReadTestFile(saved + "/JOURNAL");
  EXPECT_GT(resume(journal), 0u);
  EXPECT_EQ(dropped_count, 0);
  JournalContents other = ParseJournal(journal).value();
  EXPECT_EQ(other.build_version, kBuildVersion);
  ++other.build_version;
  EXPECT_EQ(resume(EncodeJournal(other)), 0u);
  EXPECT_EQ(dropped_count, 1);
  // The journal as it was before versions.
  const std::string lines = "quire journal 1\n" + other.parameters;
  EXPECT_EQ(
      resume(absl::StrCat(lines, "checksum ",
                          FormatChecksum(Checksum64(AsBytes(lines))), "\n")),
      0u);
  EXPECT_EQ(dropped_count, 2);
}

// A failure means that block boundaries or contents have changed: raise
// kBuildVersion, and record the new checksum with it.
TEST_F(RecompressTest, AVersionStandsForItsBlocks) {
  std::string warc;
  for (uint64_t i = 0; i < 40; ++i) {
    const std::string text = MakeTestText(6000 + 300 * i, i % 9);
    absl::StrAppend(
        &warc, MakeWarcRecord({absl::StrCat("WARC-Target-URI: http://u/", i)},
                              i % 2 == 0 ? Gzip(text) : text));
  }
  directory_.Write("in.warc", warc);
  Checksummer64 checksum;
  for (const ReorderMode reorder :
       {ReorderMode::kOff, ReorderMode::kAuto, ReorderMode::kDuplicates,
        ReorderMode::kFull}) {
    for (const bool inflate : {false, true}) {
      BuildOptions options = OptionsOf(inflate ? "rlz" : "copy");
      options.reorder = reorder;
      options.inflate = inflate;
      const std::string path = Build("versioned", options);
      const auto archive = Archive::Open(path);
      ASSERT_THAT(archive, IsOk());
      const auto scratch = (*archive)->codec().NewScratch();
      for (uint32_t segment = 0; segment < (*archive)->info().segment_count;
           ++segment) {
        for (uint64_t i = 0; i < (*archive)->SegmentBlockCount(segment); ++i) {
          const BlockAddress block = {segment, i};
          std::string text((*archive)->BlockSizeBytes(block), '\0');
          QUIRE_ASSERT_OK(
              (*archive)->ReadBlock(block, AsMutableBytes(text), *scratch));
          checksum.Add(AsBytes(absl::StrCat(text.size(), "\n", text)));
        }
      }
      fs::remove_all(path);
    }
  }
  EXPECT_EQ(std::pair(kBuildVersion, FormatChecksum(checksum.Get())),
            std::pair(10u, std::string("65db1de5d12a599b")));
}

TEST_F(RecompressTest, RestartsWhenTold) {
  const std::string from = Build("from", OptionsOf("lz4"));
  const std::string out = directory_ / "out";
  StartAndStop(from, out, OptionsOf("zstd:3"));
  BuildOptions options = OptionsOf("zstd:5");
  options.resume.restart = true;
  QUIRE_ASSERT_OK_AND_ASSIGN(const BuildSummary summary,
                             Recompress(from, out, options));
  EXPECT_EQ(summary.kept_block_count, 0);
  EXPECT_EQ(FilesOf(out), FilesOf(Build("to", OptionsOf("zstd:5"))));
}

TEST_F(RecompressTest, ABuildOfTheSameNameDropsWhatWasBegun) {
  const std::string from = Build("from", OptionsOf("lz4"));
  const std::string out = directory_ / "out";
  StartAndStop(from, out, OptionsOf("zstd"));
  Build("out", OptionsOf("zlib"));
  EXPECT_EQ(FilesOf(out), FilesOf(Build("to", OptionsOf("zlib"))));
  EXPECT_FALSE(fs::exists(out + ".partial"));
}

TEST_F(RecompressTest, LeavesNothingWhereNothingWasEncoded) {
  const std::string from = Build("from", OptionsOf("lz4"));
  const std::string out = directory_ / "out";
  const std::atomic<bool> cancel = true;
  BuildOptions options = OptionsOf("rlz");
  options.cancel = &cancel;
  EXPECT_EQ(Recompress(from, out, options).status().code(),
            absl::StatusCode::kCancelled);
  EXPECT_FALSE(fs::exists(out + ".partial"));
}

}  // namespace
}  // namespace quire

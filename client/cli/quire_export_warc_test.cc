// SPDX-License-Identifier: Apache-2.0
//
// quire export --warc: records compressed with zstd, and duplicates as
// revisits. Exported revisits are read back from an archive of the export.

#include <zstd.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "client/cli/testing/cli_fixture.h"
#include "client/quire/testing/fake_server.h"
#include "codecs/base/bytes.h"
#include "codecs/base/endian.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kDate[] = "1970-01-01T00:00:0";

std::string WarcRecord(const std::string& type, const std::string& fields,
                       const std::string& block) {
  return absl::StrCat("WARC/1.0\r\nWARC-Type: ", type, "\r\n", fields,
                      "Content-Type: application/http; msgtype=response\r\n"
                      "Content-Length: ",
                      block.size(), "\r\n\r\n", block, "\r\n\r\n");
}

// A response of second `time`.
FakeDocument Response(const std::string& uri, int time, const std::string& body,
                      const std::string& digest = "sha1:ABC") {
  return {
      .id = uri,
      .text = WarcRecord(
          "response",
          absl::StrCat(
              "WARC-Record-ID: <urn:x:", uri, time, ">\r\nWARC-Target-URI: ",
              uri, "\r\nWARC-Date: ", kDate, time, "Z\r\n",
              digest.empty()
                  ? ""
                  : absl::StrCat("WARC-Payload-Digest: ", digest, "\r\n"),
              "WARC-Block-Digest: sha1:OLD\r\n"),
          absl::StrCat("HTTP/1.1 200 OK\r\nX: ", uri, time, "\r\n\r\n", body)),
      .capture_time_ms = time * 1000,
      .record_type = "response"};
}

// A revisit of a response of `target_time`.
FakeDocument Revisit(const std::string& uri, int time,
                     const std::string& target_uri, int target_time) {
  return {.id = uri,
          .text = WarcRecord(
              "revisit",
              absl::StrCat("WARC-Target-URI: ", uri, "\r\nWARC-Date: ", kDate,
                           time, "Z\r\nWARC-Refers-To-Target-URI: ", target_uri,
                           "\r\nWARC-Refers-To-Date: ", kDate, target_time,
                           "Z\r\nWARC-Payload-Digest: sha1:ABC\r\n"),
              "HTTP/1.1 200 OK\r\n\r\n"),
          .capture_time_ms = time * 1000,
          .record_type = "revisit"};
}

// The text of each frame of a .warc.zst. `dictionary_size` is that of its
// dictionary, 0 without one.
std::vector<std::string> FramesOf(const std::string& file,
                                  size_t& dictionary_size) {
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(
      ZSTD_createDCtx(), &ZSTD_freeDCtx);
  std::string rest = file;
  unsigned id = 0;
  dictionary_size = 0;
  const auto number = [&rest](size_t offset) {
    return LoadLittleEndian<uint32_t>(AsBytes(rest).data() + offset);
  };
  if (rest.size() > 8 && number(0) == 0x184D2A5D) {
    const std::string stored = rest.substr(8, number(4));
    std::string dictionary(
        ZSTD_getFrameContentSize(stored.data(), stored.size()), '\0');
    EXPECT_EQ(ZSTD_decompress(dictionary.data(), dictionary.size(),
                              stored.data(), stored.size()),
              dictionary.size());
    id = ZSTD_getDictID_fromDict(dictionary.data(), dictionary.size());
    EXPECT_GE(id, 32768u);
    EXPECT_EQ(ZSTD_DCtx_loadDictionary(context.get(), dictionary.data(),
                                       dictionary.size()),
              0u);
    dictionary_size = dictionary.size();
    rest.erase(0, 8 + stored.size());
  }
  std::vector<std::string> frames;
  while (!rest.empty()) {
    const size_t size = ZSTD_findFrameCompressedSize(rest.data(), rest.size());
    const uint64_t text_size =
        ZSTD_getFrameContentSize(rest.data(), rest.size());
    if (ZSTD_isError(size) != 0 || text_size > (uint64_t{8} << 20)) {
      ADD_FAILURE() << "no frame with a size, of at most 8 MiB";
      return frames;
    }
    EXPECT_EQ(ZSTD_getDictID_fromFrame(rest.data(), rest.size()), id);
    // The checksum (RFC 8878, section 3.1.1.1).
    EXPECT_EQ(rest[4] & 4, 4);
    std::string text(text_size, '\0');
    EXPECT_EQ(ZSTD_decompressDCtx(context.get(), text.data(), text.size(),
                                  rest.data(), size),
              text_size);
    frames.push_back(std::move(text));
    rest.erase(0, size);
  }
  return frames;
}

class QuireExportWarcTest : public CliTest {
 protected:
  QuireExportWarcTest() : CliTest(std::map<std::string, FakeArchive>()) {}

  void Serve(const std::string& name, std::vector<FakeDocument> documents) {
    server_->Reload({{name, {.documents = std::move(documents)}}});
  }

  ProgramRun Export(const std::string& archive,
                    const std::vector<std::string>& options = {}) {
    std::vector<std::string> arguments = {"export", archive, "--warc", path_};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return Run(arguments);
  }

  std::string path_ = directory_ + "/x.warc.zst";
};

TEST_F(QuireExportWarcTest, CompressesRecordsWithADictionary) {
  std::vector<FakeDocument> documents;
  std::vector<std::string> texts;
  for (int i = 0; i < 300; ++i) {
    std::string page;
    for (int j = 0; j < 20; ++j) {
      absl::StrAppend(&page, "<li>entry ", i * 7919 % 1000, " of list ", j,
                      ", which all pages have</li>\n");
    }
    documents.push_back(Response(absl::StrCat("http://e.org/", i), 1, page));
    texts.push_back(documents.back().text);
  }
  Serve("crawl", documents);
  size_t dictionary_size = 0;
  ProgramRun run = Export("crawl");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const std::string file = FileText(path_);
  EXPECT_THAT(FramesOf(file, dictionary_size), ElementsAreArray(texts));
  EXPECT_GT(dictionary_size, 100'000u);
  // The export is reproducible.
  EXPECT_EQ(Export("crawl").exit_code, 0);
  EXPECT_EQ(FileText(path_), file);
  // The dictionary is of the documents that pass.
  run = Export("crawl", {"--status", "200", "--from", "1970"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(FileText(path_), file);
  path_ = directory_ + "/x.warc.gz";
  EXPECT_EQ(Export("crawl").exit_code, 0);
  EXPECT_LT(file.size(), FileText(path_).size() / 3);
}

TEST_F(QuireExportWarcTest, CompressesFewAndLargeRecords) {
  // Over what is held in memory, and what a frame has.
  const FakeDocument large =
      Response("http://e.org/large", 1, std::string(9 << 20, 'x'));
  Serve("crawl", {Response("http://e.org/", 1, "small"), large});
  const ProgramRun run = Export("crawl");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  size_t dictionary_size = 0;
  const std::vector<std::string> frames =
      FramesOf(FileText(path_), dictionary_size);
  EXPECT_EQ(dictionary_size, 0u);
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_EQ(frames[0], Response("http://e.org/", 1, "small").text);
  EXPECT_EQ(frames[1] + frames[2], large.text);
  path_ = directory_ + "/x.tar.zst";
  EXPECT_EQ(Run({"export", "crawl", "--tar", path_}).exit_code, 2);
}

TEST_F(QuireExportWarcTest, MakesNoDictionaryOfDuplicatesThatBecomeRevisits) {
  // Two crawls of pages that have no text in common.
  std::minstd_rand random(1);
  std::vector<std::string> pages(50);
  for (std::string& page : pages) {
    while (page.size() < 8192) {
      absl::StrAppend(&page, random(), "\n");
    }
  }
  std::vector<FakeDocument> documents;
  for (const int time : {1, 2}) {
    for (size_t i = 0; i < pages.size(); ++i) {
      documents.push_back(
          Response(absl::StrCat("http://e.org/", i), time, pages[i]));
    }
  }
  Serve("crawl", documents);
  const auto dictionary_size = [&](const std::vector<std::string>& options) {
    const ProgramRun run = Export("crawl", options);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    size_t size_bytes = 0;
    EXPECT_EQ(FramesOf(FileText(path_), size_bytes).size(), documents.size());
    return size_bytes;
  };
  const size_t whole_size = dictionary_size({});
  EXPECT_GT(whole_size, 300'000u);
  EXPECT_LT(dictionary_size({"--revisit-duplicates"}), whole_size * 2 / 3);
}

TEST_F(QuireExportWarcTest, WritesDuplicatesAsRevisits) {
  const std::string body(1000, 'b');
  const std::vector<FakeDocument> documents = {
      Response("http://e.org/a", 1, body),
      // Stays: a revisit before it refers to it.
      Revisit("http://e.org/r", 2, "http://e.org/kept", 3),
      Response("http://e.org/kept", 3, body),
      Response("http://e.org/b", 4, body),
      // Refers to a duplicate.
      Revisit("http://e.org/b", 5, "http://e.org/b", 4),
      // These stay: a small body, no digest, another digest, another body.
      Response("http://e.org/small", 1, "b"),
      Response("http://e.org/small", 2, "b"),
      Response("http://e.org/none", 6, body, ""),
      Response("http://e.org/other", 7, body, "sha1:DEF"),
      Response("http://e.org/body", 8, body + "c"),
      // Stays: a reference could mean either.
      Response("http://e.org/a", 1, body),
      // The same for the last one: its target shares the URI and the date.
      Response("http://e.org/twice", 9, std::string(500, 'x')),
      Response("http://e.org/twice", 9, std::string(500, 'y')),
      Response("http://e.org/late", 9, std::string(500, 'x'))};
  Serve("crawl", documents);
  path_ = directory_ + "/x.warc";
  const ProgramRun run = Export("crawl", {"--revisit-duplicates"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err,
              AllOf(HasSubstr("1 response with the payload of an earlier one "
                              "in records of type revisit, "),
                    HasSubstr("1 revisit of these"),
                    HasSubstr("1 response has no WARC-Payload-Digest")));
  std::string rest = FileText(path_);
  std::vector<FakeDocument> exported = documents;
  for (size_t i = 0; i < documents.size(); ++i) {
    const size_t end = rest.find("WARC/1.0\r\n", 1);
    exported[i].text = rest.substr(0, end);
    rest.erase(0, end);
    if (i != 3 && i != 4) {
      EXPECT_EQ(exported[i].text, documents[i].text) << i;
    } else {
      exported[i].record_type = "revisit";
      EXPECT_THAT(
          exported[i].text,
          AllOf(StartsWith("WARC/1.0\r\nWARC-Type: revisit\r\n"),
                HasSubstr("WARC-Refers-To: <urn:x:http://e.org/a1>\r\n"
                          "WARC-Refers-To-Target-URI: http://e.org/a\r\n"
                          "WARC-Refers-To-Date: 1970-01-01T00:00:01Z\r\n\r\n"
                          "HTTP/1.1 200 OK\r\n"),
                Not(HasSubstr("bbb"))));
    }
  }
  // The digest of the block is that of sha1sum, in base 32.
  EXPECT_THAT(
      exported[3].text,
      AllOf(HasSubstr("WARC-Profile: http://netpreserve.org/warc/1.0/revisit/"
                      "identical-payload-digest\r\n"),
            HasSubstr("WARC-Record-ID: <urn:x:http://e.org/b4>\r\n"),
            HasSubstr("Content-Length: 39\r\n"),
            HasSubstr("WARC-Block-Digest: "
                      "sha1:OAKCELBHPYRFZEPHJHJ7FV2ME227R2JK\r\n")));
  Serve("again", exported);
  for (const char* const ordinal : {"1", "2", "3", "4"}) {
    EXPECT_EQ(Run({"get", "again", "--ordinal", ordinal}).out, body) << ordinal;
  }
  EXPECT_EQ(Run({"export", "again", "--tar", directory_ + "/x.tar",
                 "--revisit-duplicates"})
                .exit_code,
            2);
}

std::string ArcExport(const std::string& url, const std::string& block) {
  return absl::StrCat(url, " 1.2.3.4 19700101000001 text/html ", block.size(),
                      "\n", block, "\n");
}

TEST_F(QuireExportWarcTest, RevisitsDuplicatesOfArcRecords) {
  // The second one is over what is held in memory.
  const std::string block =
      "HTTP/1.1 200 OK\r\n\r\n" + std::string(9 << 20, 'x');
  std::vector<FakeDocument> documents;
  for (const char* const url : {"http://e.org/1", "http://e.org/2"}) {
    documents.push_back({.id = url,
                         .text = ArcExport(url, block),
                         .capture_time_ms = 1000,
                         .record_type = "response"});
  }
  Serve("arc", documents);
  path_ = directory_ + "/x.warc";
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{}, {"--keep-going"}}) {
    std::vector<std::string> options = more;
    options.push_back("--revisit-duplicates");
    const ProgramRun run = Export("arc", options);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_THAT(run.err, AllOf(HasSubstr("2 records of ARC files"),
                               HasSubstr("1 response with the payload")));
  }
}

}  // namespace
}  // namespace quire

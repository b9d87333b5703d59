// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/testing/ingest_testing.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zdict.h>
#include <zlib.h>
#include <zstd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "codecs/base/endian.h"
#include "codecs/base/status_macros.h"
#include "server/archive/files/file_io.h"

namespace quire {
namespace {

unsigned FileTypeOf(TestEntry::Kind kind) {
  switch (kind) {
    case TestEntry::Kind::kFile:
    case TestEntry::Kind::kHardLink:
      return AE_IFREG;
    case TestEntry::Kind::kSymbolicLink:
      return AE_IFLNK;
    case TestEntry::Kind::kDirectory:
      return AE_IFDIR;
    case TestEntry::Kind::kPipe:
      return AE_IFIFO;
  }
  return AE_IFREG;
}

void AppendTestEntry(archive* writer, const TestEntry& entry) {
  archive_entry* const header = archive_entry_new();
  archive_entry_set_pathname(header, entry.name.c_str());
  archive_entry_set_perm(header, 0644);
  archive_entry_set_mtime(header, 1000000000, 250'000'000);
  archive_entry_set_filetype(header, FileTypeOf(entry.kind));
  archive_entry_set_size(header, 0);
  if (entry.kind == TestEntry::Kind::kFile) {
    archive_entry_set_size(header,
                           static_cast<la_int64_t>(entry.contents.size()));
  } else if (entry.kind == TestEntry::Kind::kHardLink) {
    archive_entry_set_hardlink(header, entry.contents.c_str());
  } else if (entry.kind == TestEntry::Kind::kSymbolicLink) {
    archive_entry_set_symlink(header, entry.contents.c_str());
  }
  ASSERT_GE(archive_write_header(writer, header), ARCHIVE_WARN)
      << archive_error_string(writer);
  if (entry.kind == TestEntry::Kind::kFile && !entry.contents.empty()) {
    EXPECT_EQ(archive_write_data(writer, entry.contents.data(),
                                 entry.contents.size()),
              static_cast<la_ssize_t>(entry.contents.size()))
        << archive_error_string(writer);
  }
  archive_entry_free(header);
}

la_ssize_t AppendToString(archive* /*writer*/, void* out, const void* bytes,
                          size_t size) {
  static_cast<std::string*>(out)->append(static_cast<const char*>(bytes), size);
  return static_cast<la_ssize_t>(size);
}

}  // namespace

absl::Status ReadContents(SourceReader& reader, size_t piece_size_bytes,
                          std::string& contents) {
  std::string piece(piece_size_bytes, '\0');
  while (true) {
    QUIRE_ASSIGN_OR_RETURN(const size_t got,
                           reader.Read(AsMutableBytes(piece)));
    if (got == 0) {
      return absl::OkStatus();
    }
    contents.append(piece, 0, got);
  }
}

absl::StatusOr<std::vector<IngestedDocument>> ReadAllDocuments(
    SourceReader& reader) {
  std::vector<IngestedDocument> documents;
  while (true) {
    QUIRE_ASSIGN_OR_RETURN(std::optional<SourceDocument> document,
                           reader.Next());
    if (!document.has_value()) {
      return documents;
    }
    IngestedDocument& last =
        documents.emplace_back(IngestedDocument{std::move(*document), ""});
    QUIRE_RETURN_IF_ERROR(ReadContents(reader, 10007, last.contents));
    EXPECT_EQ(last.document.size_bytes.value_or(last.contents.size()),
              last.contents.size())
        << last.document.id;
  }
}

absl::StatusOr<std::vector<IngestedDocument>> ReadAllDocuments(
    const Source& source, SkippedEntries* skipped) {
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<SourceReader> reader,
                         source.Open());
  QUIRE_ASSIGN_OR_RETURN(std::vector<IngestedDocument> documents,
                         ReadAllDocuments(*reader));
  if (skipped != nullptr) {
    *skipped = reader->skipped();
  }
  return documents;
}

absl::StatusOr<IdsAndContents> ReadInput(const std::string& path,
                                         SkippedEntries* skipped) {
  QUIRE_ASSIGN_OR_RETURN(
      const std::unique_ptr<Source> source,
      OpenSource(path, {.spool_directory = ::testing::TempDir()}));
  QUIRE_ASSIGN_OR_RETURN(const std::vector<IngestedDocument> documents,
                         ReadAllDocuments(*source, skipped));
  IdsAndContents result;
  for (const IngestedDocument& document : documents) {
    result.emplace_back(document.document.id, document.contents);
  }
  return result;
}

std::string Concatenate(const std::vector<IngestedDocument>& documents) {
  std::string all;
  for (const IngestedDocument& document : documents) {
    all += document.contents;
  }
  return all;
}

std::string KindOf(const std::string& path) {
  const absl::StatusOr<std::unique_ptr<Source>> source =
      OpenSource(path, {.spool_directory = ::testing::TempDir()});
  return source.ok() ? (*source)->kind() : source.status().ToString();
}

std::string MakeTestArchive(const std::string& format,
                            const std::string& filter,
                            const std::vector<TestEntry>& entries) {
  std::string out;
  archive* const writer = archive_write_new();
  EXPECT_EQ(archive_write_set_format_by_name(writer, format.c_str()),
            ARCHIVE_OK)
      << format;
  if (filter != "none") {
    EXPECT_EQ(archive_write_add_filter_by_name(writer, filter.c_str()),
              ARCHIVE_OK)
        << filter;
  }
  // No padding to the blocks of a tape.
  archive_write_set_bytes_in_last_block(writer, 1);
  EXPECT_EQ(archive_write_open(writer, &out, nullptr, AppendToString, nullptr),
            ARCHIVE_OK);
  for (const TestEntry& entry : entries) {
    AppendTestEntry(writer, entry);
  }
  EXPECT_EQ(archive_write_close(writer), ARCHIVE_OK)
      << archive_error_string(writer);
  archive_write_free(writer);
  return out;
}

std::string GnuSparseTar(absl::string_view data, uint64_t data_offset,
                         uint64_t size_bytes) {
  std::string header(512, '\0');
  const auto put = [&header](size_t at, const std::string& text) {
    std::memcpy(header.data() + at, text.data(), text.size());
  };
  // Octal, or for values over 11 digits, big-endian after a byte 0x80.
  const auto octal = [](uint64_t value) {
    if (value >= uint64_t{1} << 33) {
      std::string bytes(12, '\0');
      bytes[0] = '\x80';
      for (size_t i = bytes.size(); i-- > 4; value >>= 8) {
        bytes[i] = static_cast<char>(value);
      }
      return bytes;
    }
    std::string digits(11, '0');
    for (size_t i = digits.size(); i-- > 0; value /= 8) {
      digits[i] = static_cast<char>('0' + value % 8);
    }
    return digits;
  };
  put(0, "sparse");
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, octal(data.size()));
  put(136, octal(0));
  put(148, "        ");
  put(156, "S");
  put(257, "ustar  ");
  put(386, octal(data_offset));
  put(398, octal(data.size()));
  put(410, octal(size_bytes));
  put(422, octal(0));
  put(483, octal(size_bytes));
  uint64_t sum = 0;
  for (const char c : header) {
    sum += static_cast<uint8_t>(c);
  }
  put(148, octal(sum).substr(4) + " ");
  const size_t padding = (512 - data.size() % 512) % 512;
  return absl::StrCat(header, data, std::string(padding + 1024, '\0'));
}

std::string Gzip(absl::string_view text) {
  z_stream z = {};
  EXPECT_EQ(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY),
            Z_OK);
  std::string in(text);
  std::string out(deflateBound(&z, static_cast<uLong>(text.size())) + 64, '\0');
  z.next_in = AsMutableBytes(in).data();
  z.avail_in = static_cast<uInt>(in.size());
  z.next_out = AsMutableBytes(out).data();
  z.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

std::string MakeZstdDictionary(uint32_t id) {
  std::string samples;
  std::vector<size_t> sizes;
  for (uint64_t i = 0; i < 400; ++i) {
    samples += MakeTestText(500, 1000 + i);
    sizes.push_back(500);
  }
  std::string dictionary(4096, '\0');
  const size_t size = ZDICT_trainFromBuffer(
      dictionary.data(), dictionary.size(), samples.data(), sizes.data(), 400);
  EXPECT_EQ(ZDICT_isError(size), 0U) << ZDICT_getErrorName(size);
  dictionary.resize(size);
  // The id follows the magic number.
  StoreLittleEndian(id, AsMutableBytes(dictionary).data() + 4);
  return dictionary;
}

std::string ZstdDictionaryFrame(absl::string_view contents) {
  std::string frame(8, '\0');
  StoreLittleEndian(uint32_t{0x184D2A5D}, AsMutableBytes(frame).data());
  StoreLittleEndian(static_cast<uint32_t>(contents.size()),
                    AsMutableBytes(frame).data() + 4);
  return absl::StrCat(frame, contents);
}

std::string Zstd(absl::string_view text, absl::string_view dictionary) {
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  EXPECT_EQ(ZSTD_isError(ZSTD_CCtx_loadDictionary(context, dictionary.data(),
                                                  dictionary.size())),
            0U);
  std::string frame(ZSTD_compressBound(text.size()), '\0');
  const size_t size = ZSTD_compress2(context, frame.data(), frame.size(),
                                     text.data(), text.size());
  EXPECT_EQ(ZSTD_isError(size), 0U) << ZSTD_getErrorName(size);
  frame.resize(size);
  ZSTD_freeCCtx(context);
  return frame;
}

void MarkZipEntryEncrypted(absl::string_view name, std::string& zip) {
  // Offsets of the flags and of the name, in an entry and in the list of them.
  struct Header {
    absl::string_view magic;
    size_t flags_offset;
    size_t name_offset;
  };

  for (const Header& header :
       {Header{"PK\x03\x04", 6, 30}, Header{"PK\x01\x02", 8, 46}}) {
    const std::string magic(header.magic);
    size_t at = zip.find(magic);
    while (at != std::string::npos &&
           zip.compare(at + header.name_offset, name.size(),
                       std::string(name)) != 0) {
      at = zip.find(magic, at + 1);
    }
    ASSERT_NE(at, std::string::npos) << name;
    zip[at + header.flags_offset] =
        static_cast<char>(zip[at + header.flags_offset] | 1);
  }
}

std::string MakeWarcRecord(const std::vector<std::string>& headers,
                           absl::string_view block, absl::string_view version) {
  std::string record = absl::StrCat(version, "\r\n");
  for (const std::string& header : headers) {
    absl::StrAppend(&record, header, "\r\n");
  }
  absl::StrAppend(&record, "Content-Length: ", block.size(), "\r\n\r\n", block,
                  "\r\n\r\n");
  return record;
}

std::string SmallWarc() {
  return absl::StrCat(
      MakeWarcRecord({"WARC-Type: warcinfo", "WARC-Record-ID: <urn:uuid:info>",
                      "WARC-Date: 2020-01-01T00:00:00Z",
                      "Content-Type: application/warc-fields"},
                     "software: x\r\n"),
      MakeWarcRecord({"WARC-Type: request", "WARC-Record-ID: <urn:uuid:req>",
                      "WARC-Target-URI: <http://example.org/>",
                      "Content-Type: application/http; msgtype=request"},
                     "GET / HTTP/1.1\r\nContent-Type: text/never\r\n\r\n"),
      MakeWarcRecord({"WARC-Type: response", "WARC-Record-ID: <urn:uuid:res>",
                      "WARC-Target-URI: http://example.org/",
                      "WARC-Date: 2020-01-01T00:00:01.250Z",
                      "Content-Type: application/http; msgtype=response"},
                     "HTTP/1.1 200 OK\r\nContent-Type: Text/HTML; "
                     "charset=UTF-8\r\n\r\n<html>WARC/1.0\r\n\r\n</html>",
                     "WARC/1.1"),
      MakeWarcRecord(
          {"WARC-Type: response", "WARC-Record-ID: <urn:uuid:dns>",
           "WARC-Target-URI: dns:example.org", "Content-Type: text/dns"},
          "20200101000000\r\nexample.org. 1 IN A 1.2.3.4\r\n"),
      MakeWarcRecord({"WARC-Type: metadata"}, ""));
}

std::string MakeTestText(size_t size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string text;
  while (text.size() < size) {
    // Compilers choose the order in which arguments of one call are evaluated.
    const uint64_t number = random() % 500;
    const bool ends_line = random() % 12 == 0;
    absl::StrAppend(&text, "word", number, ends_line ? "\n" : " ");
  }
  text.resize(size);
  return text;
}

int ChangeUnnamedFiles(uint64_t size_bytes, uint64_t offset) {
  int count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    struct stat status = {};
    const std::string path = entry.path();
    if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_nlink != 0 ||
        static_cast<uint64_t>(status.st_size) != size_bytes) {
      continue;
    }
    const UniqueFd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
    char byte = 0;
    const auto at = static_cast<off_t>(offset);
    if (fd.is_open() && pread(fd.get(), &byte, 1, at) == 1) {
      byte = static_cast<char>(byte ^ 1);
      count += static_cast<int>(pwrite(fd.get(), &byte, 1, at));
    }
  }
  return count;
}

}  // namespace quire

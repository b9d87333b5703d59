// SPDX-License-Identifier: GPL-3.0-or-later
//
// Makes the golden archives: good/ with the writer, bad/ by hand.
//
// usage: make_golden DIRECTORY
//        make_golden --adversarial ARCHIVE
//
// The second form writes an archive that takes much memory for its size, which
// is too large to be kept (testing/adversarial_archive.h).
//
// Golden files of a released version of the format never change: later programs
// must still read or refuse them.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"
#include "codecs/base/endian.h"
#include "codecs/block_codec.h"
#include "codecs/deflate/deflate_encoder.h"
#include "codecs/deflate/deflate_recipe.h"
#include "codecs/fsst/table/symbol_table.h"
#include "server/archive/archive_writer.h"
#include "server/archive/deposits/deposit_draft.h"
#include "server/archive/deposits/deposit_page.h"
#include "server/archive/files/archive_change.h"
#include "server/archive/files/sha256.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/segment_writer.h"
#include "testing/archive/adversarial_archive.h"
#include "testing/archive/archive_testing.h"
#include "testing/archive/golden/bad_archives.h"

namespace quire {
namespace {

std::string Verse(size_t size) {
  std::string text;
  for (int i = 0; text.size() < size; ++i) {
    absl::StrAppend(&text, "There were ", i * i, " bottles on wall ", i % 7,
                    ", and one of them fell.\n");
  }
  return text.substr(0, size);
}

// A serialised table of symbols for Verse(). Not trained, so that better
// training does not change it.
std::string VerseTable() {
  std::vector<FsstSymbol> symbols;
  for (const char* const text :
       {"There we", "re ", " bottles", " on wall", " ", ", and on", "e of the",
        "m fell.\n", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}) {
    FsstSymbol& symbol = symbols.emplace_back();
    for (; text[symbol.size] != '\0'; ++symbol.size) {
      symbol.bytes |= static_cast<uint64_t>(text[symbol.size])
                      << (8 * symbol.size);
    }
  }
  return SymbolTable::FromSymbols(symbols).value().Serialise();
}

std::vector<TestSegment> MixedSegments() {
  std::mt19937_64 random(1);
  std::string noise(5000, '\0');
  for (char& c : noise) {
    c = static_cast<char>(random());
  }
  return {{{.id = "tar/readme.txt", .text = Verse(600)},
           {.id = ""},
           {.id = "twice", .text = "the first of that name"},
           {.id = std::string("nul\0in it", 9), .text = "x"},
           {.id = "\xFF\xFE", .text = "y"},
           {.id = "line\nbreak", .text = "\n"},
           {.id = "http://example.org/",
            .text = Verse(9000),
            .capture_time_ms = 1700000000000,
            .record_type = "response",
            .media_type = "text/html"},
           {.id = "noise", .text = noise, .media_type = "image/png"}},
          {{.id = "zebra",
            .text = Verse(100),
            .capture_time_ms = -1,
            .record_type = "request"},
           {.id = "twice", .capture_time_ms = 1700000001000},
           {.id = "twice", .text = "the third of that name"}}};
}

// Enough documents and attributes that all methods of compression occur.
std::vector<TestSegment> ManySegments() {
  std::mt19937_64 random(2);
  TestSegment segment;
  for (int i = 0; i < 800; ++i) {
    segment.push_back(
        {.id = absl::StrCat("http://example.org/", random() % 100, "/page/", i),
         .capture_time_ms = static_cast<int64_t>(random() % 100000) * 1000,
         .media_type = i % 3 == 0 ? "text/html" : "text/plain"});
  }
  return {segment};
}

// Lines of files: two with ids in runs, one whose ids others lie between, and
// the rest of the last file in a second segment.
std::vector<TestSegment> LineSegments() {
  std::vector<TestSegment> segments(2);
  const auto add = [&segments](size_t segment, const std::string& file,
                               int first, int count) {
    for (int line = first; line < first + count; ++line) {
      segments[segment].push_back(
          {.id = absl::StrCat(file, ":", line),
           .text = absl::StrCat("line ", line, " of ", file, "\n")});
    }
  };
  add(0, "b.log", 1, 120);
  segments[0].push_back({.id = "about", .text = "lines\n"});
  add(0, "mixed.log", 1, 70);
  segments[0].push_back({.id = "mixed.log:5", .text = "again\n"});
  add(0, "a.log", 1, 100);
  add(1, "a.log", 101, 900);
  return segments;
}

// `count` numbers of `width` bytes, the highest first: a walk whose steps are
// below `step`; or, unless it `is_walk`, the steps themselves.
std::string Numbers(size_t count, size_t width, uint64_t step, bool is_walk) {
  std::mt19937_64 random(width * step);
  std::string text;
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) {
    value = (is_walk ? value : 0) + random() % step;
    for (size_t byte = width; byte-- > 0;) {
      text.push_back(static_cast<char>(value >> (8 * byte)));
    }
  }
  return text;
}

// Each a block or a little more, so that several transforms occur.
std::vector<TestSegment> NumberSegments() {
  TestSegment segment;
  for (const size_t width : {2u, 4u, 8u}) {
    for (const uint64_t step : {2u, 40u, 3000u, 1u << 20}) {
      for (const bool is_walk : {false, true}) {
        segment.push_back(
            {.id = absl::StrCat(is_walk ? "walk/" : "", width, "/", step),
             .text = Numbers(4096 / width, width, step, is_walk)});
      }
    }
  }
  segment.push_back({.id = "odd", .text = Numbers(333, 2, 5, true) + "tail"});
  return {segment};
}

// Returns the output of zlib or gzip for `text`, with the container's header.
std::string Compressed(const DeflateParameters& parameters,
                       DeflateContainer container, const std::string& text) {
  std::string member = container == DeflateContainer::kZlib
                           ? std::string("\x78\x9C", 2)
                           : std::string("\x1F\x8B\x08\0\0\0\0\0\2\3", 10);
  DeflateEncoder encoder;
  const absl::Status status =
      encoder.Encode(parameters, AsBytes(text), [&member](ByteView piece) {
        member.append(piece.begin(), piece.end());
        return true;
      });
  QUIRE_CHECK(status.ok(), status.ToString());
  const DeflateTrailer trailer = MakeDeflateTrailer(container, AsBytes(text));
  member.append(
      trailer.begin(),
      trailer.begin() + static_cast<ptrdiff_t>(DeflateTrailerSize(container)));
  return member;
}

// Compressed members of several kinds: alone, in sequence, in the middle of a
// document, across the end of a block, and a damaged one.
std::vector<TestSegment> MemberSegments() {
  const std::string text = Verse(9000);
  const std::string zlib =
      Compressed({.level = 6}, DeflateContainer::kZlib, text.substr(700, 6000));
  const std::string small =
      Compressed({.level = 9, .memory_level = 9}, DeflateContainer::kZlib,
                 text.substr(3000, 1500));
  const std::string gzip =
      Compressed({.encoder = DeflateEncoderId::kGzip, .level = 9},
                 DeflateContainer::kGzip, text);
  std::string damaged = gzip;
  damaged[damaged.size() / 2] ^= 1;
  return {{{.id = "gzip", .text = gzip},
           {.id = "row", .text = absl::StrCat(zlib, small, gzip)},
           {.id = "middle",
            .text = absl::StrCat(text.substr(0, 400), zlib, "\nendstream\n",
                                 small, text.substr(0, 300))},
           {.id = "damaged", .text = damaged},
           {.id = "over",
            .text = absl::StrCat(gzip, zlib, gzip, zlib, small, gzip)}}};
}

void WriteGood(const std::string& directory, const std::string& name,
               const std::string& codec,
               const std::vector<TestSegment>& segments,
               bool has_symbol_table = false, bool has_partitions = false,
               bool inflates = false) {
  ArchiveWriterOptions options;
  options.codec = ParseCodecSpec(codec).value();
  options.block_size_bytes = 4096;
  options.writer = "make_golden";
  if (has_partitions) {
    options.codec.partition_size_bytes = 4096;
    options.block_size_bytes = 16384;
  }
  auto context = std::make_shared<CodecContext>();
  context->dictionary = Verse(2000);
  if (has_symbol_table || FindCodec(options.codec.id)->needs_symbol_table) {
    context->symbol_table = VerseTable();
  }
  const auto info =
      WriteTestArchive(absl::StrCat(directory, "/good/", name), options,
                       segments, context, inflates ? kInflatedLargeSizeMax : 0);
  QUIRE_CHECK(info.ok(), info.status().ToString());
}

// A segment whose second half is repeated, and one in its own order.
void WriteLayout(const std::string& directory) {
  const ArchiveWriterOptions options = {.codec = ParseCodecSpec("lz4").value(),
                                        .block_size_bytes = 4096,
                                        .writer = "make_golden"};
  const auto codec =
      MakePayloadCodec(options.codec, nullptr, CodecUse::kEncodeAndDecode);
  const auto writer =
      ArchiveWriter::Create(directory + "/good/layout", options, nullptr);
  QUIRE_CHECK(codec.ok() && writer.ok(), "no writer");
  const std::string first = Verse(9000);
  const std::string second = Numbers(2500, 2, 3000, true);
  const TestSegment segment = {
      {.id = "first", .text = first},
      {.id = "empty"},
      {.id = "second", .text = second, .media_type = "image/png"},
      {.id = "again", .text = first},
      {.id = "own", .text = "not stored before"},
      {.id = "part", .text = first.substr(2000) + second.substr(0, 1000)}};
  const std::string stored = first + second + "not stored before";
  const std::vector<StoredRun> runs = {{first.size() + second.size(), 0},
                                       {first.size(), 0},
                                       {17, first.size() + second.size()},
                                       {first.size() - 2000 + 1000, 2000}};
  absl::Status status = WriteTestSegment(
      segment, stored, runs, options.block_size_bytes, codec->get(), **writer);
  status.Update(WriteTestSegment({{.id = "plain", .text = first}},
                                 options.block_size_bytes, codec->get(),
                                 **writer));
  status.Update((*writer)->Commit().status());
  QUIRE_CHECK(status.ok(), status.ToString());
}

// Fields of all types, in two segments with different ones; a third has none.
void WriteFields(const std::string& directory) {
  const ArchiveWriterOptions options = {.codec = ParseCodecSpec("copy").value(),
                                        .block_size_bytes = 4096,
                                        .writer = "make_golden"};
  const auto writer =
      ArchiveWriter::Create(directory + "/good/fields", options, nullptr);
  QUIRE_CHECK(writer.ok(), "no writer");
  const auto text = [](const std::string& value) { return FieldValue(value); };
  absl::Status status = (*writer)->SetFields({{"lang", FieldType::kString},
                                              {"count", FieldType::kInteger},
                                              {"score", FieldType::kFloat},
                                              {"good", FieldType::kBoolean},
                                              {"when", FieldType::kTime}});
  const std::string long_text(70, '\xFE');
  const TestSegment first = {
      {.id = "all",
       .text = "all",
       .fields = {text("de"), FieldValue(int64_t{-5}), FieldValue(2.5),
                  FieldValue(true),
                  FieldValue(FieldTime{1'700'000'000'000'001})}},
      {.id = "none", .text = "none"},
      {.id = "extreme",
       .text = "extreme",
       .fields = {text(long_text), FieldValue(INT64_MIN), FieldValue(-0.5),
                  FieldValue(false), FieldValue(FieldTime{-1})}},
      {.id = "some",
       .text = "some",
       .fields = {text("de"), FieldValue(INT64_MAX), FieldValue(),
                  FieldValue(true)}}};
  status.Update(
      WriteTestSegment(first, options.block_size_bytes, nullptr, **writer));
  status.Update((*writer)->SetFields(
      {{"new", FieldType::kInteger}, {"lang", FieldType::kString}}));
  TestSegment second;
  for (int64_t i = 0; i < 20; ++i) {
    const std::string id = absl::StrCat(i);
    second.push_back(
        {.id = id,
         .fields = {FieldValue(i * i), text(absl::StrCat("l", i % 3))}});
  }
  status.Update(
      WriteTestSegment(second, options.block_size_bytes, nullptr, **writer));
  status.Update((*writer)->SetFields({}));
  status.Update(WriteTestSegment({{.id = "plain", .text = "plain"}},
                                 options.block_size_bytes, nullptr, **writer));
  status.Update((*writer)->Commit().status());
  QUIRE_CHECK(status.ok(), status.ToString());
}

// An index of captures: a leaf alone, and one of two levels in a second
// segment.
void WriteCaptures(const std::string& directory) {
  const ArchiveWriterOptions options = {.codec = ParseCodecSpec("copy").value(),
                                        .block_size_bytes = 4096,
                                        .writer = "make_golden"};
  const TestSegment first = {
      {.id = "http://example.com/a?b=2&a=1",
       .text = "one",
       .capture_time_ms = 1'700'000'000'000,
       .record_type = "response",
       .media_type = "text/html",
       .capture =
           TestCapture{.key = "com,example)/a?a=1&b=2",
                       .url = "http://example.com/a?b=2&a=1",
                       .status = 200,
                       .digest = "sha1:B2LTWWPUOYAH7UIPQ7ZUPQ4VMBSVC36A"}},
      {.id = "not a capture"},
      {.id = "crawl.warc.gz/http://example.com/",
       .text = "two",
       .capture_time_ms = -1,
       .record_type = "revisit",
       .capture = TestCapture{.key = "com,example)/",
                              .url = "http://example.com/",
                              .digest = "md5:x"}},
      {.id = "renamed",
       .capture_time_ms = 0,
       .record_type = "resource",
       .capture = TestCapture{.key = "com,example)/",
                              .url = "http://example.com/\xFF"}}};
  TestSegment second;
  for (int64_t i = 0; i < 600; ++i) {
    const std::string url = absl::StrCat("http://example.org/", i % 50);
    second.push_back(
        {.id = url,
         .capture_time_ms = i / 100 * 1000,
         .capture = TestCapture{.key = absl::StrCat("org,example)/", i % 50),
                                .url = url,
                                .status = 200}});
  }
  const auto written =
      WriteTestArchive(directory + "/good/captures", options, {first, second});
  QUIRE_CHECK(written.ok(), written.status().ToString());
}

std::shared_ptr<DepositDraft> Draft(DepositDraft::File file,
                                    const std::string& bytes) {
  file.size_bytes = bytes.size();
  Sha256Summer sum;
  sum.Add(AsBytes(bytes));
  file.digest = sum.Finish();
  file.read = [bytes](uint64_t offset, MutableByteView out) {
    std::copy_n(bytes.begin() + static_cast<ptrdiff_t>(offset), out.size(),
                out.begin());
    return absl::OkStatus();
  };
  return std::make_shared<DepositDraft>(std::move(file));
}

// Three members with different headers, of which the first has more than one
// document and the last is stored; and bytes after the last.
std::shared_ptr<DepositDraft> DraftMembers(
    const std::vector<std::string>& texts) {
  DepositDraft::File file = {.path = "crawl/members.warc.gz"};
  std::string bytes;
  for (size_t i = 0; i < texts.size(); ++i) {
    std::string header("\x1F\x8B\x08\0\1\2\3\4\0\3", 10);
    if (i == 1) {
      header.assign("\x1F\x8B\x08\4\0\0\0\5\0\3\x0C\0sl\x08\0", 16);
      header.append(8, '\0');
    }
    DeflateRecipe recipe = {
        .parameters = {.encoder = i == 1 ? DeflateEncoderId::kGzip
                                         : DeflateEncoderId::kZlib,
                       .level = 9},
        .container = DeflateContainer::kGzip};
    const std::string stream =
        Compressed(recipe.parameters, recipe.container, texts[i]).substr(10);
    DepositItem item = {.size_bytes = header.size() + stream.size(),
                        .text_size_bytes = texts[i].size()};
    if (i == 1) {
      StoreLittleEndian(static_cast<uint32_t>(item.text_size_bytes),
                        AsMutableBytes(header).subspan(16).data());
      StoreLittleEndian(static_cast<uint32_t>(item.size_bytes),
                        AsMutableBytes(header).subspan(20).data());
    }
    bytes += header + stream;
    if (i < 2) {
      item.kind = DepositItem::Kind::kMember;
      item.recipe_kind = DeflateRecipeKind(recipe);
      item.header = static_cast<uint32_t>(i);
      file.headers.push_back(TakeApartHeader(AsBytes(header), item));
    }
    file.items.push_back(item);
  }
  file.items.push_back({.size_bytes = 3});
  return Draft(std::move(file), bytes + std::string(3, '\0'));
}

// Deposited files: of members, of text that a second segment continues, one
// that was withdrawn, and one that was abandoned.
void WriteDeposits(const std::string& directory) {
  const ArchiveWriterOptions options = {.codec = ParseCodecSpec("copy").value(),
                                        .block_size_bytes = 4096,
                                        .writer = "make_golden"};
  const auto writer =
      ArchiveWriter::Create(directory + "/good/deposits", options, nullptr);
  QUIRE_CHECK(writer.ok(), "no writer");
  const auto members = DraftMembers({Verse(700), Verse(500), "not reproduced"});
  const auto text_file = [](const std::string& path, const std::string& text,
                            DepositState state = DepositState::kKept) {
    return Draft({.path = path,
                  .state = state,
                  .items = {{.kind = DepositItem::Kind::kText,
                             .size_bytes = text.size(),
                             .text_size_bytes = text.size()}}},
                 text);
  };
  const auto plain = text_file("plain.warc", Verse(900));
  const auto withdrawn =
      text_file("withdrawn.warc", "gone", DepositState::kWithdrawn);
  const auto abandoned =
      text_file("abandoned.warc", "gone", DepositState::kAbandoned);
  const std::string verse = Verse(900);
  absl::Status status = WriteTestSegment(
      {{.id = "none", .text = "of no file"},
       {.id = "1a", .text = verse.substr(0, 300), .deposit = members},
       {.id = "1b", .text = verse.substr(300, 400), .deposit = members},
       {.id = "2", .text = Verse(500), .deposit = members},
       {.id = "3", .text = "not reproduced", .deposit = members},
       {.id = "4", .text = verse.substr(0, 400), .deposit = plain}},
      options.block_size_bytes, nullptr, **writer);
  status.Update(WriteTestSegment(
      {{.id = "5", .text = verse.substr(400), .deposit = plain},
       {.id = "6", .text = "gone", .deposit = withdrawn},
       {.id = "7", .text = "gone", .deposit = abandoned}},
      options.block_size_bytes, nullptr, **writer));
  status.Update((*writer)->Commit().status());
  QUIRE_CHECK(status.ok(), status.ToString());
}

// Members in blocks that are cut around them, by hand; a segment with a layout;
// and one whose blocks do not vary.
void WriteVarying(const std::string& directory) {
  const ArchiveWriterOptions options = {.codec = ParseCodecSpec("rlz").value(),
                                        .block_size_bytes = 4096,
                                        .writer = "make_golden"};
  auto context = std::make_shared<CodecContext>();
  context->dictionary = Verse(2000);
  const auto codec =
      MakePayloadCodec(options.codec, context, CodecUse::kEncodeAndDecode,
                       kInflatedLargeSizeMax);
  const auto writer =
      ArchiveWriter::Create(directory + "/good/varying", options, context);
  QUIRE_CHECK(codec.ok() && writer.ok(), "no writer");
  std::string text;
  std::mt19937_64 random(1);
  for (int i = 0; i < 900; ++i) {
    // In separate statements: compilers differ in the order of arguments.
    const uint64_t left = random() % 100;
    const uint64_t bottle = random();
    absl::StrAppend(&text, "Bottle ", absl::Hex(bottle), " fell, ", left,
                    " are left.\n");
  }
  const std::string gzip =
      Compressed({.encoder = DeflateEncoderId::kGzip, .level = 9},
                 DeflateContainer::kGzip, text);
  const std::string zlib =
      Compressed({.level = 6}, DeflateContainer::kZlib, text.substr(5000));
  QUIRE_CHECK(gzip.size() > 4096 && zlib.size() > 4096, "small members");
  const TestSegment segment = {
      {.id = "large", .text = gzip},
      {.id = "middle", .text = text.substr(0, 700) + zlib + "endstream"},
      {.id = "last", .text = "!"}};
  absl::Status status = WriteTestSegment(
      segment, {gzip.size(), 700, zlib.size(), 10}, codec->get(), **writer);
  status.Update(WriteTestSegment(
      {{.id = "first", .text = gzip}, {.id = "again", .text = gzip + "!"}},
      gzip + "!", {{gzip.size(), 0}, {gzip.size() + 1, 0}}, {gzip.size(), 1},
      codec->get(), **writer));
  status.Update(
      WriteTestSegment({{.id = "plain", .text = text.substr(0, 5000)}},
                       {4096, 904}, codec->get(), **writer));
  status.Update((*writer)->Commit().status());
  QUIRE_CHECK(status.ok(), status.ToString());
}

// One block whose inflated text is longer than a piece that is encoded at once.
void WriteParts(const std::string& directory) {
  const ArchiveWriterOptions options = {.codec = ParseCodecSpec("rlz").value(),
                                        .block_size_bytes = 65536,
                                        .writer = "make_golden"};
  const std::string verse = Verse(24000);
  auto context = std::make_shared<CodecContext>();
  context->dictionary = verse;
  const auto codec =
      MakePayloadCodec(options.codec, context, CodecUse::kEncodeAndDecode,
                       kInflatedLargeSizeMax);
  const auto writer =
      ArchiveWriter::Create(directory + "/good/parts", options, context);
  QUIRE_CHECK(codec.ok() && writer.ok(), "no writer");
  std::string text;
  std::mt19937_64 random(1);
  while (text.size() < 1'040'000) {
    text += verse.substr(random() % 20000, 700);
  }
  const std::string member =
      Compressed({.encoder = DeflateEncoderId::kGzip, .level = 9},
                 DeflateContainer::kGzip, text);
  const std::string document = verse + member + verse.substr(0, 300);
  absl::Status status =
      WriteTestSegment({{.id = "large", .text = document}}, {document.size()},
                       codec->get(), **writer);
  status.Update((*writer)->Commit().status());
  QUIRE_CHECK(status.ok(), status.ToString());
}

// Two appends to an archive: repeated ids, an empty document, and an older
// capture that was appended later.
void WriteHistory(const std::string& directory) {
  const ArchiveWriterOptions options = {.codec = ParseCodecSpec("rlz").value(),
                                        .block_size_bytes = 4096,
                                        .writer = "make_golden"};
  auto context = std::make_shared<CodecContext>();
  context->dictionary = Verse(2000);
  const std::string path = directory + "/good/history";
  QUIRE_CHECK(WriteTestArchive(path, options,
                               {{{.id = "page", .text = Verse(5000)},
                                 {.id = "other", .text = "first"}}},
                               context, 0)
                  .ok(),
              "no archive");
  const auto codec =
      MakePayloadCodec(options.codec, context, CodecUse::kEncodeAndDecode);
  QUIRE_CHECK(codec.ok(), codec.status().ToString());
  const std::vector<TestSegment> appended = {
      {{.id = "page",
        .text = Verse(6000),
        .capture_time_ms = 1700000000000,
        .record_type = "response",
        .media_type = "text/html"},
       {.id = ""}},
      {{.id = "page",
        .text = "older",
        .capture_time_ms = 1600000000000,
        .record_type = "response"},
       {.id = "last", .text = Verse(300)}}};
  for (const TestSegment& segment : appended) {
    auto change = ArchiveChange::Begin(path);
    QUIRE_CHECK(change.ok(), change.status().ToString());
    const auto writer =
        ArchiveWriter::Append(*std::move(change), "make_golden");
    absl::Status status = WriteTestSegment(segment, options.block_size_bytes,
                                           codec->get(), *writer);
    status.Update(writer->Commit().status());
    QUIRE_CHECK(status.ok(), status.ToString());
  }
}

// One document of three removed, then one appended: a redacted state, and one
// of the history.
void WriteRedacted(const std::string& directory) {
  const ArchiveWriterOptions options = {.codec = ParseCodecSpec("copy").value(),
                                        .block_size_bytes = 4096,
                                        .writer = "make_golden"};
  const std::string path = directory + "/good/redacted";
  const std::string secret = "a secret";
  const std::string text = Verse(3000);
  QUIRE_CHECK(WriteTestArchive(path, options,
                               {{{.id = "page", .text = text},
                                 {.id = "secret",
                                  .text = secret,
                                  .capture_time_ms = 1700000000000,
                                  .record_type = "response",
                                  .media_type = "text/html"},
                                 {.id = "other", .text = "not secret"}}})
                  .ok(),
              "no archive");
  {
    auto change = ArchiveChange::Begin(path);
    QUIRE_CHECK(change.ok(), change.status().ToString());
    Manifest manifest = change->manifest();
    auto segment = SegmentWriter::Create(
        change->fd(), change->name(),
        {.number = manifest.next_segment_number,
         .block_size_bytes = manifest.block_size_bytes,
         .codec_id = static_cast<uint32_t>(manifest.codec.id)});
    QUIRE_CHECK(segment.ok(), segment.status().ToString());
    const std::string block =
        absl::StrCat(text, std::string(secret.size(), '\0'), "not secret");
    absl::Status status = segment->AppendBlock(
        AsBytes(block), {.bytes = AsBytes(block), .is_raw = true});
    status.Update(
        segment->AddDocument({.id = "page", .size_bytes = text.size()}));
    status.Update(segment->AddDocument(
        {.size_bytes = secret.size(), .record_type = kWithdrawnRecordType}));
    status.Update(segment->AddDocument({.id = "other", .size_bytes = 10}));
    auto written = segment->Finish();
    status.Update(written.status());
    QUIRE_CHECK(status.ok(), status.ToString());
    manifest.next_segment_number = written->number + 1;
    manifest.segments = {*std::move(written)};
    status =
        change->Commit(std::move(manifest), EarlierStates::kRedact).status();
    QUIRE_CHECK(status.ok(), status.ToString());
  }
  auto change = ArchiveChange::Begin(path);
  QUIRE_CHECK(change.ok(), change.status().ToString());
  const auto writer = ArchiveWriter::Append(*std::move(change), "make_golden");
  absl::Status status =
      WriteTestSegment({{.id = "secret", .text = "no more"}},
                       options.block_size_bytes, nullptr, *writer);
  status.Update(writer->Commit().status());
  QUIRE_CHECK(status.ok(), status.ToString());
}

int Main(const std::string& directory) {
  std::filesystem::create_directories(directory + "/good");
  WriteGood(directory, "empty", "copy", {});
  WriteGood(directory, "one-empty-document", "copy", {{TestDocument{}}});
  WriteGood(directory, "many", "copy", ManySegments());
  WriteGood(directory, "id-runs", "lz4", LineSegments());
  WriteGood(directory, "symbol-table", "zstd", MixedSegments(), true);
  WriteGood(directory, "numbers", "numeric", NumberSegments());
  WriteLayout(directory);
  WriteGood(directory, "inflated", "rlz", MemberSegments(), false, false, true);
  WriteGood(directory, "inflated-parted", "zstd", MemberSegments(), false, true,
            true);
  WriteFields(directory);
  WriteGoodContainer(directory + "/good/container");
  WriteCaptures(directory);
  WriteDeposits(directory);
  WriteVarying(directory);
  WriteParts(directory);
  WriteHistory(directory);
  WriteRedacted(directory);
  WriteGood(directory, "members", "auto:max", NumberSegments());
  for (const CodecInfo& codec : AllCodecs()) {
    const std::string name(codec.name);
    WriteGood(directory, "mixed-" + name, name, MixedSegments());
    if (codec.takes_partitions) {
      WriteGood(directory, "parted-" + name, name, MixedSegments(), false,
                true);
    }
  }
  WriteBadArchives(directory + "/bad");
  return 0;
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--adversarial") {
    const auto info = quire::WriteAdversarialArchive(argv[2]);
    if (!info.ok()) {
      std::fprintf(stderr, "%s\n", info.status().ToString().c_str());
      return 1;
    }
    return 0;
  }
  if (argc != 2) {
    std::fprintf(stderr,
                 "usage: make_golden DIRECTORY\n"
                 "       make_golden --adversarial ARCHIVE\n");
    return 2;
  }
  return quire::Main(argv[1]);
}

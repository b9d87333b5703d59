// SPDX-License-Identifier: GPL-3.0-or-later
//
// Tests every call in every encoding against the documents: decoded here by the
// codecs alone, from both forms of the cache, for codecs of each kind.
#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "grpcpp/client_context.h"

#include "codecs/base/checksum.h"
#include "codecs/fsst/decode/fsst_decoder.h"
#include "codecs/fsst/table/symbol_table.h"
#include "codecs/payload/payload_codec.h"
#include "server/service/testing/server_fixture.h"
#include "testing/base/sanitized.h"
#include "testing/base/test_level.h"
#include "testing/codecs/deflate_test_streams.h"

namespace quire {
namespace {

constexpr v1::WireEncoding kEncodings[] = {v1::WIRE_ENCODING_IDENTITY,
                                           v1::WIRE_ENCODING_FSST,
                                           v1::WIRE_ENCODING_STORED};

// Texts of words; some are incompressible, some compressed, and some suit the
// archive's symbol table badly.
std::vector<TestDocument> MixedDocuments(uint64_t seed) {
  std::vector<TestDocument> documents = MakeDocuments(60, seed);
  std::mt19937_64 random(seed);
  for (size_t i = 5; i < documents.size(); i += 20) {
    documents[i].text.resize(50000);
    for (char& c : documents[i].text) {
      c = static_cast<char>(random());
    }
  }
  const std::string words = Concatenate(documents);
  for (size_t i = 15; i < documents.size(); i += 20) {
    documents[i].text.clear();
    for (size_t k = 0; k < 6; ++k) {
      documents[i].text +=
          ZlibStream({.level = 6}, words.substr(random() % 100'000, 7000),
                     DeflateContainer::kZlib);
    }
  }
  for (size_t i = 6; i < documents.size(); i += 20) {
    documents[i].text.resize(60000);
    for (char& c : documents[i].text) {
      c = "()[]{}<>"[random() % 8];
    }
  }
  return documents;
}

class WireEncodingTest
    : public ServerTest,
      public ::testing::WithParamInterface<std::tuple<std::string, bool>> {
 protected:
  WireEncodingTest()
      : documents_(DocumentsFor(std::get<0>(GetParam()))),
        all_(Concatenate(documents_)) {
    WriteArchive(archive_path(), documents_, std::get<0>(GetParam()),
                 TrainTable(documents_), is_reordered());
    StartServer();
    FetchTables();
  }

  // Includes compressed members if blocks may have recipes.
  static std::vector<TestDocument> DocumentsFor(const std::string& codec) {
    std::vector<TestDocument> documents = MixedDocuments(7);
    if (codec.ends_with("/inflate")) {
      const std::string text = Concatenate(documents);
      for (int i = 0; i < 40; ++i) {
        documents.push_back(
            {.id = absl::StrCat("member-", i),
             .text = GzipProgramStream(
                 9, text.substr(static_cast<size_t>(i) * 900, 4000))});
      }
    }
    return documents;
  }

  static bool is_reordered() { return std::get<1>(GetParam()); }

  // Fetches the archive's tables by their hash, like a client before decoding.
  void FetchTables() {
    grpc::ClientContext context;
    v1::GetArchiveRequest request;
    request.set_archive("docs");
    v1::GetArchiveResponse response;
    ASSERT_TRUE(stub().GetArchive(&context, request, &response).ok());
    description_ = response.archive();
    auto tables = std::make_shared<CodecContext>();
    grpc::ClientContext table_context;
    v1::GetSymbolTableRequest table_request;
    table_request.set_hash(description_.symbol_table_hash());
    v1::GetSymbolTableResponse table;
    ASSERT_TRUE(
        stub().GetSymbolTable(&table_context, table_request, &table).ok());
    EXPECT_EQ(table.checksum(), Checksum64(AsBytes(table.table())));
    EXPECT_EQ(absl::StrCat(absl::Hex(table.checksum(), absl::kZeroPad16)),
              description_.symbol_table_hash());
    tables->symbol_table = table.table();
    if (description_.has_dictionary_hash()) {
      grpc::ClientContext dictionary_context;
      v1::GetDictionaryRequest dictionary_request;
      dictionary_request.set_hash(description_.dictionary_hash());
      const auto reader =
          stub().GetDictionary(&dictionary_context, dictionary_request);
      v1::GetDictionaryResponse chunk;
      while (reader->Read(&chunk)) {
        tables->dictionary += chunk.data();
      }
    }
    tables_ = tables;
    codec_ = MakeStoredCodec(/*partition_size_bytes=*/0);
    decoder_ = std::make_unique<FsstDecoder>(
        SymbolTable::Parse(AsBytes(tables->symbol_table)).value());
  }

  std::string stored_codec() const {
    return std::string(FindCodec(description_.codec())->name);
  }

  std::unique_ptr<PayloadCodec> MakeStoredCodec(
      uint32_t partition_size_bytes) const {
    CodecSpec spec = ParseCodecSpec(stored_codec()).value();
    spec.partition_size_bytes = partition_size_bytes;
    return MakePayloadCodec(spec, tables_, CodecUse::kDecode,
                            kInflatedLargeSizeMax)
        .value();
  }

  std::string Hex(uint64_t hash) const {
    return absl::StrCat(absl::Hex(hash, absl::kZeroPad16));
  }

  std::string DecodeStored(const std::string& data,
                           const v1::EncodingDetails& details) const {
    EXPECT_EQ(details.codec(), stored_codec());
    EXPECT_EQ(details.has_table_hash() ? Hex(details.table_hash()) : "",
              description_.dictionary_hash());
    EXPECT_EQ(details.has_symbol_table_hash(),
              codec_->info().needs_symbol_table);
    // Partitions are sent as blocks, except those of a block with a recipe.
    const std::unique_ptr<PayloadCodec> whole_block_codec =
        MakeStoredCodec(details.partition_size_bytes());
    std::string text;
    size_t at = 0;
    for (const v1::StoredBlock& block : details.blocks()) {
      const std::string stored = data.substr(at, block.stored_size_bytes());
      at += stored.size();
      std::string raw(block.size_bytes(), '\0');
      recipe_count_ += block.has_recipe() ? 1 : 0;
      const PayloadCodec& codec =
          block.has_recipe() ? *whole_block_codec : *codec_;
      QUIRE_EXPECT_OK(codec.Decode({.bytes = AsBytes(stored),
                                    .is_raw = block.is_uncoded(),
                                    .has_recipe = block.has_recipe()},
                                   AsMutableBytes(raw), *codec.NewScratch()));
      text += raw;
    }
    EXPECT_EQ(at, data.size());
    return text;
  }

  // Returns the text of an answer, of any message that has one.
  template <typename Message>
  std::string Decode(const Message& message) const {
    EXPECT_EQ(message.checksum(), Checksum64(AsBytes(message.data())));
    const v1::EncodingDetails& details = message.details();
    std::string text;
    switch (message.encoding()) {
      case v1::WIRE_ENCODING_IDENTITY:
        EXPECT_FALSE(message.has_details());
        return message.data();
      case v1::WIRE_ENCODING_FSST: {
        EXPECT_LT(message.data().size(), message.range().size_bytes());
        EXPECT_LT(details.front_cut_size_bytes(), 8u);
        EXPECT_LT(details.back_cut_size_bytes(), 8u);
        EXPECT_EQ(Hex(details.table_hash()), description_.symbol_table_hash());
        const auto size = decoder_->DecodedSize(AsBytes(message.data()));
        EXPECT_THAT(size, IsOk());
        text.resize(size.value_or(0));
        QUIRE_EXPECT_OK(decoder_->DecodeExactly(AsBytes(message.data()),
                                                AsMutableBytes(text)));
        break;
      }
      case v1::WIRE_ENCODING_STORED:
        EXPECT_LT(details.front_cut_size_bytes(), kBlockSizeBytesMax);
        EXPECT_LT(details.back_cut_size_bytes(), kBlockSizeBytesMax);
        text = DecodeStored(message.data(), details);
        break;
      default:
        ADD_FAILURE() << "encoding " << message.encoding();
        return "";
    }
    const size_t cut_size =
        size_t{details.front_cut_size_bytes()} + details.back_cut_size_bytes();
    EXPECT_LE(cut_size, text.size());
    return text.substr(details.front_cut_size_bytes(),
                       text.size() - std::min(text.size(), cut_size));
  }

  v1::ReadRequest RangeRequest(uint64_t offset, uint64_t size_bytes,
                               v1::WireEncoding encoding) const {
    v1::ReadRequest request;
    request.set_archive("docs");
    request.mutable_range()->set_offset(offset);
    request.mutable_range()->set_size_bytes(size_bytes);
    request.add_accepted_encodings(encoding);
    request.add_accepted_encodings(v1::WIRE_ENCODING_STORED_RECIPES);
    return request;
  }

  v1::ReadResponse Read(const v1::ReadRequest& request) {
    grpc::ClientContext context;
    v1::ReadResponse response;
    const grpc::Status status = stub().Read(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  const std::vector<TestDocument> documents_;
  const std::string all_;
  v1::ArchiveDescription description_;
  std::shared_ptr<const CodecContext> tables_;
  std::unique_ptr<PayloadCodec> codec_;
  // Number of decoded blocks with recipes.
  mutable int recipe_count_ = 0;
  std::unique_ptr<FsstDecoder> decoder_;
};

TEST_P(WireEncodingTest, ReadsAnyRange) {
  std::mt19937_64 random(11);
  std::map<v1::WireEncoding, int> counts;
  const int reads = TestRounds(150, 600);
  for (int i = 0; i < reads; ++i) {
    const uint64_t offset = random() % (all_.size() + 1);
    const uint64_t size_bytes = std::min<uint64_t>(
        random() % (i % 3 == 0 ? 200000 : 2000), all_.size() - offset);
    const v1::WireEncoding encoding = kEncodings[i % 3];
    const v1::ReadResponse response =
        Read(RangeRequest(offset, size_bytes, encoding));
    ASSERT_TRUE(Decode(response) == all_.substr(offset, size_bytes))
        << offset << " + " << size_bytes << " in " << encoding;
    ++counts[response.encoding()];
    // Text that is not stored contiguously is answered in identity.
    if (encoding == v1::WIRE_ENCODING_STORED && size_bytes > 0 &&
        !is_reordered()) {
      EXPECT_EQ(response.encoding(), encoding);
    }
  }
  EXPECT_GT(counts[v1::WIRE_ENCODING_STORED], reads / 6);
  EXPECT_EQ(recipe_count_ > 0, std::get<0>(GetParam()).ends_with("/inflate"));
  // Noise is answered in identity whatever is requested; the rest is text.
  EXPECT_GT(counts[v1::WIRE_ENCODING_FSST], reads / (is_reordered() ? 12 : 6));
}

// All offsets within symbols, strings and blocks at which an answer can begin
// and end.
TEST_P(WireEncodingTest, CutsAtEveryAlignment) {
  const uint64_t block_size_bytes = description_.block_size_bytes();
  for (const uint64_t near : {uint64_t{0}, uint64_t{511}, 2 * uint64_t{511},
                              block_size_bytes, 2 * block_size_bytes}) {
    for (uint64_t offset = near - std::min<uint64_t>(near, 9);
         offset < near + 9; ++offset) {
      for (const uint64_t size_bytes :
           {uint64_t{1}, uint64_t{9}, uint64_t{511}, block_size_bytes}) {
        const v1::WireEncoding encoding = kEncodings[1 + offset % 2];
        const v1::ReadResponse response =
            Read(RangeRequest(offset, size_bytes, encoding));
        ASSERT_TRUE(Decode(response) == all_.substr(offset, size_bytes))
            << offset << " + " << size_bytes << " in " << encoding;
      }
    }
  }
}

TEST_P(WireEncodingTest, EmptyRangesComeInIdentity) {
  for (const v1::WireEncoding encoding : kEncodings) {
    const v1::ReadResponse response = Read(RangeRequest(5, 0, encoding));
    EXPECT_EQ(response.encoding(), v1::WIRE_ENCODING_IDENTITY);
    EXPECT_EQ(Decode(response), "");
  }
}

TEST_P(WireEncodingTest, StreamsAndScans) {
  for (const v1::WireEncoding encoding : kEncodings) {
    for (const auto& [offset, size_bytes] :
         std::vector<std::pair<uint64_t, uint64_t>>{
             {0, all_.size()}, {12345, 600001}, {77, 0}}) {
      const std::string expected = all_.substr(offset, size_bytes);
      grpc::ClientContext context;
      const auto stream = stub().ReadStream(
          &context, RangeRequest(offset, size_bytes, encoding));
      v1::ReadStreamResponse message;
      std::string text;
      while (stream->Read(&message)) {
        EXPECT_EQ(message.range().offset(), offset + text.size());
        text += Decode(message);
      }
      EXPECT_TRUE(stream->Finish().ok());
      EXPECT_TRUE(text == expected);

      v1::ScanRequest request;
      request.set_archive("docs");
      request.set_offset(offset);
      request.set_size_bytes(size_bytes);
      request.add_accepted_encodings(encoding);
      request.add_accepted_encodings(v1::WIRE_ENCODING_STORED_RECIPES);
      grpc::ClientContext scan_context;
      const auto scan = stub().Scan(&scan_context, request);
      v1::ScanResponse scanned;
      text.clear();
      while (scan->Read(&scanned)) {
        text += Decode(scanned);
      }
      EXPECT_TRUE(scan->Finish().ok());
      EXPECT_TRUE(text == expected);
    }
  }
}

TEST_P(WireEncodingTest, AnswersBatches) {
  for (const v1::WireEncoding encoding : kEncodings) {
    grpc::ClientContext context;
    const auto stream = stub().BatchRead(&context);
    v1::BatchReadRequest request;
    request.set_archive("docs");
    request.add_accepted_encodings(encoding);
    for (size_t i = 0; i < documents_.size(); ++i) {
      v1::BatchItem& item = *request.add_items();
      item.set_tag(i);
      item.mutable_document()->set_ordinal(i);
    }
    v1::BatchItem& bad = *request.add_items();
    bad.set_tag(documents_.size());
    bad.mutable_document()->set_ordinal(documents_.size());
    ASSERT_TRUE(stream->Write(request));
    stream->WritesDone();
    size_t answer_count = 0;
    v1::BatchReadResponse response;
    while (stream->Read(&response)) {
      for (const v1::BatchResult& result : response.results()) {
        ++answer_count;
        if (result.tag() == documents_.size()) {
          EXPECT_EQ(result.status().reason(), v1::DOCUMENT_NOT_FOUND);
        } else {
          EXPECT_TRUE(Decode(result) == documents_[result.tag()].text);
        }
      }
    }
    EXPECT_TRUE(stream->Finish().ok());
    EXPECT_EQ(answer_count, documents_.size() + 1);
  }
}

TEST_P(WireEncodingTest, RecipesGoOnlyToClientsThatTakeThem) {
  v1::ReadRequest request = RangeRequest(0, 9000, v1::WIRE_ENCODING_STORED);
  const bool has_recipes = std::get<0>(GetParam()).ends_with("/inflate");
  if (!is_reordered()) {
    EXPECT_EQ(Read(request).encoding(), v1::WIRE_ENCODING_STORED);
  }
  request.clear_accepted_encodings();
  request.add_accepted_encodings(v1::WIRE_ENCODING_STORED);
  const v1::ReadResponse response = Read(request);
  EXPECT_TRUE(Decode(response) == all_.substr(0, 9000));
  if (has_recipes) {
    EXPECT_EQ(response.encoding(), v1::WIRE_ENCODING_IDENTITY);
  } else if (!is_reordered()) {
    EXPECT_EQ(response.encoding(), v1::WIRE_ENCODING_STORED);
  }
  request.clear_accepted_encodings();
  request.add_accepted_encodings(v1::WIRE_ENCODING_STORED_RECIPES);
  EXPECT_EQ(Read(request).encoding(), v1::WIRE_ENCODING_IDENTITY);
}

TEST_P(WireEncodingTest, GivesTheFirstEncodingItCan) {
  const auto encoding_for = [&](const std::vector<int>& accepted) {
    v1::ReadRequest request = RangeRequest(0, 9000, v1::WIRE_ENCODING_FSST);
    request.clear_accepted_encodings();
    for (const int encoding : accepted) {
      request.add_accepted_encodings(static_cast<v1::WireEncoding>(encoding));
    }
    const v1::ReadResponse response = Read(request);
    EXPECT_TRUE(Decode(response) == all_.substr(0, 9000));
    return static_cast<int>(response.encoding());
  };
  EXPECT_EQ(encoding_for({}), 1);
  EXPECT_EQ(encoding_for({0}), 1);
  EXPECT_EQ(encoding_for({99, -1}), 1);
  EXPECT_EQ(encoding_for({2, 1}), 2);
  EXPECT_EQ(encoding_for({1, 2, 3}), 1);
  // Stored blocks with recipes go only to clients that accept both values.
  const bool has_recipes = std::get<0>(GetParam()).ends_with("/inflate");
  EXPECT_EQ(encoding_for({3, 2}), has_recipes ? 2 : 3);
  EXPECT_EQ(encoding_for({77, 0, 2, 3}), 2);
}

std::string NameOf(
    const ::testing::TestParamInfo<WireEncodingTest::ParamType>& test_case) {
  return absl::StrReplaceAll(std::get<0>(test_case.param),
                             {{":", "_"}, {"-", "_"}, {"/", "_"}});
}

INSTANTIATE_TEST_SUITE_P(
    Codecs, WireEncodingTest,
    // Codecs without tables, with a dictionary, without their own table, with
    // the symbol table, and with others in some blocks; then those with
    // recipes, whose blocks vary, and with partitions.
    ::testing::Combine(::testing::ValuesIn(SomeOf<std::string>(
                           {"rlz", "zstd", "fsst:1", "copy", "rlz/inflate",
                            "fsst:2", "zstd/parts/inflate", "lz4/parts",
                            "rlz/parts", "zlib/parts", "zstd/parts"},
                           2)),
                       ::testing::Values(false)),
    NameOf);

INSTANTIATE_TEST_SUITE_P(
    Reordered, WireEncodingTest,
    ::testing::Combine(::testing::ValuesIn(SomeOf<std::string>(
                           {"rlz/inflate", "rlz", "zlib/parts", "fsst:2"}, 2)),
                       ::testing::Values(true)),
    NameOf);

}  // namespace
}  // namespace quire

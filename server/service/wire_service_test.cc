// SPDX-License-Identifier: GPL-3.0-or-later
//
// Tests wire encodings around the answers: tables, damage, reloading, limits,
// metrics. wire_encoding_test.cc tests the answers.
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/client_context.h"

#include "codecs/fsst/decode/fsst_decoder.h"
#include "codecs/fsst/table/symbol_table.h"
#include "server/service/testing/server_fixture.h"

namespace quire {
namespace {

class WireServiceTest : public ServerTest {
 protected:
  v1::ReadRequest Request(uint64_t offset, uint64_t size_bytes,
                          v1::WireEncoding encoding) const {
    v1::ReadRequest request;
    request.set_archive("docs");
    request.mutable_range()->set_offset(offset);
    request.mutable_range()->set_size_bytes(size_bytes);
    request.add_accepted_encodings(encoding);
    return request;
  }

  grpc::Status Read(const v1::ReadRequest& request,
                    v1::ReadResponse* response) {
    grpc::ClientContext context;
    return stub().Read(&context, request, response);
  }

  v1::GetArchiveResponse Describe() {
    grpc::ClientContext context;
    v1::GetArchiveRequest request;
    request.set_archive("docs");
    v1::GetArchiveResponse response;
    EXPECT_TRUE(stub().GetArchive(&context, request, &response).ok());
    return response;
  }

  grpc::Status GetTable(const std::string& hash,
                        v1::GetSymbolTableResponse* response) {
    grpc::ClientContext context;
    v1::GetSymbolTableRequest request;
    request.set_hash(hash);
    return stub().GetSymbolTable(&context, request, response);
  }

  // Returns the text of an answer in FSST, by the table that it names.
  std::string DecodeFsst(const v1::ReadResponse& response) {
    EXPECT_EQ(response.encoding(), v1::WIRE_ENCODING_FSST);
    v1::GetSymbolTableResponse table;
    EXPECT_TRUE(GetTable(absl::StrCat(absl::Hex(response.details().table_hash(),
                                                absl::kZeroPad16)),
                         &table)
                    .ok());
    const auto parsed = SymbolTable::Parse(AsBytes(table.table()));
    EXPECT_THAT(parsed, IsOk());
    std::string text(8 * response.data().size(), '\0');
    const auto size = FsstDecoder(*parsed).Decode(AsBytes(response.data()),
                                                  AsMutableBytes(text));
    EXPECT_THAT(size, IsOk());
    return text.substr(response.details().front_cut_size_bytes(),
                       response.range().size_bytes());
  }

  const std::vector<TestDocument> documents_ = MakeDocuments(60, 5);
  const std::string all_ = Concatenate(documents_);
};

TEST_F(WireServiceTest, WithoutTableThereIsNoFsst) {
  WriteArchive(archive_path(), documents_);
  StartServer();
  EXPECT_FALSE(Describe().archive().has_symbol_table_hash());
  v1::ReadRequest request = Request(3, 50000, v1::WIRE_ENCODING_FSST);
  v1::ReadResponse response;
  ASSERT_TRUE(Read(request, &response).ok());
  EXPECT_EQ(response.encoding(), v1::WIRE_ENCODING_IDENTITY);
  EXPECT_TRUE(response.data() == all_.substr(3, 50000));
  request.add_accepted_encodings(v1::WIRE_ENCODING_STORED);
  ASSERT_TRUE(Read(request, &response).ok());
  EXPECT_EQ(response.encoding(), v1::WIRE_ENCODING_STORED);
  v1::GetSymbolTableResponse table;
  for (const char* hash : {"", "0123456789abcdef", "symbols"}) {
    const grpc::Status status = GetTable(hash, &table);
    EXPECT_EQ(status.error_code(), grpc::NOT_FOUND);
    EXPECT_EQ(ReasonIn(status), "SYMBOL_TABLE_NOT_FOUND");
  }
}

TEST_F(WireServiceTest, DamagedBlocksAreNotSentAsStored) {
  WriteArchive(archive_path(), documents_, "zstd", TrainTable(documents_));
  {
    std::fstream segment(archive_path() + "/segment-00000000",
                         std::ios::in | std::ios::out | std::ios::binary);
    segment.seekp(50);
    segment.put('\x55');
    segment.put('\x55');
  }
  StartServer();
  for (const v1::WireEncoding encoding :
       {v1::WIRE_ENCODING_IDENTITY, v1::WIRE_ENCODING_FSST,
        v1::WIRE_ENCODING_STORED}) {
    v1::ReadResponse response;
    const grpc::Status status = Read(Request(10, 20000, encoding), &response);
    EXPECT_EQ(status.error_code(), grpc::DATA_LOSS);
    EXPECT_EQ(ReasonIn(status), "BLOCK_DAMAGED");
    ASSERT_TRUE(Read(Request(16384, 20000, encoding), &response).ok());
  }
}

TEST_F(WireServiceTest, ReloadsToAnotherTable) {
  const std::string first_table = TrainTable(documents_);
  const std::string second_table = TrainTable(MakeDocuments(9, 99));
  ASSERT_NE(first_table, second_table);
  WriteArchive(archive_path(), documents_, "zstd", first_table);
  StartServer();
  const std::string first_hash = Describe().archive().symbol_table_hash();
  v1::ReadResponse response;
  ASSERT_TRUE(Read(Request(5, 9999, v1::WIRE_ENCODING_FSST), &response).ok());
  EXPECT_TRUE(DecodeFsst(response) == all_.substr(5, 9999));
  WriteArchive(archive_path(), documents_, "zstd", second_table);
  Reload();
  const std::string second_hash = Describe().archive().symbol_table_hash();
  EXPECT_NE(second_hash, first_hash);
  ASSERT_TRUE(Read(Request(5, 9999, v1::WIRE_ENCODING_FSST), &response).ok());
  EXPECT_TRUE(DecodeFsst(response) == all_.substr(5, 9999));
  v1::GetSymbolTableResponse table;
  EXPECT_EQ(GetTable(first_hash, &table).error_code(), grpc::NOT_FOUND);
  EXPECT_TRUE(GetTable(second_hash, &table).ok());
  EXPECT_EQ(table.table(), second_table);
}

TEST_F(WireServiceTest, LimitsAreOfDecodedBytes) {
  WriteArchive(archive_path(), MakeDocuments(600, 5), "zstd",
               TrainTable(documents_));
  ServerOptions options;
  // The minimum: a Read of the largest size must be possible.
  options.memory_bytes = uint64_t{180} << 20;
  StartServer(options);
  const uint64_t size_bytes_max = Describe().limits().read_size_bytes_max();
  ASSERT_GT(Describe().archive().size_bytes(), size_bytes_max);
  for (const v1::WireEncoding encoding :
       {v1::WIRE_ENCODING_IDENTITY, v1::WIRE_ENCODING_FSST,
        v1::WIRE_ENCODING_STORED}) {
    v1::ReadResponse response;
    grpc::Status good;
    // While the last answer is being released, two of this size are too many.
    do {
      good = Read(Request(7, size_bytes_max, encoding), &response);
    } while (ReasonIn(good) == "SERVER_BUSY");
    EXPECT_TRUE(good.ok()) << good.error_message();
    EXPECT_EQ(response.encoding(), encoding);
    const grpc::Status status =
        Read(Request(7, size_bytes_max + 1, encoding), &response);
    EXPECT_EQ(ReasonIn(status), "LIMIT_EXCEEDED");
  }
}

TEST_F(WireServiceTest, CountsAnswersAndTheirBytes) {
  WriteArchive(archive_path(), documents_, "zstd", TrainTable(documents_));
  ServerOptions options;
  options.metrics_address = "127.0.0.1:0";
  StartServer(options);
  uint64_t wire_bytes = 0;
  for (int i = 0; i < 3; ++i) {
    v1::ReadResponse response;
    ASSERT_TRUE(
        Read(Request(1, 20000, v1::WIRE_ENCODING_FSST), &response).ok());
    wire_bytes += response.data().size();
  }
  const std::string metrics = HttpGet(server().metrics_address(), "/metrics");
  for (const std::string& line :
       {std::string("quire_answers_total{encoding=\"fsst\"} 3"),
        std::string("quire_answers_total{encoding=\"stored\"} 0"),
        std::string(
            "quire_answer_decoded_bytes_total{encoding=\"fsst\"} 60000"),
        absl::StrCat("quire_answer_wire_bytes_total{encoding=\"fsst\"} ",
                     wire_bytes)}) {
    EXPECT_TRUE(absl::StrContains(metrics, line)) << line;
  }
}

// Tests small and large documents in a small cache, in every encoding, by calls
// of all lengths.
TEST_F(WireServiceTest, ASmallCacheServesEveryEncoding) {
  const std::vector<TestDocument> documents = MakeDocuments(400, 21);
  const std::string all = Concatenate(documents);
  WriteArchive(archive_path(), documents, "lz4", TrainTable(documents));
  ServerOptions options;
  options.memory_bytes = uint64_t{170} << 20;
  StartServer(options);
  std::mt19937_64 random(13);
  for (int i = 0; i < 400; ++i) {
    const uint64_t offset = random() % all.size();
    const uint64_t size_bytes = std::min<uint64_t>(
        1 + random() % (i % 20 == 0 ? 1500000 : 3000), all.size() - offset);
    v1::ReadResponse response;
    const bool is_fsst = i % 2 == 0;
    const grpc::Status status = Read(
        Request(offset, size_bytes,
                is_fsst ? v1::WIRE_ENCODING_FSST : v1::WIRE_ENCODING_IDENTITY),
        &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    const bool is_encoded = response.encoding() == v1::WIRE_ENCODING_FSST;
    ASSERT_TRUE((is_encoded ? DecodeFsst(response) : response.data()) ==
                all.substr(offset, size_bytes))
        << offset << " + " << size_bytes << ", seed 13";
  }
}

}  // namespace
}  // namespace quire

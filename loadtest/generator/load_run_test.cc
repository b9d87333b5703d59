// SPDX-License-Identifier: Apache-2.0
//
// Tests that the load generator detects every fault of a server, with a server
// that makes faults on request.
#include "loadtest/generator/load_run.h"

#include <unistd.h>

#include <atomic>
#include <fstream>
#include <random>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"

#include "proto/error_details.h"
#include "proto/quire/v1/archive.grpc.pb.h"

#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

enum class Misdeed {
  kNone,
  kFlippedByte,
  kFalseChecksum,
  kShiftedRange,
  kMissingByte,
  kOtherDocument,
  kFail,
  // States when to retry.
  kBusy,
};

constexpr uint64_t kReadSizeMax = 4096;
constexpr size_t kDocumentCount = 50;

grpc::Status BusyStatus() {
  ErrorDetails details;
  details.reason = v1::ErrorReason_Name(v1::SERVER_BUSY);
  details.retry_delay = absl::Milliseconds(1);
  return {grpc::StatusCode::RESOURCE_EXHAUSTED, "busy",
          SerializeErrorDetails(absl::StatusCode::kResourceExhausted, "busy",
                                details)};
}

class SimpleServer final : public v1::Archive::Service {
 public:
  SimpleServer(const std::string& text, const std::vector<SourceRow>& rows)
      : text_(text), rows_(rows) {}

  // Every tenth answer has the fault.
  void set_misdeed(Misdeed misdeed) { misdeed_ = misdeed; }

  uint64_t stream_count() const { return stream_count_; }

  grpc::Status GetArchive(grpc::ServerContext*, const v1::GetArchiveRequest*,
                          v1::GetArchiveResponse* response) override {
    response->mutable_archive()->set_size_bytes(text_.size());
    response->mutable_archive()->set_document_count(rows_.size());
    response->mutable_limits()->set_read_size_bytes_max(kReadSizeMax);
    response->mutable_limits()->set_batch_message_items_max(100);
    return grpc::Status::OK;
  }

  grpc::Status Read(grpc::ServerContext*, const v1::ReadRequest* request,
                    v1::ReadResponse* response) override {
    v1::ByteRange range = request->range();
    if (request->has_document()) {
      range = DescribeDocument(request->document().id(),
                               *response->mutable_document());
    }
    if (range.size_bytes() > kReadSizeMax) {
      return {grpc::StatusCode::RESOURCE_EXHAUSTED, "over the limit"};
    }
    Fill(range, *response);
    return Spoil(*response);
  }

  grpc::Status ReadStream(
      grpc::ServerContext*, const v1::ReadRequest* request,
      grpc::ServerWriter<v1::ReadStreamResponse>* writer) override {
    ++stream_count_;
    v1::ReadStreamResponse response;
    v1::ByteRange left = request->range();
    if (request->has_document()) {
      left = DescribeDocument(request->document().id(),
                              *response.mutable_document());
    }
    while (left.size_bytes() > 0) {
      v1::ByteRange piece = left;
      piece.set_size_bytes(std::min<uint64_t>(1000, left.size_bytes()));
      Fill(piece, response);
      writer->Write(response);
      response.clear_document();
      left.set_offset(left.offset() + piece.size_bytes());
      left.set_size_bytes(left.size_bytes() - piece.size_bytes());
    }
    return grpc::Status::OK;
  }

 private:
  v1::ByteRange DescribeDocument(const std::string& id,
                                 v1::Document& document) const {
    uint64_t ordinal = 0;
    while (rows_.at(ordinal).id != id) {
      ++ordinal;
    }
    document.set_ordinal(ordinal);
    document.set_id(id);
    document.mutable_range()->set_offset(rows_[ordinal].offset);
    document.mutable_range()->set_size_bytes(rows_[ordinal].size_bytes);
    return document.range();
  }

  template <typename Message>
  void Fill(const v1::ByteRange& range, Message& message) const {
    *message.mutable_range() = range;
    message.set_encoding(v1::WIRE_ENCODING_IDENTITY);
    message.set_data(text_.substr(range.offset(), range.size_bytes()));
    message.set_checksum(Checksum64(AsBytes(message.data())));
  }

  grpc::Status Spoil(v1::ReadResponse& response) {
    if (misdeed_ == Misdeed::kNone || ++read_count_ % 10 != 0) {
      return grpc::Status::OK;
    }
    switch (misdeed_) {
      case Misdeed::kNone:
        break;
      case Misdeed::kFlippedByte:
        response.mutable_data()->back() ^= 1;
        response.set_checksum(Checksum64(AsBytes(response.data())));
        break;
      case Misdeed::kFalseChecksum:
        response.set_checksum(response.checksum() + 1);
        break;
      case Misdeed::kShiftedRange:
        response.mutable_range()->set_offset(response.range().offset() + 1);
        break;
      case Misdeed::kMissingByte:
        response.mutable_data()->pop_back();
        response.mutable_range()->set_size_bytes(response.data().size());
        response.set_checksum(Checksum64(AsBytes(response.data())));
        break;
      case Misdeed::kOtherDocument:
        response.mutable_document()->set_id("other");
        break;
      case Misdeed::kFail:
        return {grpc::StatusCode::INTERNAL, "a fault"};
      case Misdeed::kBusy:
        return BusyStatus();
    }
    return grpc::Status::OK;
  }

  const std::string& text_;
  const std::vector<SourceRow>& rows_;
  std::atomic<Misdeed> misdeed_ = Misdeed::kNone;
  std::atomic<uint64_t> read_count_ = 0;
  std::atomic<uint64_t> stream_count_ = 0;
};

class LoadRunTest : public ::testing::Test {
 protected:
  LoadRunTest() {
    std::mt19937 random(20261121);
    std::ofstream index(index_path_);
    for (size_t i = 0; i < kDocumentCount; ++i) {
      const size_t size = 1 + random() % 3000 + (i % 10 == 0 ? 5000 : 0);
      rows_.push_back({text_.size(), size, absl::StrCat("document/", i)});
      index << text_.size() << "\t" << size << "\t" << rows_.back().id << "\n";
      for (size_t byte = 0; byte < size; ++byte) {
        text_.push_back(static_cast<char>(random()));
      }
    }
    std::ofstream(text_path_, std::ios::binary) << text_;
  }

  void SetUp() override {
    QUIRE_ASSERT_OK_AND_ASSIGN(source_,
                               SourceText::Open(text_path_, index_path_));
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    options_.archive = "a";
    options_.request_count = 500;
    options_.range_size_bytes = 2000;
  }

  void TearDown() override {
    unlink(text_path_.c_str());
    unlink(index_path_.c_str());
  }

  absl::StatusOr<LoadReport> Load(LoadKind kind, Misdeed misdeed) {
    options_.what = kind;
    service_.set_misdeed(misdeed);
    return Load();
  }

  absl::StatusOr<LoadReport> Load() {
    LoadInputs inputs;
    inputs.channels = {server_->InProcessChannel({})};
    inputs.source = source_.get();
    return RunLoad(inputs, options_);
  }

  const std::string stem_ =
      absl::StrCat(::testing::TempDir(), "/load_run_test.", getpid());
  const std::string text_path_ = stem_ + ".raw";
  const std::string index_path_ = stem_ + ".tsv";
  std::string text_;
  std::vector<SourceRow> rows_;
  std::unique_ptr<SourceText> source_;
  SimpleServer service_{text_, rows_};
  std::unique_ptr<grpc::Server> server_;
  LoadOptions options_;
};

TEST_F(LoadRunTest, FindsNothingWrongWithRightRanges) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const LoadReport report,
                             Load(LoadKind::kRanges, Misdeed::kNone));
  EXPECT_EQ(report.request_count, 500u);
  EXPECT_EQ(report.right_count, 500u);
  EXPECT_EQ(report.wrong_count, 0u);
  EXPECT_TRUE(report.errors.empty());
  EXPECT_EQ(report.latency.count(), 500u);
  EXPECT_GT(report.text_bytes, 500u);
  EXPECT_GT(report.elapsed_seconds, 0);
}

TEST_F(LoadRunTest, StreamsDocumentsThatAreTooLargeForOneRead) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const LoadReport report,
                             Load(LoadKind::kDocuments, Misdeed::kNone));
  EXPECT_EQ(report.right_count, 500u)
      << ::testing::PrintToString(report.faults);
  EXPECT_GT(service_.stream_count(), 0u);
  EXPECT_LT(service_.stream_count(), 500u);
}

TEST_F(LoadRunTest, ReadsTheSameWhateverIsInFlight) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const LoadReport many,
                             Load(LoadKind::kDocuments, Misdeed::kNone));
  options_.in_flight = 1;
  QUIRE_ASSERT_OK_AND_ASSIGN(const LoadReport one,
                             Load(LoadKind::kDocuments, Misdeed::kNone));
  EXPECT_EQ(one.text_bytes, many.text_bytes);
}

TEST_F(LoadRunTest, CountsErrorsByCode) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const LoadReport report,
                             Load(LoadKind::kRanges, Misdeed::kFail));
  EXPECT_EQ(report.right_count, 450u);
  EXPECT_EQ(report.wrong_count, 0u);
  EXPECT_EQ(report.retry_count, 0u);
  EXPECT_THAT(report.errors, ElementsAre(Pair("INTERNAL", 50u)));
  EXPECT_EQ(report.faults.size(), 5u);
}

TEST_F(LoadRunTest, CallsAgainWhenABusyServerSaysWhen) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const LoadReport report,
                             Load(LoadKind::kRanges, Misdeed::kBusy));
  EXPECT_EQ(report.right_count, 500u);
  EXPECT_GE(report.retry_count, 50u);
  EXPECT_TRUE(report.errors.empty());
}

struct WrongAnswer {
  Misdeed misdeed;
  LoadKind kind;
  const char* fault;
};

TEST_F(LoadRunTest, NoticesEachKindOfWrongAnswer) {
  const WrongAnswer cases[] = {
      {Misdeed::kFlippedByte, LoadKind::kRanges, "the bytes differ"},
      {Misdeed::kFalseChecksum, LoadKind::kRanges, "checksum"},
      {Misdeed::kShiftedRange, LoadKind::kRanges, "wrong range"},
      {Misdeed::kMissingByte, LoadKind::kRanges, "bytes came"},
      {Misdeed::kOtherDocument, LoadKind::kDocuments, "another document"},
  };
  for (const WrongAnswer& wrong : cases) {
    SCOPED_TRACE(wrong.fault);
    QUIRE_ASSERT_OK_AND_ASSIGN(const LoadReport report,
                               Load(wrong.kind, wrong.misdeed));
    EXPECT_GT(report.wrong_count, 0u);
    EXPECT_EQ(report.right_count + report.wrong_count, 500u);
    ASSERT_FALSE(report.faults.empty());
    EXPECT_THAT(report.faults.front(), HasSubstr(wrong.fault));
  }
}

TEST_F(LoadRunTest, StopsWhenItsTimeIsOver) {
  options_.duration = std::chrono::milliseconds(1);
  options_.request_count.reset();
  QUIRE_ASSERT_OK_AND_ASSIGN(const LoadReport report,
                             Load(LoadKind::kRanges, Misdeed::kNone));
  EXPECT_EQ(report.end, LoadEnd::kDuration);
  EXPECT_GT(report.request_count, 0u);
  EXPECT_EQ(report.right_count, report.request_count);
}

TEST_F(LoadRunTest, RefusesAnotherSource) {
  std::ofstream(text_path_, std::ios::binary | std::ios::app) << "more";
  QUIRE_ASSERT_OK_AND_ASSIGN(source_,
                             SourceText::Open(text_path_, index_path_));
  EXPECT_THAT(Load(LoadKind::kRanges, Misdeed::kNone),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        HasSubstr("bytes, its source")));
}

TEST_F(LoadRunTest, RefusesRangesThatDoNotFit) {
  options_.range_size_bytes = text_.size();
  QUIRE_ASSERT_OK_AND_ASSIGN(const LoadReport whole,
                             Load(LoadKind::kRanges, Misdeed::kNone));
  EXPECT_EQ(whole.right_count, 500u) << ::testing::PrintToString(whole.faults);
  options_.range_size_bytes = text_.size() + 1;
  EXPECT_THAT(Load(LoadKind::kRanges, Misdeed::kNone),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        HasSubstr("do not fit into archive 'a', which has ")));
  QUIRE_EXPECT_OK(Load(LoadKind::kDocuments, Misdeed::kNone).status());
}

TEST_F(LoadRunTest, SourceTextNamesTheBadLine) {
  std::ofstream(index_path_) << "0\t1\tfine\n0\tx\tbad\n";
  EXPECT_THAT(SourceText::Open(text_path_, index_path_),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        HasSubstr("line 2 is not")));
  std::ofstream(index_path_) << "1\t" << text_.size() << "\tlong\n";
  EXPECT_THAT(SourceText::Open(text_path_, index_path_),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        HasSubstr("line 1 reaches past")));
  EXPECT_THAT(SourceText::Open(stem_ + ".none", ""),
              HasCode(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace quire

// SPDX-License-Identifier: GPL-3.0-or-later
//
// Tests the reading calls over a real connection and a device that the test
// blocks: the blocks fetched, their order, and withdrawn reads.
#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "prometheus/registry.h"

#include "proto/error_details.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/checksum.h"
#include "server/archive/archive_writer.h"
#include "server/service/calls/archive_service.h"
#include "server/service/testing/server_fixture.h"
#include "testing/storage/storage_test_util.h"

namespace quire {
namespace {

constexpr uint64_t kBlockSizeBytes = 16 * kKiB;

// Passes or blocks the reads of a device. Thread-safe; outlives the device.
class ReadGate {
 public:
  void Hold() {
    MutexLock lock(&mutex_);
    is_held_ = true;
  }

  // Passes the blocked reads and all later ones.
  void Release() {
    std::vector<std::pair<DeviceRead, const Device::Done*>> released;
    {
      MutexLock lock(&mutex_);
      is_held_ = false;
      released.swap(held_);
    }
    for (const auto& [read, done] : released) {
      Serve(read, *done);
    }
  }

  // Returns the offsets of all reads so far, in order.
  std::vector<FileOffset> offsets() const {
    MutexLock lock(&mutex_);
    return offsets_;
  }

  size_t held_count() const {
    MutexLock lock(&mutex_);
    return held_.size();
  }

  // `done` must not move until the read is served.
  void Pass(const DeviceRead& read, const Device::Done& done) {
    {
      MutexLock lock(&mutex_);
      offsets_.push_back(read.offset);
      if (is_held_) {
        held_.emplace_back(read, &done);
        return;
      }
    }
    Serve(read, done);
  }

 private:
  static void Serve(const DeviceRead& read, const Device::Done& done) {
    DeviceResult result = ReadForTest(read);
    done({&result, 1});
  }

  mutable Mutex mutex_;
  bool is_held_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::pair<DeviceRead, const Device::Done*>> held_
      ABSL_GUARDED_BY(mutex_);
  std::vector<FileOffset> offsets_ ABSL_GUARDED_BY(mutex_);
};

class GatedDevice final : public Device {
 public:
  GatedDevice(ReadGate& gate, Done done)
      : gate_(gate), done_(std::move(done)) {}

  void Submit(std::span<const DeviceRead> reads) override {
    for (const DeviceRead& read : reads) {
      gate_.Pass(read, done_);
    }
  }

  std::string name() const override { return "gated"; }

 private:
  ReadGate& gate_;
  const Done done_;
};

// Waits for a state that is reached soon. Returns false after a minute, which
// is enough on any machine.
bool Await(absl::FunctionRef<bool()> holds) {
  const absl::Time give_up = absl::Now() + absl::Minutes(1);
  while (!holds()) {
    if (absl::Now() > give_up) {
      return false;
    }
    absl::SleepFor(absl::Milliseconds(2));
  }
  return true;
}

class CallsTest : public ServerTest {
 protected:
  using Batch =
      grpc::ClientReaderWriter<v1::BatchReadRequest, v1::BatchReadResponse>;

  CallsTest() : all_(Concatenate(documents_)) {
    WriteArchive(archive_path(), documents_, "copy");
    limits_.set_in_flight_size_bytes_max(64 * kMiB);
    limits_.set_client_in_flight_size_bytes_max(64 * kMiB);
    limits_.set_read_size_bytes_max(8 * kMiB);
    // Not a multiple of the block size.
    limits_.set_chunk_size_bytes_max(100'000);
    limits_.set_batch_message_items_max(4096);
    limits_.set_batch_pending_items_max(131'072);
    limits_.set_page_size_max(1000);
    limits_.set_document_id_size_bytes_max(64 * kKiB);
  }

  ~CallsTest() override {
    if (grpc_server_ != nullptr) {
      gate_.Release();
      grpc_server_->Shutdown(absl::ToChronoTime(absl::Now()));
      grpc_server_->Wait();
    }
  }

  std::shared_ptr<ServedArchive> OpenArchive() {
    auto served = OpenServedArchive(
        {"docs", archive_path()},
        std::make_shared<DecodeWorkspaces>(DecodeWorkspaces::kSizeBytesMin),
        std::make_shared<WireEncoders>(), {});
    EXPECT_TRUE(served.ok()) << served.status();
    return *std::move(served);
  }

  void Publish() { catalog_->Publish(OpenArchive()); }

  // Starts with the current limits and options. The store reads one block at a
  // time and caches none.
  void Start() {
    QUIRE_ASSERT_OK_AND_ASSIGN(
        store_, BlockStore::Create(
                    store_options_,
                    [this](Device::Done done) -> absl::StatusOr<OpenedDevice> {
                      return OpenedDevice{
                          .device = std::make_unique<GatedDevice>(
                              gate_, std::move(done)),
                          .note = ""};
                    }));
    catalog_ = std::make_unique<Catalog>();
    Publish();
    admission_ =
        std::make_unique<Admission>(limits_.in_flight_size_bytes_max(),
                                    limits_.client_in_flight_size_bytes_max());
    admission_->StartTimer();
    core_ = std::make_unique<ServiceCore>(
        ServiceCore{.catalog_of_all = *catalog_,
                    .access_control = nullptr,
                    .quotas = quotas_,
                    .default_quota = no_quota_,
                    .store = *store_,
                    .admission = *admission_,
                    .metrics = metrics_,
                    .call_log = nullptr,
                    .stall_guard = stall_guard_,
                    .connections = connections_,
                    .draining = draining_,
                    .limits = limits_,
                    .stream_window_size_bytes = stream_window_size_bytes_});
    service_ = MakeArchiveService(*core_);
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port);
    builder.RegisterService(service_.get());
    grpc_server_ = builder.BuildAndStart();
    ASSERT_NE(grpc_server_, nullptr);
    address_ = absl::StrCat("127.0.0.1:", port);
    stub_ = Connect();
  }

  // Returns a stub with its own connection.
  std::unique_ptr<v1::Archive::Stub> Connect() const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return v1::Archive::NewStub(grpc::CreateCustomChannel(
        address_, grpc::InsecureChannelCredentials(), arguments));
  }

  static v1::ReadRequest RangeRequest(uint64_t offset, uint64_t size_bytes) {
    v1::ReadRequest request;
    request.set_archive("docs");
    request.mutable_range()->set_offset(offset);
    request.mutable_range()->set_size_bytes(size_bytes);
    return request;
  }

  static void AddItem(v1::BatchReadRequest& request, uint64_t tag,
                      uint64_t offset, uint64_t size_bytes) {
    request.set_archive("docs");
    v1::BatchItem* item = request.add_items();
    item->set_tag(tag);
    item->mutable_range()->set_offset(offset);
    item->mutable_range()->set_size_bytes(size_bytes);
  }

  // Returns a message that asks for one byte of each of `blocks`, in order.
  static v1::BatchReadRequest ByteOfEach(const std::vector<uint64_t>& blocks) {
    v1::BatchReadRequest request;
    for (const uint64_t block : blocks) {
      AddItem(request, block, block * kBlockSizeBytes + 7, 1);
    }
    return request;
  }

  // Blocks the device with a read of the last block, so that all other fetches
  // wait in the store.
  void OccupyDevice() {
    gate_.Hold();
    const std::shared_ptr<const ServedArchive> served =
        catalog_->FindOpen("docs");
    const Archive& archive = *served->archive;
    const BlockAddress block = {0, archive.SegmentBlockCount(0) - 1};
    BlockFetch fetch;
    fetch.key = {served->SourceId(block.segment_index), block};
    fetch.extent = archive.BlockExtent(block);
    fetch.raw_size_bytes = archive.BlockSizeBytes(block);
    fetch.decoder = served->decoder;
    store_->Fetch(std::move(fetch),
                  [](const absl::StatusOr<BlockPtr>& /*block*/) {});
    ASSERT_EQ(gate_.held_count(), 1u);
  }

  bool AwaitQueued(uint64_t count) const {
    return Await([&] { return store_->Stats().queued_fetches >= count; });
  }

  bool AwaitCancelled(uint64_t count) const {
    return Await([&] { return store_->Stats().cancelled_fetches >= count; });
  }

  // Returns the blocks at which device reads began, in order, without the first
  // `skipped` reads.
  std::vector<uint64_t> ReadBlocks(size_t skipped) const {
    const Archive& archive = *catalog_->FindOpen("docs")->archive;
    std::vector<uint64_t> blocks;
    for (const FileOffset offset : gate_.offsets()) {
      uint64_t block = 0;
      while (archive.BlockExtent({0, block}).offset.value < offset.value) {
        ++block;
      }
      blocks.push_back(block);
    }
    blocks.erase(blocks.begin(),
                 blocks.begin() + static_cast<ptrdiff_t>(skipped));
    return blocks;
  }

  // Returns the number of received messages of batches.
  uint64_t BatchMessageCount() const {
    for (const prometheus::MetricFamily& family : registry_.Collect()) {
      if (family.name == "quire_batch_message_items") {
        return family.metric.at(0).histogram.sample_count;
      }
    }
    return 0;
  }

  uint64_t InFlightBytesWhile(const std::function<grpc::Status()>& list);

  const std::vector<TestDocument> documents_ = MakeDocuments(150, 41);
  const std::string all_;
  v1::Limits limits_;
  BlockStoreOptions store_options_ = {
      .cache_size_bytes = 0, .decode_threads = 1, .device_depth = 1};
  uint64_t stream_window_size_bytes_ = 4 * kMiB;
  ReadGate gate_;
  std::unique_ptr<BlockStore> store_;
  std::unique_ptr<Catalog> catalog_;
  std::unique_ptr<Admission> admission_;
  std::unique_ptr<v1::Archive::Stub> stub_;

 private:
  prometheus::Registry registry_;
  CallMetrics metrics_{registry_};
  StallGuard stall_guard_{absl::Minutes(30)};
  ConnectionTable connections_{{}};
  std::atomic<bool> draining_{false};
  QuotaBook quotas_;
  const ChangingQuota no_quota_;
  std::unique_ptr<ServiceCore> core_;
  std::unique_ptr<grpc::Service> service_;
  std::unique_ptr<grpc::Server> grpc_server_;
  std::string address_;
};

// --- Cancelled calls ---

TEST_F(CallsTest, ACancelledReadWithdrawsItsFetches) {
  Start();
  OccupyDevice();
  grpc::ClientContext context;
  grpc::Status status;
  std::thread reader([&] {
    v1::ReadResponse response;
    status =
        stub_->Read(&context, RangeRequest(0, 10 * kBlockSizeBytes), &response);
  });
  EXPECT_TRUE(AwaitQueued(10));
  context.TryCancel();
  EXPECT_TRUE(AwaitCancelled(10));
  reader.join();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(CallsTest, ACancelledStreamWithdrawsItsFetches) {
  Start();
  OccupyDevice();
  {
    grpc::ClientContext context;
    const auto reader = stub_->ReadStream(&context, RangeRequest(0, 1'000'000));
    EXPECT_TRUE(AwaitQueued(1));
    context.TryCancel();
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  // A chunk's blocks arrive in one step, but the stream may start another
  // before it sees the cancellation.
  EXPECT_TRUE(AwaitCancelled(100'000 / kBlockSizeBytes));
}

TEST_F(CallsTest, ACancelledScanWithdrawsItsFetches) {
  Start();
  OccupyDevice();
  v1::ScanRequest request;
  request.set_archive("docs");
  grpc::ClientContext context;
  const auto reader = stub_->Scan(&context, request);
  EXPECT_TRUE(AwaitQueued(1));
  context.TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(AwaitCancelled(100'000 / kBlockSizeBytes));
}

TEST_F(CallsTest, ACancelledBatchWithdrawsItsFetches) {
  Start();
  OccupyDevice();
  grpc::ClientContext context;
  const std::unique_ptr<Batch> batch = stub_->BatchRead(&context);
  ASSERT_TRUE(batch->Write(ByteOfEach({5, 3, 9, 20, 1})));
  EXPECT_TRUE(AwaitQueued(5));
  context.TryCancel();
  EXPECT_TRUE(AwaitCancelled(5));
  EXPECT_EQ(batch->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

// --- Blocks fetched, and their order ---

TEST_F(CallsTest, AScanFetchesEachBlockOnce) {
  Start();
  v1::ScanRequest request;
  request.set_archive("docs");
  request.set_offset(5'000);
  grpc::ClientContext context;
  const auto reader = stub_->Scan(&context, request);
  std::string got;
  for (v1::ScanResponse response; reader->Read(&response);) {
    EXPECT_LE(response.data().size(), limits_.chunk_size_bytes_max());
    got += response.data();
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_TRUE(got == all_.substr(5'000));
  EXPECT_EQ(store_->Stats().cache_misses,
            catalog_->FindOpen("docs")->archive->SegmentBlockCount(0));
}

// The server may have chosen the logical order for a request of the stored one.
TEST_F(CallsTest, OnlyARequestOfStoredOrderTakesItsTokens) {
  WriteArchive(archive_path(), documents_, "copy", "", /*is_reordered=*/true);
  Start();
  const auto scan = [this](bool stored_order, const std::string& token,
                           std::string& next_token) {
    v1::ScanRequest request;
    request.set_archive("docs");
    request.set_stored_order(stored_order);
    if (!token.empty()) {
      request.set_resume_token(token);
    }
    grpc::ClientContext context;
    const auto reader = stub_->Scan(&context, request);
    v1::ScanResponse response;
    const bool has_more = reader->Read(&response);
    next_token = response.resume_token();
    if (has_more) {
      context.TryCancel();
    }
    return reader->Finish().error_code();
  };
  std::string tokens[2];
  std::string unused;
  for (const bool stored_order : {false, true}) {
    scan(stored_order, "", tokens[stored_order ? 1 : 0]);
    ASSERT_NE(tokens[stored_order ? 1 : 0], "");
  }
  for (const bool stored_order : {false, true}) {
    EXPECT_EQ(scan(stored_order, tokens[stored_order ? 1 : 0], unused),
              grpc::StatusCode::CANCELLED);
    EXPECT_EQ(scan(stored_order, tokens[stored_order ? 0 : 1], unused),
              stored_order ? grpc::StatusCode::CANCELLED
                           : grpc::StatusCode::INVALID_ARGUMENT);
  }
}

TEST_F(CallsTest, TheRunsOfAScanInStoredOrderAreAdmitted) {
  constexpr uint64_t kRunCount = 40'000;
  constexpr uint64_t kRunSizeBytes = 300;
  std::string stored(2 * kBlockSizeBytes, 'x');
  for (size_t i = 0; i < stored.size(); ++i) {
    stored[i] = static_cast<char>(i * i % 251);
  }
  std::string text = stored;
  LayoutSection layout = {.stored_text_size_bytes = stored.size(),
                          .runs = {{stored.size(), 0}},
                          .checksums = {}};
  for (uint64_t i = 0; i < kRunCount; ++i) {
    layout.runs.push_back(
        {kRunSizeBytes, i * 7 % (kBlockSizeBytes - kRunSizeBytes)});
    text += stored.substr(layout.runs.back().stored_offset, kRunSizeBytes);
  }
  DocumentIndexBuilder index;
  QUIRE_ASSERT_OK(index.Add({.id = "all", .size_bytes = text.size()}));
  const ArchiveWriterOptions options = {.codec = {.id = CodecId::kCopy},
                                        .block_size_bytes = kBlockSizeBytes,
                                        .replace = true};
  auto writer = ArchiveWriter::Create(archive_path(), options, nullptr);
  QUIRE_ASSERT_OK(writer);
  QUIRE_ASSERT_OK((*writer)->SetLayout(std::move(layout), std::move(index)));
  for (size_t at = 0; at < stored.size(); at += kBlockSizeBytes) {
    QUIRE_ASSERT_OK((*writer)->AppendBlock(
        AsBytes(stored).subspan(at, kBlockSizeBytes), {}));
  }
  QUIRE_ASSERT_OK((*writer)->Commit());
  writer->reset();
  // More than any other part of a scan needs, less than its runs do.
  limits_.set_in_flight_size_bytes_max(800 * kKiB);
  limits_.set_client_in_flight_size_bytes_max(800 * kKiB);
  Start();
  for (const bool stored_order : {false, true}) {
    v1::ScanRequest request;
    request.set_archive("docs");
    request.set_stored_order(stored_order);
    grpc::ClientContext context;
    const auto reader = stub_->Scan(&context, request);
    for (v1::ScanResponse response; reader->Read(&response);) {
    }
    EXPECT_EQ(reader->Finish().error_code(),
              stored_order ? grpc::StatusCode::RESOURCE_EXHAUSTED
                           : grpc::StatusCode::OK);
  }
}

TEST_F(CallsTest, ABatchIsSweptByPlace) {
  constexpr uint64_t kBadTag = 1'000'000;
  // Memory for two blocks: shows the batch's next fetch.
  stream_window_size_bytes_ = 1;
  Start();
  OccupyDevice();
  grpc::ClientContext context;
  const std::unique_ptr<Batch> batch = stub_->BatchRead(&context);
  ASSERT_TRUE(batch->Write(ByteOfEach({70, 50, 60, 40})));
  ASSERT_TRUE(AwaitQueued(2));
  v1::BatchReadRequest more = ByteOfEach({80, 20, 10});
  more.add_items()->set_tag(kBadTag);
  ASSERT_TRUE(batch->Write(more));
  // A bad item is answered once the message has been processed.
  v1::BatchReadResponse response;
  ASSERT_TRUE(batch->Read(&response));
  ASSERT_EQ(response.results(0).tag(), kBadTag);
  gate_.Release();
  EXPECT_TRUE(batch->WritesDone());
  std::set<uint64_t> answered;
  while (batch->Read(&response)) {
    for (const v1::BatchResult& result : response.results()) {
      EXPECT_EQ(result.data(),
                all_.substr(result.tag() * kBlockSizeBytes + 7, 1));
      answered.insert(result.tag());
    }
  }
  EXPECT_TRUE(batch->Finish().ok());
  EXPECT_EQ(answered.size(), 7u);
  // From the current offset of the sweep, then from the beginning.
  EXPECT_EQ(ReadBlocks(1), (std::vector<uint64_t>{40, 50, 60, 70, 80, 10, 20}));
}

TEST_F(CallsTest, ABatchOfTinyItemsKeepsFewOfThemUnderWay) {
  constexpr uint64_t kActiveItemsMax = 4096;
  constexpr uint64_t kBadTag = 1'000'000;
  Start();
  OccupyDevice();
  grpc::ClientContext context;
  const std::unique_ptr<Batch> batch = stub_->BatchRead(&context);
  v1::BatchReadRequest many;
  for (uint64_t tag = 0; tag < kActiveItemsMax; ++tag) {
    AddItem(many, tag, tag * 2, 1);
  }
  ASSERT_TRUE(batch->Write(many));
  ASSERT_TRUE(AwaitQueued(kActiveItemsMax));
  v1::BatchReadRequest more;
  for (uint64_t tag = 0; tag < 100; ++tag) {
    AddItem(more, kActiveItemsMax + tag, tag * 2, 1);
  }
  more.add_items()->set_tag(kBadTag);
  ASSERT_TRUE(batch->Write(more));
  // A bad item is answered after all permitted fetches.
  v1::BatchReadResponse response;
  ASSERT_TRUE(batch->Read(&response));
  ASSERT_EQ(response.results_size(), 1);
  EXPECT_EQ(response.results(0).tag(), kBadTag);
  EXPECT_EQ(store_->Stats().queued_fetches, kActiveItemsMax);
  gate_.Release();
  EXPECT_TRUE(batch->WritesDone());
  uint64_t answered_count = 0;
  while (batch->Read(&response)) {
    answered_count += static_cast<uint64_t>(response.results_size());
  }
  EXPECT_TRUE(batch->Finish().ok());
  EXPECT_EQ(answered_count, kActiveItemsMax + 100);
}

// --- Limits ---

TEST_F(CallsTest, AFullReadQueueSaysWhenToComeBack) {
  store_options_.pending_fetches_max = 1;
  Start();
  OccupyDevice();
  grpc::ClientContext context;
  v1::ReadResponse response;
  const grpc::Status status =
      stub_->Read(&context, RangeRequest(0, 100), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  const auto details = ParseErrorDetails(status.error_details());
  ASSERT_TRUE(details.has_value());
  EXPECT_EQ(details->reason, "SERVER_BUSY");
  ASSERT_TRUE(details->retry_delay.has_value());
  EXPECT_GT(*details->retry_delay, absl::ZeroDuration());
}

TEST_F(CallsTest, ConnectionsOfOneAddressShareItsMemory) {
  limits_.set_client_in_flight_size_bytes_max(1 * kMiB);
  Start();
  OccupyDevice();
  grpc::ClientContext first_context;
  grpc::Status first_status;
  v1::ReadResponse first_response;
  std::thread first([&] {
    first_status =
        stub_->Read(&first_context, RangeRequest(0, 900'000), &first_response);
  });
  EXPECT_TRUE(AwaitQueued(900'000 / kBlockSizeBytes));
  const std::unique_ptr<v1::Archive::Stub> other = Connect();
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Minutes(1)));
  v1::ReadResponse response;
  const grpc::Status status =
      other->Read(&context, RangeRequest(0, 300'000), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ReasonIn(status), "SERVER_BUSY");
  gate_.Release();
  first.join();
  EXPECT_TRUE(first_status.ok()) << first_status.error_message();
  EXPECT_TRUE(first_response.data() == all_.substr(0, 900'000));
}

// Calls `list` while the device is blocked. Returns the bytes in flight while
// the call waits for it.
uint64_t CallsTest::InFlightBytesWhile(
    const std::function<grpc::Status()>& list) {
  gate_.Hold();
  grpc::Status status;
  std::thread lister([&] { status = list(); });
  EXPECT_TRUE(Await([&] { return gate_.held_count() > 0; }));
  const uint64_t size_bytes = admission_->in_flight_bytes();
  gate_.Release();
  lister.join();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(Await([&] { return admission_->in_flight_bytes() == 0; }));
  return size_bytes;
}

TEST_F(CallsTest, ListsThatWaitForFieldsCountTheirPage) {
  constexpr int kDocumentCount = 100;
  constexpr size_t kIdSizeBytes = 5'000;
  fields_ = {{"number", FieldType::kInteger}};
  std::vector<TestDocument> documents;
  for (int64_t i = 0; i < kDocumentCount; ++i) {
    documents.push_back({.id = absl::StrCat(i, std::string(kIdSizeBytes, 'x')),
                         .text = "text",
                         .fields = {FieldValue(i)}});
  }
  WriteArchive(archive_path(), documents, "copy");
  Start();
  v1::ListDocumentsRequest request;
  request.set_archive("docs");
  request.set_page_size(kDocumentCount);
  request.add_fields("number");
  v1::ListDocumentsResponse response;
  EXPECT_GE(InFlightBytesWhile([&] {
              grpc::ClientContext context;
              return stub_->ListDocuments(&context, request, &response);
            }),
            kDocumentCount * kIdSizeBytes);
  EXPECT_EQ(response.documents_size(), kDocumentCount);
}

TEST_F(CallsTest, ListsThatWaitForCapturesCountTheirRequest) {
  constexpr size_t kTextSizeBytes = 10'000;
  WriteArchive(archive_path(),
               {{.id = "http://example.com/",
                 .text = "text",
                 .record_type = "response",
                 .url = "http://example.com/",
                 .status = 200}},
               "copy");
  Start();
  v1::ListCapturesRequest request;
  request.set_archive("docs");
  request.set_url("example.com");
  request.set_filter(
      absl::StrCat("url != \"", std::string(kTextSizeBytes, 'x'), "\""));
  v1::ListCapturesResponse response;
  EXPECT_GE(InFlightBytesWhile([&] {
              grpc::ClientContext context;
              return stub_->ListCaptures(&context, request, &response);
            }),
            3 * kTextSizeBytes);
  EXPECT_EQ(response.captures_size(), 1);
}

// --- Batches that stay open ---

class SilentBatchTest : public CallsTest {
 protected:
  SilentBatchTest() {
    Start();
    old_ = catalog_->FindOpen("docs");
    batch_ = stub_->BatchRead(&context_);
  }

  // Replaces the archive by one of these documents. Returns false if the old
  // one is still held after a minute.
  bool Replace(const std::vector<TestDocument>& documents) {
    WriteArchive(archive_path(), documents, "copy");
    Publish();
    const absl::Time give_up = absl::Now() + absl::Minutes(1);
    while (!old_.expired() && absl::Now() < give_up) {
      absl::SleepFor(absl::Milliseconds(2));
    }
    return old_.expired();
  }

  void WriteNameAlone() {
    v1::BatchReadRequest request;
    request.set_archive("docs");
    ASSERT_TRUE(batch_->Write(request));
    const absl::Time give_up = absl::Now() + absl::Minutes(1);
    while (BatchMessageCount() < 1 && absl::Now() < give_up) {
      absl::SleepFor(absl::Milliseconds(2));
    }
    ASSERT_EQ(BatchMessageCount(), 1u);
  }

  void ReadOne(uint64_t offset) {
    v1::BatchReadRequest request;
    AddItem(request, offset, offset, 10);
    ASSERT_TRUE(batch_->Write(request));
    v1::BatchReadResponse response;
    ASSERT_TRUE(batch_->Read(&response));
    EXPECT_EQ(response.results(0).data(), all_.substr(offset, 10));
  }

  grpc::Status FailNext() {
    v1::BatchReadRequest request;
    AddItem(request, 1, 0, 10);
    batch_->Write(request);
    v1::BatchReadResponse response;
    EXPECT_FALSE(batch_->Read(&response));
    return batch_->Finish();
  }

  std::weak_ptr<const ServedArchive> old_;
  grpc::ClientContext context_;
  std::unique_ptr<Batch> batch_;
};

TEST_F(SilentBatchTest, KeepsNoArchiveForANameAlone) {
  WriteNameAlone();
  EXPECT_TRUE(Replace(MakeDocuments(100, 42)));
  const grpc::Status status = FailNext();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(ReasonIn(status), "ARCHIVE_REPLACED");
}

TEST_F(SilentBatchTest, KeepsNoArchiveWhoseItemsAreAnswered) {
  ReadOne(100);
  EXPECT_TRUE(Replace(MakeDocuments(100, 42)));
  const grpc::Status status = FailNext();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(ReasonIn(status), "ARCHIVE_REPLACED");
}

TEST_F(SilentBatchTest, GoesOnWithAnotherCopyOfTheSameContents) {
  ReadOne(100);
  EXPECT_TRUE(Replace(documents_));
  ReadOne(20'000);
  EXPECT_TRUE(batch_->WritesDone());
  EXPECT_TRUE(batch_->Finish().ok());
}

TEST_F(SilentBatchTest, KeepsTheArchiveWhoseItemsAreNotAnswered) {
  OccupyDevice();
  v1::BatchReadRequest request;
  AddItem(request, 1, 100, 10);
  ASSERT_TRUE(batch_->Write(request));
  ASSERT_TRUE(AwaitQueued(1));
  WriteArchive(archive_path(), MakeDocuments(100, 42), "copy");
  Publish();
  gate_.Release();
  v1::BatchReadResponse response;
  ASSERT_TRUE(batch_->Read(&response));
  EXPECT_EQ(response.results(0).data(), all_.substr(100, 10));
  EXPECT_TRUE(batch_->WritesDone());
  EXPECT_TRUE(batch_->Finish().ok());
}

}  // namespace
}  // namespace quire

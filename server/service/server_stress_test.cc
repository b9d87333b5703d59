// SPDX-License-Identifier: GPL-3.0-or-later
//
// Runs many clients at once, making all kinds of calls, including bad ones.
#include <algorithm>
#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "grpcpp/client_context.h"

#include "server/service/testing/server_fixture.h"

namespace quire {
namespace {

class ServerStressTest : public ServerTest {
 protected:
  ServerStressTest() : documents_(MakeDocuments(200, 21)) {
    all_ = Concatenate(documents_);
    WriteArchive(archive_path(), documents_);
    ServerOptions options;
    // Little memory, so that blocks are evicted and calls refused.
    options.memory_bytes = 170 << 20;
    StartServer(options);
  }

  // Makes one random call; returns true if its result is permitted.
  bool OneCall(std::mt19937_64& random) {
    const uint64_t offset = random() % all_.size();
    const uint64_t size_bytes =
        std::min<uint64_t>(random() % 50000, all_.size() - offset);
    switch (random() % 6) {
      case 0:
        return Stream(offset, random() % 3 == 0);
      case 1:
        return Batch(random, random() % 3 == 0);
      case 2:
        return CancelledRead(offset, size_bytes);
      default:
        return Read(offset, size_bytes);
    }
  }

 private:
  static bool MayFail(const grpc::Status& status) {
    return status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED ||
           status.error_code() == grpc::StatusCode::CANCELLED;
  }

  v1::ReadRequest Request(uint64_t offset, uint64_t size_bytes) const {
    v1::ReadRequest request;
    request.set_archive("docs");
    request.mutable_range()->set_offset(offset);
    request.mutable_range()->set_size_bytes(size_bytes);
    return request;
  }

  bool Read(uint64_t offset, uint64_t size_bytes) {
    grpc::ClientContext context;
    v1::ReadResponse response;
    const grpc::Status status =
        stub().Read(&context, Request(offset, size_bytes), &response);
    return status.ok() ? response.data() == all_.substr(offset, size_bytes)
                       : MayFail(status);
  }

  bool CancelledRead(uint64_t offset, uint64_t size_bytes) {
    grpc::ClientContext context;
    std::thread canceller([&context] { context.TryCancel(); });
    v1::ReadResponse response;
    const grpc::Status status =
        stub().Read(&context, Request(offset, size_bytes), &response);
    canceller.join();
    return status.ok() ? response.data() == all_.substr(offset, size_bytes)
                       : MayFail(status);
  }

  bool Stream(uint64_t offset, bool cancel) {
    grpc::ClientContext context;
    const auto reader =
        stub().ReadStream(&context, Request(offset, all_.size() - offset));
    bool good = true;
    uint64_t at = offset;
    for (v1::ReadStreamResponse response; reader->Read(&response);) {
      good &= response.data() == all_.substr(at, response.data().size());
      at += response.data().size();
      if (cancel) {
        context.TryCancel();
      }
    }
    const grpc::Status status = reader->Finish();
    return good && (status.ok() ? at == all_.size() : MayFail(status));
  }

  bool Batch(std::mt19937_64& random, bool cancel) {
    grpc::ClientContext context;
    const auto stream = stub().BatchRead(&context);
    v1::BatchReadRequest request;
    request.set_archive("docs");
    const uint64_t item_count = 1 + random() % 100;
    for (uint64_t tag = 0; tag < item_count; ++tag) {
      v1::BatchItem* item = request.add_items();
      item->set_tag(random() % (all_.size() - 1000));
      item->mutable_range()->set_offset(item->tag());
      item->mutable_range()->set_size_bytes(1000);
    }
    stream->Write(request);
    stream->WritesDone();
    bool good = true;
    uint64_t answer_count = 0;
    for (v1::BatchReadResponse response; stream->Read(&response);) {
      for (const v1::BatchResult& result : response.results()) {
        ++answer_count;
        good &= result.has_status()
                    ? result.status().code() == 8
                    : result.data() == all_.substr(result.tag(), 1000);
      }
      if (cancel) {
        context.TryCancel();
      }
    }
    const grpc::Status status = stream->Finish();
    return good && (status.ok() ? answer_count == item_count : MayFail(status));
  }

  std::vector<TestDocument> documents_;
  std::string all_;
};

TEST_F(ServerStressTest, EveryCallEndsRightly) {
  std::atomic<int> wrong_count{0};
  std::atomic<bool> stop{false};
  std::thread reloader([&] {
    while (!stop) {
      Reload();
    }
  });
  std::vector<std::thread> clients;
  clients.reserve(6);
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    clients.emplace_back([&, seed] {
      std::mt19937_64 random(seed);
      for (int i = 0; i < 60; ++i) {
        if (!OneCall(random)) {
          ++wrong_count;
        }
      }
    });
  }
  for (std::thread& client : clients) {
    client.join();
  }
  stop = true;
  reloader.join();
  EXPECT_EQ(wrong_count, 0) << "seeds 1 to 6";
}

TEST_F(ServerStressTest, StopsInTheMiddleOfCalls) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> clients;
  clients.reserve(4);
  for (uint64_t seed = 11; seed <= 14; ++seed) {
    clients.emplace_back([&, seed] {
      std::mt19937_64 random(seed);
      while (!stop) {
        // After the shutdown calls fail with UNAVAILABLE, which is permitted.
        OneCall(random);
      }
    });
  }
  std::mt19937_64 random(15);
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(OneCall(random)) << "seed 15";
  }
  server().Shutdown(absl::Milliseconds(1));
  stop = true;
  for (std::thread& client : clients) {
    client.join();
  }
}

}  // namespace
}  // namespace quire

// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/alive_checks.h"

#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"

namespace quire {
namespace {

constexpr absl::Duration kAnswerTimeMax = absl::Minutes(1);

}  // namespace

// Requests the health of the whole server, by an empty message.
struct AliveChecks::Call {
  explicit Call(std::unique_ptr<OwnConnection> own)
      : connection(std::move(own)), stub(connection->channel()) {
    context.set_deadline(absl::ToChronoTime(absl::Now() + kAnswerTimeMax));
    const grpc::Slice empty;
    request = grpc::ByteBuffer(&empty, 1);
  }

  const std::unique_ptr<OwnConnection> connection;
  grpc::GenericStub stub;
  grpc::ClientContext context;
  grpc::ByteBuffer request;
  grpc::ByteBuffer response;
};

AliveChecks::~AliveChecks() {
  MutexLock lock(&mutex_);
  for (Call* const call : calls_) {
    call->context.TryCancel();
  }
  while (call_count_ > 0) {
    ended_.Wait(&mutex_);
  }
}

void AliveChecks::Start(std::unique_ptr<OwnConnection> connection,
                        std::function<void()> answered) {
  auto call = std::make_shared<Call>(std::move(connection));
  {
    MutexLock lock(&mutex_);
    calls_.insert(call.get());
    ++call_count_;
  }
  Call& started = *call;
  started.stub.UnaryCall(
      &started.context, "/grpc.health.v1.Health/Check", {}, &started.request,
      &started.response,
      [this, call = std::move(call),
       answered = std::move(answered)](const grpc::Status& status) mutable {
        if (status.ok()) {
          answered();
        }
        End(std::move(call));
      });
}

void AliveChecks::End(std::shared_ptr<Call> call) {
  {
    MutexLock lock(&mutex_);
    calls_.erase(call.get());
  }
  call.reset();
  MutexLock lock(&mutex_);
  --call_count_;
  ended_.NotifyAll();
}

}  // namespace quire

// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/listen/alive_checks.h"

#include <iterator>
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
  // Guarded by the mutex of AliveChecks.
  bool has_ended = false;
};

AliveChecks::AliveChecks() = default;

AliveChecks::~AliveChecks() {
  MutexLock lock(&mutex_);
  for (const std::unique_ptr<Call>& call : calls_) {
    call->context.TryCancel();
  }
  while (true) {
    TakeEnded();
    if (calls_.empty()) {
      return;
    }
    ended_.Wait(&mutex_);
  }
}

void AliveChecks::Start(std::unique_ptr<OwnConnection> connection,
                        std::function<void()> answered) {
  auto owned = std::make_unique<Call>(std::move(connection));
  Call& call = *owned;
  // Destroyed without the lock.
  Calls ended;
  {
    MutexLock lock(&mutex_);
    ended = TakeEnded();
    calls_.push_back(std::move(owned));
  }
  call.stub.UnaryCall(&call.context, "/grpc.health.v1.Health/Check", {},
                      &call.request, &call.response,
                      [this, &call, answered = std::move(answered)](
                          const grpc::Status& status) {
                        if (status.ok()) {
                          answered();
                        }
                        MutexLock lock(&mutex_);
                        call.has_ended = true;
                        ended_.NotifyAll();
                      });
}

AliveChecks::Calls AliveChecks::TakeEnded() {
  Calls ended;
  for (auto call = calls_.begin(); call != calls_.end();) {
    const auto next = std::next(call);
    if ((*call)->has_ended) {
      ended.splice(ended.end(), calls_, call);
    }
    call = next;
  }
  return ended;
}

}  // namespace quire

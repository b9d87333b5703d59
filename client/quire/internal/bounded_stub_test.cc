// SPDX-License-Identifier: Apache-2.0
#include "client/quire/internal/bounded_stub.h"

#include <cstddef>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"

#include "codecs/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

grpc::ByteBuffer Buffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return {&slice, 1};
}

// So many empty results: two bytes each, some hundred once they are parsed.
std::string EmptyResults(size_t count) {
  std::string bytes;
  for (size_t i = 0; i < count; ++i) {
    bytes += std::string("\x0A\x00", 2);
  }
  return bytes;
}

TEST(BoundedStubTest, CountsBeforeItParses) {
  v1::BatchReadResponse response;
  const absl::Status status =
      ParseAnswer(Buffer(EmptyResults(kAnswerFieldsMax + 1)), response);
  EXPECT_THAT(status, HasCode(absl::StatusCode::kInternal));
  EXPECT_THAT(std::string(status.message()), HasSubstr("more than"));
  EXPECT_EQ(response.results_size(), 0);

  QUIRE_EXPECT_OK(ParseAnswer(Buffer(EmptyResults(1000)), response));
  EXPECT_EQ(response.results_size(), 1000);
  EXPECT_THAT(ParseAnswer(Buffer("\xFF\xFF"), response),
              HasCode(absl::StatusCode::kInternal));
}

TEST(BoundedStubTest, TakesLongTexts) {
  v1::ReadResponse sent;
  sent.set_data(std::string(16 << 20, 'x'));
  v1::ReadResponse response;
  QUIRE_EXPECT_OK(ParseAnswer(Buffer(sent.SerializeAsString()), response));
  EXPECT_EQ(response.data(), sent.data());
}

// Answers every call with one message, and then says no more.
class OneMessageServer : public grpc::CallbackGenericService {
 public:
  explicit OneMessageServer(const std::string& message)
      : message_(Buffer(message)) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port);
    builder.RegisterCallbackGenericService(this);
    server_ = builder.BuildAndStart();
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    channel_ = grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(port),
                                         grpc::InsecureChannelCredentials(),
                                         arguments);
  }

  ~OneMessageServer() override { server_->Shutdown(); }

  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* /*context*/) override {
    class Call : public grpc::ServerGenericBidiReactor {
     public:
      explicit Call(const grpc::ByteBuffer& message) : message_(message) {
        StartWrite(&message_);
      }

      void OnCancel() override { Finish(grpc::Status::CANCELLED); }

      void OnDone() override { delete this; }

     private:
      grpc::ByteBuffer message_;
    };

    return new Call(message_);
  }

 private:
  const grpc::ByteBuffer message_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

// The message's fault is known at once, though the stream does not end.
TEST(BoundedStubTest, SaysWhatIsWrongWithAMessageOfAStream) {
  OneMessageServer server(EmptyResults(kAnswerFieldsMax + 1));
  const BoundedStub stub(server.channel());
  grpc::ClientContext context;
  const BoundedStub::Batch stream = stub.BatchRead(&context);
  v1::BatchReadResponse response;
  BoundedMessage<v1::BatchReadResponse> answer{&response};
  ASSERT_TRUE(stream->Read(&answer));
  EXPECT_THAT(answer.status, HasCode(absl::StatusCode::kInternal));
  context.TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

}  // namespace
}  // namespace quire

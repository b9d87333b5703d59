// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/reflection/reflected_types.h"

#include "google/protobuf/message.h"

#include "proto/quire/v1/error_details.pb.h"

#include "server/service/reflection/health.pb.h"
#include "server/service/reflection/rpc_errors.pb.h"

namespace quire {

// The linker omits unreferenced code, including the registration of its
// descriptors.
void DescribeStandardTypes() {
  google::protobuf::LinkMessageReflection<
      grpc::health::v1::HealthCheckRequest>();
  google::protobuf::LinkMessageReflection<google::rpc::Status>();
  google::protobuf::LinkMessageReflection<v1::RpcStatus>();
}

}  // namespace quire

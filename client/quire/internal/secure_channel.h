// SPDX-License-Identifier: Apache-2.0
//
// Channels with the settings of ChannelSecurity. Internal to the client
// library.
#ifndef QUIRE_CLIENT_QUIRE_INTERNAL_SECURE_CHANNEL_H_
#define QUIRE_CLIENT_QUIRE_INTERNAL_SECURE_CHANNEL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "grpcpp/channel.h"
#include "grpcpp/support/channel_arguments.h"

#include "client/quire/channel_security.h"

namespace quire {

// True if traffic to `address` stays on this machine: a unix socket, or the
// host localhost, 127.0.0.0/8 or [::1]. Does not resolve names. Thread-safe.
bool IsLocalAddress(absl::string_view address);

// Makes a channel to `address`, which connects at its first call. Blocks while
// it reads the files. Thread-safe.
// Errors: InvalidArgument     options that exclude each other; a token for an
//                             address to which it would travel unencrypted.
//         FailedPrecondition  a file cannot be read or is invalid; names it.
absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeSecureChannel(
    const std::string& address, const ChannelSecurity& security,
    grpc::ChannelArguments arguments);

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_INTERNAL_SECURE_CHANNEL_H_

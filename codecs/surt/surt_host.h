// SPDX-License-Identifier: Apache-2.0
//
// Hosts and escapes of URLs, for surt_key.h.
#ifndef QUIRE_CODECS_SURT_SURT_HOST_H_
#define QUIRE_CODECS_SURT_SURT_HOST_H_

#include <string>

#include "absl/strings/string_view.h"

namespace quire {

// All functions are thread-safe, and take any bytes in linear time.

// Returns `text` without escapes (%41), also those that decoding makes.
std::string DecodeEscapes(absl::string_view text);

// Returns `text` with bytes up to 0x20 and from 0x7F on, # and % as %xx.
std::string EncodeEscapes(absl::string_view text);

// Returns a host in the order of keys: "com,example" of "www.Example.com".
// Escapes are decoded, dots at the ends and repeated ones dropped, and letters
// lower case; those outside ASCII, which stay in their case, as in Punycode
// (RFC 3492). "www." and "www12." at the start are dropped. An IPv4 address may
// be one number, and have octal parts. An IPv6 address, in brackets, stays
// without these.
std::string SurtHost(absl::string_view host);

}  // namespace quire

#endif  // QUIRE_CODECS_SURT_SURT_HOST_H_

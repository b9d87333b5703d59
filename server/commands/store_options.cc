// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/commands/store_options.h"

#include <algorithm>
#include <cstdlib>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/number_range.h"
#include "codecs/base/printable_text.h"
#include "server/commands/subcommand_support.h"

namespace quire {
namespace {

// Returns the first of the environment's regions.
std::string DefaultRegion() {
  for (const char* name : {"AWS_REGION", "AWS_DEFAULT_REGION"}) {
    // The environment does not change.
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
    if (value != nullptr && *value != '\0') {
      return value;
    }
  }
  return RemoteStoreOptions().region;
}

}  // namespace

void AddStoreOptions(CLI::App& subcommand, StoreArguments& arguments,
                     const std::string& cache) {
  subcommand.add_option("--store-cache", arguments.cache, cache)
      ->type_name("DIR:SIZE");
  subcommand
      .add_option("--store-endpoint", arguments.endpoint,
                  "URL of the store of s3:// archives; default: Amazon's")
      ->type_name("URL");
  subcommand
      .add_option("--store-ca", arguments.ca,
                  "Certificates that sign those of object stores, in PEM")
      ->type_name("FILE");
  subcommand
      .add_option("--store-region", arguments.region,
                  "Region of s3:// archives; default: AWS_REGION or us-east-1")
      ->type_name("REGION");
  AddByteSizeOption(subcommand, "--store-chunk", arguments.chunk_bytes,
                    "Least request to object stores, a multiple of 4KiB");
  subcommand
      .add_option("--store-requests", arguments.requests,
                  "Limit on requests in flight to object stores")
      ->type_name("N")
      ->check(CountInRange(1, kStoreRequestsMax))
      ->capture_default_str();
}

absl::StatusOr<RemoteStoreOptions> MakeStoreOptions(
    const StoreArguments& arguments) {
  RemoteStoreOptions store;
  if (!arguments.cache.empty()) {
    const size_t colon = arguments.cache.rfind(':');
    if (colon == std::string::npos || colon == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--store-cache must be DIR:SIZE, such as "
                       "/var/cache/quire:100GiB, got ",
                       QuotedText(arguments.cache)));
    }
    store.cache_directory = arguments.cache.substr(0, colon);
    const absl::StatusOr<uint64_t> size_bytes =
        ParseByteSize(arguments.cache.substr(colon + 1));
    if (!size_bytes.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--store-cache DIR:SIZE: ", size_bytes.status().message()));
    }
    store.cache_size_bytes = *size_bytes;
  }
  store.endpoint = arguments.endpoint;
  store.region = arguments.region.empty() ? DefaultRegion() : arguments.region;
  store.chunk_size_bytes = static_cast<uint32_t>(
      std::min<uint64_t>(arguments.chunk_bytes, UINT32_MAX));
  store.requests_max = arguments.requests;
  store.ca_file = arguments.ca;
  return store;
}

}  // namespace quire

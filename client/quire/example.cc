// SPDX-License-Identifier: Apache-2.0
//
// A complete program with the client library: lists the archives of a server
// and reads the first documents of each in one batch.
//
//   quire_example [HOST:PORT]
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

#include "client/quire/batch_reader.h"
#include "client/quire/client.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// Reads the first three documents of an archive in one batch.
absl::Status ShowArchive(Client& client,
                         const v1::ArchiveDescription& archive) {
  std::printf("%s: %llu documents\n", archive.name().c_str(),
              static_cast<unsigned long long>(archive.document_count()));
  std::vector<ReadTarget> targets;
  for (uint64_t i = 0; i < std::min<uint64_t>(archive.document_count(), 3);
       ++i) {
    targets.push_back(DocumentKey::Ordinal(i));
  }
  return client.ReadBatch(
      archive.name(), std::move(targets), [](BatchAnswer answer) {
        // Continue after a failed document.
        if (!answer.result.ok()) {
          std::fprintf(stderr, "document %llu: %s\n",
                       static_cast<unsigned long long>(answer.tag),
                       answer.result.status().ToString().c_str());
          return absl::OkStatus();
        }
        const ReadResult& result = *answer.result;
        std::printf("  %s, %zu bytes\n", result.document->id().c_str(),
                    result.data.size());
        return absl::OkStatus();
      });
}

absl::Status Run(const std::string& address) {
  ClientOptions options;
  options.address = address;
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client,
                         Client::Connect(std::move(options)));
  QUIRE_ASSIGN_OR_RETURN(const std::vector<v1::ArchiveDescription> archives,
                         client->ListArchives());
  for (const v1::ArchiveDescription& archive : archives) {
    QUIRE_RETURN_IF_ERROR(ShowArchive(*client, archive));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) {
  const absl::Status status = quire::Run(argc > 1 ? argv[1] : "127.0.0.1:7420");
  if (!status.ok()) {
    std::fprintf(stderr, "quire_example: %s\n", status.ToString().c_str());
    return 1;
  }
  return 0;
}

// SPDX-License-Identifier: GPL-3.0-or-later
//
// Objects of one archive, written to a bucket.
#ifndef QUIRE_SERVER_STORAGE_REMOTE_BUCKET_WRITER_H_
#define QUIRE_SERVER_STORAGE_REMOTE_BUCKET_WRITER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "server/storage/remote/bucket_client.h"
#include "server/storage/remote/store_address.h"

namespace quire {

// Size of the parts of an upload, larger for objects of more than 10,000 of
// them; and parts in flight, which are held in memory.
inline constexpr uint64_t kUploadPartBytes = 16 << 20;
inline constexpr int kUploadThreads = 4;
// Limit on the objects of one list.
inline constexpr size_t kListedObjectsMax = 20'000;

// Thread-compatible; blocks.
class BucketWriter {
 public:
  struct Options {
    uint64_t part_size_bytes = kUploadPartBytes;
  };

  // `client` must outlive it.
  BucketWriter(BucketClient& client, StoreAddress address)
      : BucketWriter(client, std::move(address), Options()) {}

  BucketWriter(BucketClient& client, StoreAddress address,
               const Options& options)
      : client_(client), address_(std::move(address)), options_(options) {}

  struct Found {
    uint64_t size_bytes = 0;
    std::string etag;
    // Header Last-Modified; empty without one.
    std::string last_modified = {};
  };

  // Returns size and ETag of an object; unset if there is none.
  absl::StatusOr<std::optional<Found>> Find(const std::string& object);

  // Reads the last `size_bytes` of an object that has at least as many.
  // Errors: Aborted  it is another object than `found` now.
  absl::StatusOr<std::string> ReadEnd(const std::string& object,
                                      const Found& found, uint64_t size_bytes);

  struct Listed {
    // Name of the object, as for Find().
    std::string object;
    absl::Time last_modified = {};
  };

  // Returns the objects whose name begins with `start`, in the store's order.
  // Errors: ResourceExhausted  more than kListedObjectsMax.
  //         Unavailable        an answer has no time that can be read.
  absl::StatusOr<std::vector<Listed>> List(const std::string& start);

  // Condition of a Put(): there is no object, or it has this ETag.
  struct Condition {
    bool is_new = false;
    std::string etag = {};
  };

  // Returns the ETag. Errors: Aborted  the condition does not hold; and it may
  // have held for a request whose answer was lost.
  absl::StatusOr<std::string> Put(const std::string& object,
                                  absl::string_view bytes,
                                  const Condition& condition);

  // Writes a file as a new object, by several requests if it is large: readers
  // find all of it or nothing. First removes what a killed upload of the same
  // object left, and counts it. The parts are removed if it fails.
  // Errors: Aborted  there is such an object; it may be this file, if an answer
  //                  was lost. Those of BucketClient::Send(), and of reading.
  absl::Status Upload(const std::string& object, int fd, uint64_t size_bytes,
                      const std::string& file);

  // Errors: those of BucketClient::Send().
  absl::Status Delete(const std::string& object);

  struct Unfinished {
    std::string key;
    std::string id;
  };

  // Returns the unfinished uploads below the address, or of one object; at most
  // ten thousand.
  absl::StatusOr<std::vector<Unfinished>> ListUnfinished(
      const std::string& object = "");

  // Number of unfinished uploads that Upload() removed.
  uint64_t removed_count() const { return removed_count_; }

  const StoreAddress& address() const { return address_; }

 private:
  struct Parts;

  absl::StatusOr<std::string> Begin(const std::string& object);
  absl::Status SendParts(const std::string& object, const std::string& id,
                         Parts& parts);
  // Sends parts until there are no more or one has failed.
  void SendSome(const std::string& object, const std::string& id, Parts& parts);
  absl::Status Complete(const std::string& object, const std::string& id,
                        Parts& parts);
  absl::Status Remove(const std::string& path, const std::string& id);

  BucketClient& client_;
  const StoreAddress address_;
  const Options options_;
  uint64_t removed_count_ = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_REMOTE_BUCKET_WRITER_H_

// SPDX-License-Identifier: Apache-2.0
#include "testing/codecs/deflate_test_streams.h"

#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"

namespace quire {

std::string ZlibStream(const DeflateParameters& parameters,
                       const std::string& text, DeflateContainer container) {
  QUIRE_CHECK(parameters.encoder == DeflateEncoderId::kZlib);
  z_stream stream = {};
  const int bits = parameters.window_bits;
  const int window_bits = container == DeflateContainer::kRaw    ? -bits
                          : container == DeflateContainer::kZlib ? bits
                                                                 : bits + 16;
  QUIRE_CHECK(deflateInit2(&stream, parameters.level, Z_DEFLATED, window_bits,
                           parameters.memory_level,
                           static_cast<int>(parameters.strategy)) == Z_OK);
  std::string stored(deflateBound(&stream, text.size()) + 100, '\0');
  std::string in = text;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(stored.data());
  stream.avail_out = static_cast<uInt>(stored.size());
  QUIRE_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  stored.resize(stream.total_out);
  deflateEnd(&stream);
  return stored;
}

std::string GzipProgramStream(int level, const std::string& text) {
  const char* const directory = std::getenv("TMPDIR");
  std::string path = absl::StrCat(directory == nullptr ? "/tmp" : directory,
                                  "/quire-deflate-XXXXXX");
  const int file = mkstemp(path.data());
  QUIRE_CHECK(file >= 0, path, " cannot be made");
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t size =
        write(file, text.data() + written, text.size() - written);
    QUIRE_CHECK(size > 0, path, " cannot be written");
    written += static_cast<size_t>(size);
  }
  close(file);
  const std::string command = absl::StrCat("gzip -n -", level, " -c < ", path);
  FILE* const pipe = popen(command.c_str(), "r");
  QUIRE_CHECK(pipe != nullptr);
  std::string stored;
  std::array<char, 65536> buffer;
  for (size_t size = 1; size > 0;) {
    size = fread(buffer.data(), 1, buffer.size(), pipe);
    stored.append(buffer.data(), size);
  }
  QUIRE_CHECK(pclose(pipe) == 0, command, " failed");
  unlink(path.c_str());
  return stored;
}

std::string EncodedStream(DeflateEncoder& encoder,
                          const DeflateParameters& parameters,
                          const std::string& text) {
  std::string stored;
  const absl::Status status =
      encoder.Encode(parameters, AsBytes(text), [&](ByteView bytes) {
        stored.append(bytes.begin(), bytes.end());
        return true;
      });
  QUIRE_CHECK(status.ok(), status.message());
  return stored;
}

DeflateParameters RandomZlibParameters(TestRandom& random) {
  return {.level = static_cast<uint8_t>(1 + RandomBelow(random, 9)),
          .memory_level = static_cast<uint8_t>(1 + RandomBelow(random, 9)),
          .window_bits = static_cast<uint8_t>(9 + RandomBelow(random, 7)),
          .strategy = static_cast<DeflateStrategy>(RandomBelow(random, 5))};
}

std::string MixedText(TestRandom& random, size_t size) {
  std::string text;
  while (text.size() < size) {
    const size_t piece = 1 + RandomBelow(random, 3000);
    switch (RandomBelow(random, 4)) {
      case 0:
        text += RandomBytes(random, piece);
        break;
      case 1:
        text.append(piece, static_cast<char>(RandomBelow(random, 3)));
        break;
      case 2:
        text += RandomText(random, piece, 50);
        break;
      default:
        text += text.substr(RandomBelow(random, text.size() + 1), piece);
    }
  }
  text.resize(size);
  return text;
}

std::vector<TestInput> DeflateTexts(TestRandom& random, size_t size) {
  std::vector<TestInput> texts =
      TestInputs(random, size, RandomText(random, 40000));
  texts.push_back({"mixed", MixedText(random, size)});
  return texts;
}

}  // namespace quire

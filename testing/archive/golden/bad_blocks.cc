// SPDX-License-Identifier: GPL-3.0-or-later
//
// Bad frames, and bad blocks of each codec.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/bytes.h"
#include "codecs/block_codec.h"
#include "codecs/payload/payload_codec.h"
#include "server/archive/format/manifest.h"
#include "testing/archive/crafted_archive.h"
#include "testing/archive/golden/bad_archives.h"

namespace quire {
namespace {

// Frames, and blocks of codecs that depend on the block alone.
void WriteBadFrames(const std::string& directory) {
  WriteBad(directory, "block-checksum", [](Crafted& made) {
    made.edit_frame = [](std::string& frame) { frame[5] ^= 1; };
  });
  WriteBad(directory, "block-misplaced",
           [](Crafted& made) { made.frame_index = 1; });
  WriteBad(directory, "block-reserved", [](Crafted& made) {
    made.edit_frame = [](std::string& frame) {
      frame[3] = '\x03';
      Reseal(frame);
    };
  });
  WriteBad(directory, "block-word", [](Crafted& made) {
    made.edit_frame = [](std::string& frame) {
      frame[0] = 4;
      Reseal(frame);
    };
  });
  WriteBad(directory, "block-zlib", [](Crafted& made) {
    made.UseCodec(CodecId::kZlib, "garbage", "hello you all");
  });
  WriteBad(directory, "block-zlib-short", [](Crafted& made) {
    // A stored DEFLATE block of the five bytes "hello".
    made.UseCodec(CodecId::kZlib, std::string("\x01\x05\x00\xFA\xFFhello", 10),
                  "hello you all");
  });
  WriteBad(directory, "block-lz4", [](Crafted& made) {
    made.UseCodec(CodecId::kLz4, "\xFF\xFF", "hello you all");
  });
  WriteBad(directory, "block-zstd", [](Crafted& made) {
    made.UseCodec(CodecId::kZstd, "garbage", "hello you all");
  });
  WriteBad(directory, "block-xz", [](Crafted& made) {
    made.UseCodec(CodecId::kXz, "garbage", "hello you all");
  });
  WriteBad(directory, "block-xz-short", [](Crafted& made) {
    // A chunk of the five bytes "hello", and the end.
    made.UseCodec(CodecId::kXz, std::string("\x01\0\x04hello\0", 9),
                  "hello you all");
  });
  for (const auto& [name, header] :
       {std::pair("block-numeric", '\x20'),
        std::pair("block-numeric-kind", '\x24'),
        std::pair("block-numeric-width", '\x41')}) {
    WriteBad(directory, name, [head = header](Crafted& made) {
      // The start of a frame; or an undefined transform.
      made.UseCodec(CodecId::kNumeric,
                    absl::StrCat(std::string(1, head), "\x28\xB5\x2F\xFD"),
                    "hello you all");
    });
  }
}

// Blocks of codec auto.
void WriteBadMembers(const std::string& directory) {
  const auto block = [&](const char* name, const std::string& payload,
                         CodecId member) {
    WriteBad(directory, name, [&](Crafted& made) {
      made.UseDictionary("dictionary text");
      made.UseCodec(CodecId::kAuto, payload, std::string(40, 'a'));
      made.edit_manifest = [=](Manifest& m) {
        m.members = {{member, 1, 40, payload.size()}};
      };
    });
  };
  block("block-auto", "\x63hello", static_cast<CodecId>(0x63));
  block("block-auto-nested", "\x0C\x01hello", CodecId::kAuto);
  block("block-auto-member", "\x02\xFF\xFF", CodecId::kLz4);
  // Good in lz4: a literal, 34 copies of it, five literals.
  block("members-count",
        std::string("\x02\x1F\x61\1\0\x0F\x50"
                    "aaaaa",
                    12),
        CodecId::kRlz);
}

// Blocks with recipes.
void WriteBadInflatedBlocks(const std::string& directory) {
  const auto block = [&](const char* name, const std::string& payload) {
    WriteBad(directory, name, [&](Crafted& made) {
      made.UseDictionary("dictionary text");
      made.UseCodec(CodecId::kRlz, payload, std::string(200, 'a'));
      made.has_recipe = true;
      made.edit_manifest = [](Manifest& m) { m.has_recipes = true; };
    });
  };
  // The numbers of members and of bytes of inflated text; of the member gap,
  // kind, size and size of its text, and checksum.
  block("block-inflate-count", "\x04\x01");
  block("block-inflate-size", "\x02\x81\x80\x40");
  block("block-inflate-large", "\x01\x81\x80\x80\x03");
  block("block-inflate-kind", std::string("\x01\xC8\x01\0\0\x40\x40", 7));
  block("block-inflate-gap", "\x01\xC8\x01\xC9\x01");
  block("block-inflate-none", std::string("\0\0", 2));
  block("block-inflate-checksum",
        std::string("\x01\xC8\x01\0\x85\xC3\x06\x40\x81\x01\0\0\0", 13));
  block("block-inflate-text",
        std::string("\x01\x80\x40\0\x85\xC3\x06\x40\x81\x40", 10));
  // A text of 1,100,000 bytes has two partitions; a checksum of zeros.
  WriteBad(directory, "block-inflate-part", [](Crafted& made) {
    made.UseDictionary("dictionary text");
    made.UseCodec(
        CodecId::kRlz,
        std::string("\x01\xE0\x91\x43\0\x85\xC3\x06\xA0\x1F\xE0\x91\x43", 13) +
            std::string(4, '\0') + "\x7Fxyz",
        std::string(4000, 'a'));
    made.has_recipe = true;
    made.edit_manifest = [](Manifest& m) { m.has_recipes = true; };
  });
  // A valid recipe in an archive without has_recipes.
  WriteBad(directory, "block-inflate-unsaid", [](Crafted& made) {
    made.UseDictionary("dictionary text");
    made.UseCodec(CodecId::kRlz,
                  std::string("\x01\xC8\x01\0\x85\xC3\x06\x40\x81\x01", 10) +
                      std::string(20, '\0'),
                  std::string(200, 'a'));
    made.has_recipe = true;
  });
}

// Blocks of codecs with a dictionary or a symbol table.
void WriteBadSharedBlocks(const std::string& directory) {
  WriteBad(directory, "block-rlz", [](Crafted& made) {
    made.UseDictionary("dictionary text");
    // Five literals, then one match of 34 bytes at a distance of 60, of which
    // there are 20 before it. All codes are of the kind that has one value.
    made.UseCodec(CodecId::kRlz,
                  std::string("\x28\xB5\x2F\xFD\x20\x27\x65\0\0"
                              "\x28hello\x01\x54\x05\x05\x1F\x3F",
                              21),
                  "hello" + std::string(34, 'x'));
  });
  WriteBad(directory, "block-fsst", [](Crafted& made) {
    made.symbol_table = CraftedSymbolTable();
    // Two strings, of 511 and of 89 times "the " or so; the second begins at
    // byte 512 of the codes, of which there are 150.
    made.UseCodec(CodecId::kFsst,
                  std::string("\0\0\2", 3) + std::string(150, '\0'),
                  std::string(600, 'x'));
  });
  WriteBad(directory, "block-fsst-table", [](Crafted& made) {
    made.symbol_table = CraftedSymbolTable();
    std::string table = CraftedSymbolTable();
    ++table[9];
    made.UseCodec(CodecId::kFsst, "\1" + table + std::string(15, '\0'),
                  std::string(60, 'x'));
  });
}

void WriteBadPaperBlocks(const std::string& directory) {
  WriteBad(directory, "block-rlz-factor", [](Crafted& made) {
    made.UseDictionary("dictionary text");
    // One factor: 100 bytes from offset 0 of a dictionary of 15 bytes.
    const std::string offsets("\x01\x04\x00\xFB\xFF\0\0\0\0", 9);
    const std::string lengths("\x01\x01\x00\xFE\xFF\x64", 6);
    made.UseCodec(CodecId::kRlzZz,
                  CraftedVarints({1, offsets.size()}) + offsets + lengths,
                  std::string(100, 'x'));
  });
  WriteBad(directory, "block-zlib-window", [](Crafted& made) {
    made.UseDictionary("dictionary text");
    // A window from byte 16 of a dictionary of 15 bytes; then a stored DEFLATE
    // block of the text.
    const std::string text = "hello, hello, hello to you";
    made.UseCodec(
        CodecId::kZlibPrimed,
        std::string("\x10\x01\x0D\x00\xF2\xFF", 6) + text.substr(0, 13), text);
  });
  WriteBad(directory, "block-rlz-literal", [](Crafted& made) {
    made.UseDictionary("dictionary text");
    // Two factors, so that there is a second offset: the literal 256.
    const std::string factors("\x02\0\0\0\0\0\1\0\0\x0F\0", 11);
    made.UseCodec(CodecId::kRlzUv, factors, std::string(16, 'x'));
  });
  WriteBad(directory, "block-rlz-count", [](Crafted& made) {
    made.UseDictionary("dictionary text");
    // Room for three offsets of a byte, but no length left for the third.
    made.UseCodec(CodecId::kRlzPv, std::string("\x03\0\0\0\x0F\x0F", 6),
                  std::string(30, 'x'));
  });
  WriteBad(directory, "block-rlz-run", [](Crafted& made) {
    made.UseDictionary("dictionary text");
    // One token, a run of 16 literals, and a stream of no literals.
    const std::string tokens("\x01\x01\x00\xFE\xFF\x0F", 6);
    made.UseCodec(CodecId::kRlzZzz,
                  CraftedVarints({1, tokens.size(), 0}) + tokens +
                      std::string("\x01\0\0\xFF\xFF", 5),
                  std::string(16, 'x'));
  });
}

// A block of zeros as a codec stores it in partitions of 4096 bytes.
std::string ZerosInPartitions(CodecId id, size_t size) {
  CodecSpec spec = DefaultCodecSpec(*FindCodec(id));
  spec.partition_size_bytes = 4096;
  const auto codec =
      MakePayloadCodec(spec, nullptr, CodecUse::kEncodeAndDecode).value();
  std::string stored(codec->StoredSizeMax(size), '\0');
  const Payload payload =
      codec
          ->Encode(AsBytes(std::string(size, '\0')), AsMutableBytes(stored),
                   *codec->NewScratch())
          .value();
  return std::string(AsText(payload.bytes));
}

// Blocks of two partitions of zeros. The table has one byte, the size of the
// first.
void WriteBadPartitions(const std::string& directory) {
  constexpr size_t kSize = 5000;
  const auto write = [&](const std::string& name, CodecId id,
                         const std::string& payload) {
    WriteBad(directory, name, [&](Crafted& made) {
      made.header.block_size_bytes = 8192;
      made.edit_manifest = [](Manifest& m) { m.block_size_bytes = 8192; };
      made.partition_size_bytes = kPartitionSizeBytesMin;
      made.UseCodec(id, payload, std::string(kSize, '\0'));
    });
  };
  const std::string good = ZerosInPartitions(CodecId::kZlib, kSize);
  const auto first_size = size_t{static_cast<uint8_t>(good[0])};
  const std::string second = good.substr(1 + first_size);
  const auto write_with_size = [&](const char* name, char size) {
    write(name, CodecId::kZlib, std::string({size}) + good.substr(1));
  };
  write_with_size("block-partition-empty", 0);
  write_with_size("block-partition-past", 127);
  write_with_size("block-partition-overlap", static_cast<char>(first_size - 1));
  write("block-partition-left", CodecId::kZlib, good + '\0');
  // All of the first partition's text as a complete stream.
  const std::string whole = ZerosInPartitions(CodecId::kZlib, 4096);
  write("block-partition-final", CodecId::kZlib,
        std::string({static_cast<char>(whole.size())}) + whole + second);
  // By fixed codes: a match of 258 bytes at distance 1 before all text.
  write("block-partition-match", CodecId::kZlib,
        good.substr(0, 1 + first_size) + std::string("\x1B\x05\0\0", 4));
  for (const CodecId id : {CodecId::kZstd, CodecId::kLz4}) {
    const std::string stored = ZerosInPartitions(id, kSize);
    write(absl::StrCat("block-partition-", std::string(FindCodec(id)->name)),
          id, stored.substr(0, stored.size() - 3));
  }
}

}  // namespace

void WriteBadBlocks(const std::string& directory) {
  WriteBadFrames(directory);
  WriteBadPartitions(directory);
  WriteBadInflatedBlocks(directory);
  WriteBadMembers(directory);
  WriteBadSharedBlocks(directory);
  WriteBadPaperBlocks(directory);
}

}  // namespace quire

// SPDX-License-Identifier: Apache-2.0
//
// main() of a fuzz target without libFuzzer, which runs it once on each file:
//
//   PROGRAM FILE...
//
// Names a file before it runs the target on it, so that the last one named is
// the one that failed.
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: " << argv[0] << " FILE...\n";
    return 2;
  }
  for (int i = 1; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    const std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
    if (!file) {
      std::cerr << argv[i] << ": cannot be read\n";
      return 1;
    }
    std::cout << argv[i] << std::endl;
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
//
// What a shell may complete on a command line of quire that only the server
// knows: names of archives, ids of documents.
#ifndef QUIRE_CLIENT_CLI_COMPLETE_WORDS_H_
#define QUIRE_CLIENT_CLI_COMPLETE_WORDS_H_

#include <string>
#include <vector>

#include "CLI/CLI.hpp"

#include "client/cli/cli_settings.h"

namespace quire {

// What the last of `words` may become; the first is the program's name. `app`
// is the tree of options, and says where in a command line an archive or an id
// stands; `settings.server` is asked unless the words name another.
// Blocks for a second at most. Empty if there is nothing to offer, or no server
// that answers. Words that a shell would not show in a line are left out.
std::vector<std::string> CompleteWords(const CLI::App& app,
                                       const CliSettings& settings,
                                       const std::vector<std::string>& words);

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_COMPLETE_WORDS_H_

// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CLIENT_CLI_COMPLETE_WORDS_H_
#define QUIRE_CLIENT_CLI_COMPLETE_WORDS_H_

#include <string>
#include <vector>

#include "client/cli/cli_settings.h"
#include "codecs/base/completion.h"

namespace quire {

// Returns names of archives or ids of documents for a positional argument of
// that kind. Asks the server that `typed` names, else that of `settings`.
// Blocks for at most a second. Empty if no server answers. Omits words that a
// shell would not show on one line.
std::vector<std::string> WordsFromServer(const CliSettings& settings,
                                         const TypedWords& typed);

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_COMPLETE_WORDS_H_

// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CLIENT_CLI_COMPLETE_WORDS_H_
#define QUIRE_CLIENT_CLI_COMPLETE_WORDS_H_

#include <string>
#include <vector>

#include "client/cli/cli_settings.h"
#include "codecs/base/completion.h"

namespace quire {

// Returns names of archives or ids of documents for a positional that is one,
// by asking the server that `typed` names, else that of `settings`. Blocks for
// a second at most. Empty if no server answers. Words that a shell would not
// show in a line are left out.
std::vector<std::string> WordsFromServer(const CliSettings& settings,
                                         const TypedWords& typed);

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_COMPLETE_WORDS_H_

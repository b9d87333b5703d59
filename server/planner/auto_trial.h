// SPDX-License-Identifier: GPL-3.0-or-later
//
// How fast the codecs are that `auto` chooses from.
#ifndef QUIRE_SERVER_PLANNER_AUTO_TRIAL_H_
#define QUIRE_SERVER_PLANNER_AUTO_TRIAL_H_

#include <map>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"

#include "codecs/auto/member_choice.h"
#include "codecs/block_codec.h"
#include "server/planner/codec_trial.h"

namespace quire {

// Of the members of all objectives and perhaps others, by FormatCodecSpec().
using PlannedSpeeds = std::map<std::string, AutoSpeed>;

// As MakeAutoCodec() takes them. REQUIRES: `planned` has all members.
AutoSpeeds SpeedsOf(const PlannedSpeeds& planned, AutoObjective objective);

// Rounded, and within AutoSpeed's bounds.
AutoSpeed SpeedOf(const CodecTrialResult& trial);

// Tries those members that `planned` does not have yet, on `pieces`; numeric on
// what looks like numbers there, if anything does. Errors: as TryCodec().
absl::Status TryAutoMembers(const std::shared_ptr<const CodecContext>& context,
                            std::span<const std::string> pieces,
                            const TrialOptions& options,
                            PlannedSpeeds& planned);

}  // namespace quire

#endif  // QUIRE_SERVER_PLANNER_AUTO_TRIAL_H_

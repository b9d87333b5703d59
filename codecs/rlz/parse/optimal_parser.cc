// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/parse/optimal_parser.h"

#include <algorithm>

namespace quire {
namespace {

// For a distance in full.
constexpr uint32_t kFullLengthMin = 4;

// Below this, skipping the positions before it does not pay.
constexpr uint32_t kLeapMin = 8;

// Before the first parse a byte counts as a literal if no copy of at least this
// length contains it; the others count this much less.
constexpr uint32_t kGuessLength = 6;
constexpr uint32_t kGuessWeight = 64;

// Longer ones are priced one at a time.
constexpr uint32_t kListedLengthMax =
    SequencePrices::kMatchLengthsSize - CheapestSteps::kLanes;

}  // namespace

void OptimalParser::Parse(const DictionaryIndex& index, const BlockText& text,
                          uint32_t piece_size, SequenceList& sequences) {
  FindCopies(index, text);
  ParseFound(piece_size, sequences);
}

void OptimalParser::FindCopies(const DictionaryIndex& index,
                               const BlockText& text) {
  text_ = &text;
  finder_.Find(index, text);
}

void OptimalParser::ParseFound(uint32_t piece_size, SequenceList& sequences) {
  sequences.clear();
  recent_ = RecentDistances();
  for (begin_ = 0; begin_ < text_->size(); begin_ = end_) {
    end_ = begin_ + std::min(text_->size() - begin_, piece_size);
    SequenceStatistics statistics = GuessStatistics();
    const size_t first = sequences.size();
    prices_.Set(statistics);
    for (uint32_t round = 1, rounds = options_.rounds; round < rounds;
         ++round) {
      ParseDraft();
      EmitPiece(sequences);
      statistics = CountParse(sequences, first);
      sequences.resize(first);
      if (round + 1 == rounds && rounds < options_.rounds_max &&
          IsSurprising(statistics)) {
        ++rounds;
      }
      prices_.Set(statistics);
    }
    ParseFinal();
    EmitPiece(sequences);
    recent_ = states_[CheapestSteps::kCheapest][end_ - begin_].recent;
  }
}

// Guesses that literals are the bytes in no copy of a good length.
SequenceStatistics OptimalParser::GuessStatistics() const {
  SequenceStatistics statistics = TypicalStatistics(text_->dictionary().size());

  uint32_t covered_end = begin_;
  for (uint32_t position = begin_; position < end_; ++position) {
    for (uint32_t number = finder_.FirstAt(position);
         number != CopyFinder::kNone; number = finder_.Next(number)) {
      const Copy& copy = finder_.Get(number);
      if (copy.end >= copy.begin + kGuessLength) {
        covered_end = std::max(covered_end, copy.end);
      }
    }
    statistics.literals[text_->block()[position]] +=
        position < covered_end ? 1 : kGuessWeight;
  }
  return statistics;
}

SequenceStatistics OptimalParser::CountParse(const SequenceList& sequences,
                                             size_t first) const {
  SequenceStatistics statistics;
  RecentDistances recent = recent_;
  const uint8_t* literals_at = text_->block().data() + begin_;
  for (size_t i = first; i < sequences.size(); ++i) {
    statistics.Add(literals_at, sequences[i], recent);
    literals_at += sequences[i].literal_run + sequences[i].match_length;
  }
  return statistics;
}

// Returns true if the current prices, which led to a parse with these
// statistics, are far from those that follow from it.
bool OptimalParser::IsSurprising(const SequenceStatistics& statistics) const {
  SequencePrices own;
  own.Set(statistics);
  const int64_t predicted = prices_.Total(statistics);
  return (predicted - own.Total(statistics)) * 1024 >=
         predicted * options_.surprise_min;
}

void OptimalParser::ParseDraft() {
  cut_length_max_ =
      std::min(options_.cut_length_max, options_.draft_cut_length_max);
  settled_after_ =
      std::min(options_.settled_after, options_.draft_settled_after);
  ParsePiece<false>(options_.draft_tolerance);
}

void OptimalParser::ParseFinal() {
  cut_length_max_ = options_.cut_length_max;
  settled_after_ = options_.settled_after;
  if (options_.rival_margin > 0) {
    ParsePiece<true>(0);
  } else {
    ParsePiece<false>(0);
  }
}

template <bool kRivals>
void OptimalParser::ParsePiece(int32_t tolerance) {
  const uint32_t size = end_ - begin_;
  for (std::vector<State>& states : states_) {
    if (states.size() < size + 1) {
      states.resize(size + 1);
    }
  }
  steps_.Start(size, prices_.LiteralRun(0), recent_.distances[0]);
  states_[CheapestSteps::kCheapest][0] = {.literal_run = 0, .recent = recent_};
  sources_.clear();
  leads_.clear();
  entered_ = begin_;
  long_copy_ = {};
  recent_sources_ = {};
  for (uint32_t position = begin_; position < end_;) {
    Settle(position);
    if constexpr (kRivals) {
      ContinueRival(position);
    }
    if (IsHopeless(position, tolerance)) {
      if constexpr (kRivals) {
        TryLiteral<kRivals>(position, CheapestSteps::kCheapest);
      }
      ++position;
      continue;
    }
    EnterCopies(position);
    ListChoices(position);
    if constexpr (kRivals) {
      TryLeads(position);
    }
    const uint32_t leap =
        choice_count_ == 0 ? 0 : TryChoices<kRivals>(position);
    if (leap == 0) {
      TryLiteral<kRivals>(position, CheapestSteps::kCheapest);
    }
    position += std::max(leap, 1u);
  }
  Settle(end_);
}

// Continuing from the next position is as good as from `position` if that is no
// more expensive to reach.
bool OptimalParser::IsHopeless(uint32_t position, int32_t tolerance) const {
  const uint32_t at = position - begin_;
  return position + 1 < end_ &&
         steps_.Cost(at + 1) - tolerance < steps_.Cost(at);
}

// The paths to `position` are final: derives the states after them.
void OptimalParser::Settle(uint32_t position) {
  if (position == begin_) {
    return;
  }
  const uint32_t at = position - begin_;
  for (const uint32_t path :
       {CheapestSteps::kCheapest, CheapestSteps::kRival}) {
    if (steps_.Cost(at, path) != CheapestSteps::kUnreached) {
      states_[path][at] = StateAfterStep(at, path);
    }
  }
}

OptimalParser::State OptimalParser::StateAfterStep(uint32_t at,
                                                   uint32_t path) const {
  const uint32_t length = steps_.Length(at, path);
  const State& from =
      states_[steps_.Before(at, path)][at - std::max(length, 1u)];
  State state = {.literal_run = length == 0 ? from.literal_run + 1 : 0,
                 .recent = from.recent};
  if (length != 0) {
    state.recent.Use(steps_.Distance(at, path));
  }
  return state;
}

// A rival is there for its recent distances: all else is cheaper after the
// cheapest path.
void OptimalParser::ContinueRival(uint32_t position) {
  constexpr uint32_t kPath = CheapestSteps::kRival;
  const uint32_t at = position - begin_;
  const int32_t cost = steps_.Cost(at, kPath);
  if (cost == CheapestSteps::kUnreached ||
      cost - steps_.Cost(at) > options_.rival_margin) {
    return;
  }
  const State& state = states_[kPath][at];
  uint32_t longest = kMatchLengthMin - 1;
  for (uint32_t number = 1; number <= 3; ++number) {
    const uint32_t distance = state.recent.Get(number, state.literal_run == 0);
    const uint32_t length =
        distance == 0 ? 0 : RecentLength(position, distance);
    if (length <= longest) {
      continue;
    }
    const int32_t total =
        cost + prices_.RecentDistance(number) + prices_.LiteralRun(0);
    const uint32_t listed =
        std::min({length, cut_length_max_, kListedLengthMax});
    if (longest < listed) {
      steps_.OfferLengths<true>(at, kPath, longest + 1, listed, distance, total,
                                prices_.MatchLengths());
    }
    if (length > listed) {
      steps_.OfferCopy<true>(at, kPath, length, distance,
                             total + prices_.MatchLength(length));
    }
    longest = length;
  }
  TryLiteral<true>(position, kPath);
}

void OptimalParser::EnterCopies(uint32_t position) {
  const auto is_past = [position](const Source& source) {
    return source.end < position + kFullLengthMin;
  };
  std::erase_if(sources_, is_past);
  std::erase_if(leads_, is_past);
  for (; entered_ <= position; ++entered_) {
    for (uint32_t number = finder_.FirstAt(entered_);
         number != CopyFinder::kNone; number = finder_.Next(number)) {
      const Copy& copy = finder_.Get(number);
      const uint32_t copy_end = std::min(copy.end, end_);
      if (copy_end >= position + kFullLengthMin) {
        const Source source = {.end = copy_end, .distance = copy.distance};
        copy.is_lead ? AddLead(source) : AddSource(source);
      }
    }
  }
}

// A nearer source that extends as far replaces this one.
void OptimalParser::AddSource(const Source& source) {
  const auto at = std::ranges::lower_bound(sources_, source.distance, {},
                                           &Source::distance);
  if (at != sources_.begin() && (at - 1)->end >= source.end) {
    return;
  }
  const auto useful =
      std::find_if(at, sources_.end(),
                   [&](const Source& other) { return other.end > source.end; });
  sources_.insert(sources_.erase(at, useful), source);
  if (sources_.size() > kSourceCountMax) {
    sources_.erase(sources_.begin());
  }
}

void OptimalParser::AddLead(const Source& source) {
  if (leads_.size() == kLeadCountMax) {
    leads_.erase(leads_.begin());
  }
  leads_.push_back(source);
}

void OptimalParser::ListChoices(uint32_t position) {
  choice_count_ = 0;
  AddRecentChoices(position);
  recent_choice_count_ = choice_count_;
  for (const Source& source : sources_) {
    choices_[choice_count_++] = {.length = source.end - position,
                                 .distance = source.distance,
                                 .price = prices_.Distance(source.distance)};
  }
}

void OptimalParser::AddRecentChoices(uint32_t position) {
  const State& here = states_[CheapestSteps::kCheapest][position - begin_];
  uint32_t longest = kMatchLengthMin - 1;
  for (uint32_t number = 1; number <= 3; ++number) {
    const uint32_t distance = here.recent.Get(number, here.literal_run == 0);
    const uint32_t length =
        distance == 0 ? 0 : RecentLength(position, distance);
    if (length > longest) {
      choices_[choice_count_++] = {.length = length,
                                   .distance = distance,
                                   .price = prices_.RecentDistance(number)};
      longest = length;
    }
  }
}

uint32_t OptimalParser::RecentLength(uint32_t position, uint32_t distance) {
  for (const Source& source : recent_sources_) {
    if (source.distance == distance && source.end > position) {
      return source.end - position;
    }
  }
  const uint32_t length = text_->MatchLength(position, distance, end_);
  // Position at which to search again.
  if (length >= options_.long_length) {
    recent_sources_[recent_source_next_] = {.end = position + length,
                                            .distance = distance};
    recent_source_next_ = (recent_source_next_ + 1) % recent_sources_.size();
  }
  return length;
}

// Returns how many positions can be skipped; 0 if none.
template <bool kRivals>
uint32_t OptimalParser::TryChoices(uint32_t position) {
  uint32_t longest = 0;
  for (size_t i = 0; i < choice_count_; ++i) {
    longest = std::max(longest, choices_[i].length);
  }
  if (longest < options_.long_length) {
    TryAllLengths<kRivals>(position, longest);
    return 0;
  }
  const uint32_t leap = TryLongChoices<kRivals>(position, longest);
  if (leap == 0) {
    TryAllLengths<kRivals>(position, cut_length_max_);
  }
  return leap;
}

// Inside a long copy the only decision is to leave it: for one that extends
// farther, or soon after its start for a cheaper one, a recent distance that is
// valid again after an edit.
template <bool kRivals>
uint32_t OptimalParser::TryLongChoices(uint32_t position, uint32_t longest) {
  if (long_copy_.end != position + longest ||
      long_copy_.next_begin <= position) {
    FindNextBegin(position, position + longest);
  }
  const uint32_t to_next = long_copy_.next_begin - position;
  for (size_t i = 0; i < choice_count_; ++i) {
    const Choice& choice = choices_[i];
    if (choice.length > cut_length_max_) {
      TryLength<kRivals>(position, choice.length, choice);
    }
    if (choice.length > to_next && to_next >= kMatchLengthMin) {
      TryLength<kRivals>(position, to_next, choice);
    }
  }
  const bool settled = position - long_copy_.entered >= settled_after_;
  return settled && to_next >= kLeapMin ? to_next : 0;
}

void OptimalParser::FindNextBegin(uint32_t position, uint32_t end) {
  long_copy_ = {.end = end, .entered = position, .next_begin = end};
  for (uint32_t begin = position + 1; begin < end; ++begin) {
    for (uint32_t number = finder_.FirstAt(begin); number != CopyFinder::kNone;
         number = finder_.Next(number)) {
      if (finder_.Get(number).end > end) {
        long_copy_.next_begin = begin;
        return;
      }
    }
  }
}

template <bool kRivals>
void OptimalParser::TryAllLengths(uint32_t position, uint32_t length_max) {
  const uint32_t at = position - begin_;
  const int32_t cost = steps_.Cost(at) + prices_.LiteralRun(0);
  uint32_t length = kMatchLengthMin;
  for (size_t i = 0; i < choice_count_; ++i) {
    if (i == recent_choice_count_) {
      length = kFullLengthMin;
    }
    const Choice& choice = choices_[i];
    const uint32_t last = std::min(choice.length, length_max);
    const uint32_t listed = std::min(last, kListedLengthMax);
    if (length <= listed) {
      steps_.OfferLengths<kRivals>(at, CheapestSteps::kCheapest, length, listed,
                                   choice.distance, cost + choice.price,
                                   prices_.MatchLengths());
      length = listed + 1;
    }
    for (; length <= last; ++length) {
      TryLength<kRivals>(position, length, choice);
    }
  }
}

// The cost of a path includes its current run of literals.
template <bool kRivals>
void OptimalParser::TryLiteral(uint32_t position, uint32_t path) {
  const uint32_t at = position - begin_;
  const State& from = states_[path][at];
  const uint32_t run = from.literal_run;
  steps_.OfferLiteral<kRivals>(
      at, path, from.recent.distances[0],
      steps_.Cost(at, path) + prices_.Literal(text_->block()[position]) +
          prices_.LiteralRun(run + 1) - prices_.LiteralRun(run));
}

template <bool kRivals>
void OptimalParser::TryLength(uint32_t position, uint32_t length,
                              const Choice& choice) {
  const uint32_t at = position - begin_;
  steps_.OfferCopy<kRivals>(
      at, CheapestSteps::kCheapest, length, choice.distance,
      steps_.Cost(at) + choice.price + prices_.MatchLength(length) +
          prices_.LiteralRun(0));
}

// A lead pays only if it is copied to its end.
void OptimalParser::TryLeads(uint32_t position) {
  for (const Source& lead : leads_) {
    TryLength<true>(position, lead.end - position,
                    {.length = lead.end - position,
                     .distance = lead.distance,
                     .price = prices_.Distance(lead.distance)});
  }
}

// Backwards: the literals after a copy belong to the next step.
void OptimalParser::EmitPiece(SequenceList& sequences) const {
  const size_t first = sequences.size();
  Sequence step;
  uint32_t path = CheapestSteps::kCheapest;
  for (uint32_t size = end_ - begin_; size > 0;) {
    const uint32_t length = steps_.Length(size, path);
    const uint32_t distance = steps_.Distance(size, path);
    path = steps_.Before(size, path);
    if (length == 0) {
      ++step.literal_run;
      --size;
    } else {
      sequences.push_back(step);
      step = {.literal_run = 0, .match_length = length, .distance = distance};
      size -= length;
    }
  }
  sequences.push_back(step);
  std::reverse(sequences.begin() + static_cast<ptrdiff_t>(first),
               sequences.end());
}

}  // namespace quire

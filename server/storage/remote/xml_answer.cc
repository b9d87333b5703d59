// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/remote/xml_answer.h"

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

#include "codecs/base/status_macros.h"

namespace quire {
namespace {

bool IsNameByte(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
         c == '-' || c == '.' || c == ':';
}

void AppendUtf8(uint32_t code, std::string& text) {
  if (code < 0x80) {
    text.push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    text.push_back(static_cast<char>(0xC0 | (code >> 6)));
    text.push_back(static_cast<char>(0x80 | (code & 0x3F)));
  } else if (code < 0x10000) {
    text.push_back(static_cast<char>(0xE0 | (code >> 12)));
    text.push_back(static_cast<char>(0x80 | ((code >> 6) & 0x3F)));
    text.push_back(static_cast<char>(0x80 | (code & 0x3F)));
  } else {
    text.push_back(static_cast<char>(0xF0 | (code >> 18)));
    text.push_back(static_cast<char>(0x80 | ((code >> 12) & 0x3F)));
    text.push_back(static_cast<char>(0x80 | ((code >> 6) & 0x3F)));
    text.push_back(static_cast<char>(0x80 | (code & 0x3F)));
  }
}

class Parser {
 public:
  explicit Parser(absl::string_view text) : rest_(text) {}

  absl::StatusOr<XmlElement> Parse() {
    absl::ConsumePrefix(&rest_, "\xEF\xBB\xBF");
    QUIRE_RETURN_IF_ERROR(SkipMisc());
    XmlElement root;
    QUIRE_RETURN_IF_ERROR(ParseElement(1, root));
    QUIRE_RETURN_IF_ERROR(SkipMisc());
    return rest_.empty() ? absl::StatusOr<XmlElement>(std::move(root))
                         : Bad("text after the root element");
  }

 private:
  static absl::Status Bad(absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("an answer in XML has ", what));
  }

  void SkipSpace() { rest_ = absl::StripLeadingAsciiWhitespace(rest_); }

  // Skips up to the end of `end`.
  absl::Status SkipPast(absl::string_view end) {
    const size_t found = rest_.find(end);
    if (found == absl::string_view::npos) {
      return Bad(absl::StrCat("no ", end));
    }
    rest_.remove_prefix(found + end.size());
    return absl::OkStatus();
  }

  // Skips declarations, comments and white space.
  absl::Status SkipMisc() {
    while (true) {
      SkipSpace();
      if (absl::StartsWith(rest_, "<?")) {
        QUIRE_RETURN_IF_ERROR(SkipPast("?>"));
      } else if (absl::StartsWith(rest_, "<!--")) {
        QUIRE_RETURN_IF_ERROR(SkipPast("-->"));
      } else {
        return absl::OkStatus();
      }
    }
  }

  absl::StatusOr<absl::string_view> TakeName() {
    const auto end = std::find_if_not(rest_.begin(), rest_.end(), IsNameByte);
    const absl::string_view name =
        rest_.substr(0, static_cast<size_t>(end - rest_.begin()));
    if (name.empty()) {
      return Bad("a tag without a name");
    }
    rest_.remove_prefix(name.size());
    return name;
  }

  absl::Status SkipAttributes() {
    SkipSpace();
    while (!rest_.empty() && IsNameByte(rest_.front())) {
      QUIRE_RETURN_IF_ERROR(TakeName().status());
      SkipSpace();
      if (!absl::ConsumePrefix(&rest_, "=")) {
        return Bad("an attribute without a value");
      }
      SkipSpace();
      if (rest_.empty() || (rest_.front() != '"' && rest_.front() != '\'')) {
        return Bad("an attribute without quotes");
      }
      const char quote = rest_.front();
      rest_.remove_prefix(1);
      QUIRE_RETURN_IF_ERROR(SkipPast({&quote, 1}));
      SkipSpace();
    }
    return absl::OkStatus();
  }

  // Takes text up to the next tag.
  absl::Status TakeText(std::string& text) {
    while (!rest_.empty() && rest_.front() != '<') {
      if (rest_.front() != '&') {
        const size_t size = std::min(rest_.find_first_of("<&"), rest_.size());
        absl::StrAppend(&text, rest_.substr(0, size));
        rest_.remove_prefix(size);
        continue;
      }
      const size_t end = rest_.substr(0, 12).find(';');
      if (end == absl::string_view::npos) {
        return Bad("an entity without an end");
      }
      QUIRE_RETURN_IF_ERROR(AppendEntity(rest_.substr(1, end - 1), text));
      rest_.remove_prefix(end + 1);
    }
    return absl::OkStatus();
  }

  static absl::Status AppendEntity(absl::string_view name, std::string& text) {
    for (const auto& [entity, c] : {std::pair{"lt", '<'},
                                    {"gt", '>'},
                                    {"amp", '&'},
                                    {"quot", '"'},
                                    {"apos", '\''}}) {
      if (name == entity) {
        text.push_back(c);
        return absl::OkStatus();
      }
    }
    uint32_t code = 0;
    const bool is_number =
        absl::ConsumePrefix(&name, "#x")
            ? !name.empty() &&
                  absl::ascii_isxdigit(static_cast<unsigned char>(name[0])) &&
                  absl::SimpleHexAtoi(name, &code)
            : absl::ConsumePrefix(&name, "#") && !name.empty() &&
                  absl::ascii_isdigit(static_cast<unsigned char>(name[0])) &&
                  absl::SimpleAtoi(name, &code);
    if (!is_number || code == 0 || code > 0x10FFFF ||
        (code >= 0xD800 && code < 0xE000)) {
      return Bad("an unknown entity");
    }
    AppendUtf8(code, text);
    return absl::OkStatus();
  }

  absl::Status ParseElement(int depth, XmlElement& element) {
    if (depth > kXmlDepthMax || ++element_count_ > kXmlElementCountMax) {
      return Bad("too many elements");
    }
    if (!absl::ConsumePrefix(&rest_, "<")) {
      return Bad("no element");
    }
    QUIRE_ASSIGN_OR_RETURN(const absl::string_view name, TakeName());
    element.name = std::string(name.substr(name.rfind(':') + 1));
    if (element.name.empty()) {
      return Bad("a tag without a name");
    }
    QUIRE_RETURN_IF_ERROR(SkipAttributes());
    if (absl::ConsumePrefix(&rest_, "/>")) {
      return absl::OkStatus();
    }
    if (!absl::ConsumePrefix(&rest_, ">")) {
      return Bad("a tag without an end");
    }
    while (true) {
      QUIRE_RETURN_IF_ERROR(TakeText(element.text));
      if (absl::StartsWith(rest_, "<!--")) {
        QUIRE_RETURN_IF_ERROR(SkipPast("-->"));
      } else if (absl::ConsumePrefix(&rest_, "</")) {
        break;
      } else {
        QUIRE_RETURN_IF_ERROR(
            ParseElement(depth + 1, element.children.emplace_back()));
      }
    }
    if (!absl::ConsumePrefix(&rest_, name)) {
      return Bad("tags that do not match");
    }
    SkipSpace();
    if (!absl::ConsumePrefix(&rest_, ">")) {
      return Bad("a tag without an end");
    }
    if (!element.children.empty()) {
      element.text.clear();
    }
    return absl::OkStatus();
  }

  absl::string_view rest_;
  size_t element_count_ = 0;
};

}  // namespace

const XmlElement* XmlElement::Find(absl::string_view child) const {
  const auto found =
      std::find_if(children.begin(), children.end(),
                   [&](const XmlElement& each) { return each.name == child; });
  return found == children.end() ? nullptr : &*found;
}

std::string XmlElement::TextOf(absl::string_view child) const {
  const XmlElement* const found = Find(child);
  return found == nullptr ? "" : found->text;
}

absl::StatusOr<XmlElement> ParseXmlAnswer(absl::string_view text) {
  if (text.size() > kXmlSizeBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("an answer in XML has ", text.size(),
                     " bytes, expected at most ", kXmlSizeBytesMax));
  }
  return Parser(text).Parse();
}

std::string EscapeXml(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"},
                                    {"<", "&lt;"},
                                    {">", "&gt;"},
                                    {"\"", "&quot;"},
                                    {"'", "&apos;"}});
}

}  // namespace quire

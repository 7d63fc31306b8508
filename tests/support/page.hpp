// Sections of a report page's data.
#pragma once

#include <algorithm>
#include <string>

namespace stepcast::test {

/// The first section of a kind; null if the page has none. Json: that of the page.
template <typename Json>
const Json* section_of(const Json& page, const std::string& kind) {
  const auto found = std::find_if(page["sections"].begin(), page["sections"].end(), [&](const Json& section) { return section["kind"] == kind; });
  return found == page["sections"].end() ? nullptr : &*found;
}

}  // namespace stepcast::test

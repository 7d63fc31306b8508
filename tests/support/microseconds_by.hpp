// Microseconds by name, shown in full where a comparison fails.
#pragma once

#include <cstdint>
#include <map>
#include <ostream>
#include <string>

namespace stepcast::test {

struct MicrosecondsBy : std::map<std::string, std::int64_t> {
  using std::map<std::string, std::int64_t>::map;
  friend std::ostream& operator<<(std::ostream& out, const MicrosecondsBy& times) {
    for (const auto& [name, time] : times) out << name << ' ' << time << ", ";
    return out;
  }
};

}  // namespace stepcast::test

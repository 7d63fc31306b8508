// What shells and man(1) make of `stepcast completion` and `stepcast manual`. docs/commands.md.
#include <doctest/doctest.h>

#include <string>

#include "support/place.hpp"

using stepcast::test::has, stepcast::test::Outcome, stepcast::test::Place;

namespace {

/// Saves the completion of a shell; false, with a message, where this machine has no such shell.
bool prepare(const Place& place, const std::string& shell) {
  const Outcome script = place.run("completion " + shell);
  REQUIRE(script.code == 0);
  place.file("completion", script.out);
  const bool there = place.shell("command -v " + shell).code == 0;
  if (!there) MESSAGE("skipped: there is no ", shell, " on this machine");
  return there;
}

/// What bash offers for the last of the words.
std::string offered(const Place& place, const std::string& words, int last) {
  place.file("ask", "source ./completion; COMP_WORDS=(" + words + "); COMP_CWORD=" + std::to_string(last) + "; _stepcast; echo \"${COMPREPLY[*]}\"");
  return place.shell("bash ask").out;
}

}  // namespace

TEST_CASE("bash completes commands, options, choices and built-in scenarios") {
  const Place place;
  if (!prepare(place, "bash")) return;
  CHECK(offered(place, "stepcast dia", 1) == "diagnose\n");
  CHECK(offered(place, "stepcast run --expl", 2) == "--explain\n");
  CHECK(offered(place, "stepcast run 7b", 2) == "7b-32xa100\n");
  CHECK(has(offered(place, "stepcast train x --device ''", 4), "host"));
  CHECK(offered(place, "stepcast completion f", 2) == "fish\n");
  CHECK(offered(place, "stepcast run --out ''", 3) == "\n");  // a folder: bash offers files
  CHECK(offered(place, "stepcast no-such --x", 2) == "\n");
}

TEST_CASE("zsh and fish read their scripts") {
  for (const char* shell : {"zsh", "fish"}) {
    const Place place;
    if (!prepare(place, shell)) continue;
    const Outcome read = place.shell(std::string(shell) + " -n completion");
    CHECK(read.code == 0);
    CHECK(read.err.empty());
  }
}

TEST_CASE("the manual page has every command, and man has nothing to warn of") {
  const Place place;
  const Outcome page = place.run("manual");
  REQUIRE(page.code == 0);
  for (const char* command : {"run", "compare", "sweep", "tune", "diagnose", "train", "calibrate"}) CHECK(has(page.out, std::string(".SS ") + command));
  place.file("stepcast.1", page.out);
  if (place.shell("command -v man").code != 0) {
    MESSAGE("skipped: there is no man on this machine");
    return;
  }
  const Outcome shown = place.shell("LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -l stepcast.1");
  CHECK(shown.code == 0);
  CHECK(shown.err.empty());
  CHECK(has(shown.out, "STEPCAST(1)"));
}

TEST_CASE("another shell is refused in one line") {
  const Place place;
  const Outcome r = place.run("completion tcsh");
  CHECK(r.code == 2);
  CHECK(stepcast::test::one_line(r.err));
}

// Entry point of every test executable. A run that executes no test case fails: a filter or number that matches nothing must not pass.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>

namespace {

class FailIfNothingRan : public doctest::IReporter {
 public:
  explicit FailIfNothingRan(const doctest::ContextOptions&) {}
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override { started_ = 0; }
  void test_run_end(const doctest::TestRunStats&) override {
    if (started_ > 0) return;
    std::fputs("no test case ran\n", stderr);
    std::exit(EXIT_FAILURE);
  }
  void test_case_start(const doctest::TestCaseData&) override { ++started_; }
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}

 private:
  int started_ = 0;
};

DOCTEST_REGISTER_LISTENER("fail_if_nothing_ran", 1, FailIfNothingRan);

}  // namespace

int main(int argc, char** argv) { return doctest::Context(argc, argv).run(); }

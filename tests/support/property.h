// Properties over random cases: how many are tried, from which seed, and how a failure is told.
#pragma once

#include <cstdlib>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace cenote::test {

/// The share of random cases to try; CENOTE_TEST_SCALE=0.1 is for builds that run ten times slower.
inline double test_scale() {
  const char* text = std::getenv("CENOTE_TEST_SCALE");
  return text == nullptr ? 1.0 : std::atof(text);
}

/// Tries a property `cases` times at full scale. The seed is fixed so that a run can be repeated; RC_PARAMS="seed=N"
/// chooses another, and what RapidCheck prints on failure replays the case.
template <class Testable>
void check(int cases, Testable&& property) {
  const auto* info = testing::UnitTest::GetInstance()->current_test_info();
  rc::detail::TestMetadata metadata;
  metadata.id = std::string(info->test_suite_name()) + "/" + info->name();
  metadata.description = info->name();
  rc::detail::TestParams params = rc::detail::configuration().testParams;
  const char* given = std::getenv("RC_PARAMS");
  if (given == nullptr || std::string(given).find("seed") == std::string::npos) params.seed = 20240229;
  params.maxSuccess = std::max(1, static_cast<int>(cases * test_scale()));
  const auto result = rc::detail::checkTestable(std::forward<Testable>(property), metadata, params);
  if (result.template is<rc::detail::SuccessResult>()) return;
  std::ostringstream text;
  rc::detail::printResultMessage(result, text);
  FAIL() << text.str();
}

}  // namespace cenote::test

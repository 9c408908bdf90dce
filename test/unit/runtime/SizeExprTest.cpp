#include "runtime/SizeExpr.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <limits>

using namespace accel::runtime;

namespace {

const std::vector<std::string> kSymbols = {"s0", "s1"};

int64_t evaluate(const char *json, int64_t s0 = 0, int64_t s1 = 0) {
  int64_t values[] = {s0, s1};
  return SizeExpr::parse(nlohmann::json::parse(json), kSymbols).evaluate(values);
}

TEST(SizeExprTest, Evaluates) {
  EXPECT_EQ(evaluate("7"), 7);
  EXPECT_EQ(evaluate("-3"), -3);
  EXPECT_EQ(evaluate("\"s1\"", 4, 5), 5);
  EXPECT_EQ(evaluate(R"(["+", "s0", 1, "s1"])", 4, 5), 10);
  EXPECT_EQ(evaluate(R"(["*", "s0", ["-", "s1", 2]])", 4, 5), 12);
  EXPECT_EQ(evaluate(R"(["max", "s0", "s1", 3])", 4, 5), 5);
  EXPECT_EQ(evaluate(R"(["min", "s0", "s1", 3])", 4, 5), 3);
  EXPECT_EQ(evaluate(R"(["+", 5])"), 5);
}

// As in Python: the quotient rounds down, the remainder has the divisor's sign.
TEST(SizeExprTest, DividesAsPythonDoes) {
  for (int64_t a = -7; a <= 7; ++a)
    for (int64_t b = -3; b <= 3; ++b) {
      if (b == 0)
        continue;
      int64_t quotient = evaluate(R"(["//", "s0", "s1"])", a, b);
      int64_t remainder = evaluate(R"(["%", "s0", "s1"])", a, b);
      EXPECT_EQ(quotient * b + remainder, a);
      EXPECT_TRUE(remainder == 0 || (remainder < 0) == (b < 0)) << a << " % " << b;
      EXPECT_LT(std::abs(remainder), std::abs(b));
    }
}

TEST(SizeExprTest, OverflowAndDivisionByZeroAreErrors) {
  int64_t min = std::numeric_limits<int64_t>::min();
  EXPECT_THROW(evaluate(R"(["//", 1, "s0"])", 0), std::domain_error);
  EXPECT_THROW(evaluate(R"(["%", 1, "s0"])", 0), std::domain_error);
  EXPECT_THROW(evaluate(R"(["*", "s0", "s0"])", int64_t(1) << 40), std::domain_error);
  EXPECT_THROW(evaluate(R"(["//", "s0", -1])", min), std::domain_error);
  EXPECT_EQ(evaluate(R"(["%", "s0", -1])", min), 0);
}

TEST(SizeExprTest, RefusesWhatIsNoExpression) {
  for (const char *json : {"1.5", "true", "null", "{}", "[]", "\"s9\"", "[1, 2]", R"(["^", 1, 2])", R"(["-", 1])",
                           R"(["//", 1, 2, 3])", R"(["+"])", "18446744073709551615"})
    EXPECT_THROW(evaluate(json), std::invalid_argument) << json;
}

TEST(SizeExprTest, RefusesDeepNesting) {
  std::string deep = "1";
  for (int i = 0; i < 1000; ++i)
    deep = "[\"+\", 1, " + deep + "]";
  EXPECT_THROW(evaluate(deep.c_str()), std::invalid_argument);
  std::string fine = "1";
  for (int i = 0; i < 60; ++i)
    fine = "[\"+\", 1, " + fine + "]";
  EXPECT_EQ(evaluate(fine.c_str()), 61);
}

} // namespace

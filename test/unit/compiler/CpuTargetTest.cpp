#include "codegen/cpu/CompileCpu.h"
#include "compiler/Compiler.h"

#include "llvm/ADT/StringExtras.h"
#include <gtest/gtest.h>

namespace accel {
namespace {

bool has(llvm::StringRef features, llvm::StringRef feature) {
  llvm::SmallVector<llvm::StringRef> list;
  features.split(list, ',');
  return llvm::is_contained(list, feature);
}

TEST(CpuTarget, FeaturesAreWholeAndSorted) {
  std::optional<std::string> v3 = featuresOfCpu("x86-64-v3"), v4 = featuresOfCpu("x86-64-v4");
  ASSERT_TRUE(v3 && v4);
  for (const char *feature : {"+avx", "+avx2", "+fma", "+sse4.1"})
    EXPECT_TRUE(has(*v3, feature)) << feature << " in " << *v3;
  EXPECT_FALSE(has(*v3, "+avx512f"));
  for (const char *feature : {"+avx", "+avx2", "+avx512f", "+avx512vl"})
    EXPECT_TRUE(has(*v4, feature)) << feature << " in " << *v4;
  llvm::SmallVector<llvm::StringRef> list;
  llvm::StringRef(*v4).split(list, ',');
  EXPECT_TRUE(llvm::is_sorted(list));
}

TEST(CpuTarget, Names) {
  EXPECT_FALSE(featuresOfCpu("z80"));
  llvm::Expected<TargetDescription> host = describeTarget("cpu");
  ASSERT_TRUE(bool(host));
  EXPECT_EQ(host->cpu, hostCpuName());
  EXPECT_EQ(host->features, hostCpuFeatures());
  llvm::Expected<TargetDescription> other = describeTarget("cpu:znver3");
  ASSERT_TRUE(bool(other));
  EXPECT_EQ(other->cpu, "znver3");
  for (const char *wrong : {"", "gpu", "cpu:", "cpu:pentium99"}) {
    llvm::Expected<TargetDescription> found = describeTarget(wrong);
    if (std::string(wrong) == "cpu:")
      EXPECT_TRUE(bool(found));
    else
      EXPECT_FALSE(bool(found)) << wrong;
    llvm::consumeError(found.takeError());
  }
}

} // namespace
} // namespace accel

#include "runtime/CodeModule.h"

#include "runtime/CpuFeatures.h"
#include "test/unit/runtime/TestBundle.h"

#include <gtest/gtest.h>

using namespace accel::runtime;

namespace {

TEST(CodeModuleTest, LoadsAndRuns) {
  CodeModule code(test::readKernels(), "graph");
  float in[3] = {1, 2, 3}, out[3];
  void *args[] = {in, out};
  int64_t error = 0;
  code.kernel("double_plus_one")(args, nullptr, 0, 3, nullptr, &error);
  EXPECT_EQ(out[2], 7.0f);
}

// Descriptors are closed and their numbers reused: each load must still be a library of its own.
TEST(CodeModuleTest, LoadsManyAtOnce) {
  std::string elf = test::readKernels();
  std::vector<CodeModule> modules;
  std::set<KernelFunction> kernels;
  for (int i = 0; i < 40; ++i) {
    modules.emplace_back(elf, "graph_" + std::to_string(i));
    kernels.insert(modules.back().kernel("add"));
  }
  EXPECT_EQ(kernels.size(), 40u);
}

TEST(CodeModuleTest, ErrorsSayWhat) {
  EXPECT_THROW(CodeModule("this is no ELF file", "graph"), BundleError);
  CodeModule code(test::readKernels(), "graph");
  try {
    code.kernel("no_such_kernel");
    FAIL();
  } catch (const BundleError &error) {
    EXPECT_STREQ(error.what(), "code section has no kernel `no_such_kernel`");
  }
}

TEST(CpuFeaturesTest, NamesWhatIsMissing) {
  std::vector<std::string> features = {"+no_such_feature", "-avx4096", "other"};
#if defined(__x86_64__)
  features.push_back("sse2");
  features.push_back("+64bit");
#endif
  EXPECT_EQ(missingCpuFeatures(features), (std::vector<std::string>{"no_such_feature", "other"}));
}

#if defined(__x86_64__)
TEST(CpuFeaturesTest, AgreesWithTheCompiler) {
  auto has = [](const char *name) { return missingCpuFeatures(std::vector<std::string>{name}).empty(); };
  EXPECT_EQ(has("avx"), bool(__builtin_cpu_supports("avx")));
  EXPECT_EQ(has("avx2"), bool(__builtin_cpu_supports("avx2")));
  EXPECT_EQ(has("fma"), bool(__builtin_cpu_supports("fma")));
  EXPECT_EQ(has("bmi2"), bool(__builtin_cpu_supports("bmi2")));
  EXPECT_EQ(has("avx512f"), bool(__builtin_cpu_supports("avx512f")));
  EXPECT_EQ(has("avx512bw"), bool(__builtin_cpu_supports("avx512bw")));
  EXPECT_EQ(has("avx512dq"), bool(__builtin_cpu_supports("avx512dq")));
  EXPECT_EQ(has("avx512vl"), bool(__builtin_cpu_supports("avx512vl")));
  EXPECT_EQ(has("avx512vnni"), bool(__builtin_cpu_supports("avx512vnni")));
  EXPECT_EQ(has("avx512bf16"), bool(__builtin_cpu_supports("avx512bf16")));
  EXPECT_EQ(has("avx512vbmi2"), bool(__builtin_cpu_supports("avx512vbmi2")));
  EXPECT_EQ(has("gfni"), bool(__builtin_cpu_supports("gfni")));
}
#endif

} // namespace

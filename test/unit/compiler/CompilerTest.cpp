#include "compiler/Compiler.h"

#include "llvm/Support/FileSystem.h"
#include <gtest/gtest.h>
#include <set>

namespace accel {
namespace {

std::string graph(const std::string &target, const std::string &name = "g") {
  return R"({"version": 1, "name": ")" + name + R"(", "symbols": [], "nodes": [
    {"op": "input", "name": "x", "kind": "input", "out": {"dtype": "f32", "sizes": [8, 128], "strides": [128, 1]}},
    {"op": "call", "name": "y", "target": ")" +
         target + R"(", "args": [{"ref": "x"}, -1, false],
     "out": {"dtype": "f32", "sizes": [8, 128], "strides": [128, 1]}, "loc": {"file": "model.py", "line": 3}},
    {"op": "output", "name": "output", "args": [{"ref": "y"}]}]})";
}

std::string compile(const std::string &text) {
  llvm::Expected<CompileResult> result = compileGraph(text, {});
  if (!result) {
    ADD_FAILURE() << llvm::toString(result.takeError());
    return "";
  }
  return result->output;
}

TEST(Compiler, BundlesDependOnTheDocumentAlone) {
  std::string first = compile(graph("aten._softmax.default"));
  compile(graph("aten._log_softmax.default", "another"));
  EXPECT_EQ(first, compile(graph("aten._softmax.default")));
  EXPECT_NE(first, compile(graph("aten._log_softmax.default")));
}

TEST(Compiler, ReportsProgressThroughThePhases) {
  std::vector<std::string> names;
  double last = -1;
  llvm::Expected<CompileResult> result =
      compileGraph(graph("aten._softmax.default"), {}, [&](llvm::StringRef name, double fraction) {
        names.push_back(name.str());
        EXPECT_GT(fraction, last);
        EXPECT_LT(fraction, 1);
        last = fraction;
      });
  ASSERT_TRUE(bool(result)) << llvm::toString(result.takeError());
  ASSERT_EQ(names.size(), phases().size());
  for (auto [name, info] : llvm::zip(names, phases()))
    EXPECT_EQ(name, info.name.str());
}

TEST(Compiler, WrongDocumentsAreTheUsersErrors) {
  llvm::Expected<CompileResult> result = compileGraph("{}", {});
  ASSERT_FALSE(bool(result));
  llvm::Error error = result.takeError();
  EXPECT_TRUE(error.isA<GraphError>());
  EXPECT_EQ(llvm::toString(std::move(error)), "FX JSON: there is no field `version`");
}

TEST(Compiler, ForbiddenFallbacksAreAnErrorOfTheirOwn) {
  CompileOptions options;
  options.fallback = false;
  llvm::Expected<CompileResult> result = compileGraph(graph("aten.nothing.default"), options);
  ASSERT_FALSE(bool(result));
  llvm::Error error = result.takeError();
  EXPECT_TRUE(error.isA<UnsupportedOpError>());
  EXPECT_EQ(llvm::toString(std::move(error)),
            "unsupported op: node `y`: aten.nothing.default: no lowering (model.py:3)");
}

TEST(Compiler, BrokenInvariantsNameThePhaseAndTheCommand) {
  llvm::SmallString<64> folder;
  ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("accel-compiler-test", folder));
  CompileOptions options;
  options.compileFrom = Phase::Graph;
  options.compileTo = Phase::Fusion;
  options.dumpDir = folder.str().str();
  llvm::Expected<CompileResult> result = compileGraph(
      R"(func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
           %s = linalg.softmax dimension(0) ins(%a : tensor<4xf32>) outs(%a : tensor<4xf32>) -> tensor<4xf32>
           %r = linalg.exp ins(%s : tensor<4xf32>) outs(%s : tensor<4xf32>) -> tensor<4xf32>
           return %r : tensor<4xf32>
         })",
      options);
  ASSERT_FALSE(bool(result));
  llvm::Error error = result.takeError();
  EXPECT_TRUE(error.isA<InternalError>());
  std::string message = llvm::toString(std::move(error));
  EXPECT_TRUE(llvm::StringRef(message).contains("phase fusion failed on graph main: 'linalg.exp' is left outside"))
      << message;
  EXPECT_TRUE(llvm::StringRef(message).contains("accel-compile --target=cpu --compile-from=graph --compile-to=fusion "))
      << message;
  (void)llvm::sys::fs::remove_directories(folder);
}

TEST(Phases, NamesRoundTrip) {
  std::set<std::string> names;
  for (const PhaseInfo &info : phases()) {
    EXPECT_EQ(parsePhase(info.name), info.phase);
    EXPECT_EQ(phaseName(info.phase), info.name);
    EXPECT_TRUE(names.insert(info.name.str()).second);
  }
  EXPECT_FALSE(parsePhase("capture"));
}

} // namespace
} // namespace accel

// Builds bundles from plans written by hand.

#ifndef ACCEL_TEST_UNIT_RUNTIME_TESTBUNDLE_H
#define ACCEL_TEST_UNIT_RUNTIME_TESTBUNDLE_H

#include "runtime/Bundle.h"
#include "runtime/Executable.h"

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace accel::runtime::test {

/// The shared object that Kernels.c becomes.
inline std::string readKernels() {
  std::ifstream file(RUNTIME_TEST_KERNELS, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Completes a plan with version, name and target, and packs it with the test kernels.
inline std::string packPlan(const std::string &members) {
  nlohmann::json plan = nlohmann::json::parse("{" + members + "}", nullptr, true, true);
  plan["version"] = 1;
  plan["name"] = "test";
  plan["target"] = {{"name", "cpu"}};
  std::string text = plan.dump(), kernels = readKernels(), report = "{\"kernels\": []}";
  return writeBundle(std::vector<BundleSection>{{"plan", text}, {"code", kernels}, {"report", report}});
}

/// Fields of the plan, for f32 tensors.
inline std::string f32(const std::string &sizes, const std::string &strides) {
  return R"("dtype": "f32", "sizes": )" + sizes + R"(, "strides": )" + strides;
}

inline std::string input(const std::string &sizes, const std::string &strides) {
  return R"({"kind": "tensor", )" + f32(sizes, strides) + "}";
}

inline std::string mutatedInput(const std::string &sizes, const std::string &strides) {
  return R"({"kind": "tensor", "mutated": true, )" + f32(sizes, strides) + "}";
}

inline std::string arena(const std::string &sizes, const std::string &strides) {
  return R"({"alloc": "arena", )" + f32(sizes, strides) + "}";
}

inline std::string output(const std::string &sizes, const std::string &strides) {
  return R"({"alloc": "output", )" + f32(sizes, strides) + "}";
}

inline std::string result(const std::string &sizes, const std::string &strides) {
  return R"({"result": true, )" + f32(sizes, strides) + "}";
}

inline std::string view(int base, const std::string &offset, const std::string &sizes, const std::string &strides) {
  return R"({"view": )" + std::to_string(base) + R"(, "offset": )" + offset + ", " + f32(sizes, strides) + "}";
}

inline std::string aten(const std::string &name, const std::string &overload, const std::string &args,
                        const std::string &kwargs, const std::string &results) {
  return R"({"op": "aten", "node": "n", "source": "model.py:1", "name": ")" + name + R"(", "overload": ")" + overload +
         R"(", "args": )" + args + R"(, "kwargs": )" + kwargs + R"(, "results": )" + results + "}";
}

inline std::vector<at::Tensor> runTensors(Executable &executable, std::vector<c10::IValue> inputs) {
  std::vector<at::Tensor> tensors;
  for (c10::IValue &output : executable.run(std::move(inputs)))
    tensors.push_back(std::move(output).toTensor());
  return tensors;
}

} // namespace accel::runtime::test

#endif // ACCEL_TEST_UNIT_RUNTIME_TESTBUNDLE_H

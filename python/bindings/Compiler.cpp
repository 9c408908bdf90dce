// The extension module `_compiler`: FX JSON in, bundle out. Importing it loads LLVM, so that only a process that
// compiles does.
#include "compiler/Compiler.h"

#include <array>
#include <nlohmann/json.hpp>
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <variant>

namespace py = pybind11;

namespace {

/// What an llvm::Error is in Python, decided here only.
enum class Kind { Graph, Unsupported, Internal };

struct Failure {
  Kind kind = Kind::Internal;
  std::string message;
};

Failure failureOf(llvm::Error error) {
  Failure failure;
  llvm::handleAllErrors(
      std::move(error), [&](const accel::GraphError &e) { failure = {Kind::Graph, e.message}; },
      [&](const accel::UnsupportedOpError &e) { failure = {Kind::Unsupported, e.message}; },
      [&](const accel::InternalError &e) { failure = {Kind::Internal, e.message}; },
      [&](const llvm::ErrorInfoBase &e) { failure = {Kind::Internal, e.message()}; });
  return failure;
}

accel::Phase readPhase(const std::string &name) {
  if (std::optional<accel::Phase> phase = accel::parsePhase(name))
    return *phase;
  throw py::value_error("there is no phase \"" + name + "\"");
}

accel::CompileOptions readOptions(const std::string &text) {
  nlohmann::json json = nlohmann::json::parse(text);
  accel::CompileOptions options;
  for (auto &[key, value] : json.items()) {
    if (key == "target")
      options.target = value.get<std::string>();
    else if (key == "dump_dir")
      options.dumpDir = value.get<std::string>();
    else if (key == "fallback")
      options.fallback = value.get<std::string>() == "allow";
    else if (key == "contractions")
      options.graph.contractions = value.get<std::string>();
    else if (key == "constant_weights")
      options.graph.constantWeights = value.get<bool>();
    else if (key == "compile_from")
      options.compileFrom = readPhase(value.get<std::string>());
    else if (key == "tile_configs")
      for (auto &[kernel, config] : value.items())
        options.tileConfigs.emplace_back(kernel, config.get<std::string>());
    else
      throw py::value_error("unknown compiler option: " + key);
  }
  return options;
}

/// What `work` returns; while it runs, Python does too. Its error becomes the exception of its kind.
template <typename Work> auto withoutGil(Work work, const std::array<py::handle, 3> &exceptions) {
  auto result = [&] {
    py::gil_scoped_release release;
    auto expected = work();
    using Value = std::remove_reference_t<decltype(*expected)>;
    return expected ? std::variant<Value, Failure>(std::move(*expected))
                    : std::variant<Value, Failure>(failureOf(expected.takeError()));
  }();
  if (auto *failure = std::get_if<Failure>(&result)) {
    PyErr_SetString(exceptions[static_cast<size_t>(failure->kind)].ptr(), failure->message.c_str());
    throw py::error_already_set();
  }
  return std::get<0>(std::move(result));
}

} // namespace

PYBIND11_MODULE(_compiler, module) {
  module.doc() = "The graph compiler: FX JSON to a bundle.";
  static py::exception<void> graphError(module, "GraphError", PyExc_ValueError);
  static py::exception<void> unsupportedError(module, "UnsupportedError", PyExc_RuntimeError);
  static py::exception<void> compilerError(module, "CompilerError", PyExc_RuntimeError);
  std::array<py::handle, 3> exceptions = {graphError, unsupportedError, compilerError}; // in the order of Kind

  module.def(
      "compile",
      [exceptions](const std::string &fxJson, const std::string &optionsJson, const py::object &progress) {
        accel::CompileOptions options = readOptions(optionsJson);
        accel::ProgressCallback callback;
        if (!progress.is_none())
          callback = [&](llvm::StringRef phase, double done) {
            py::gil_scoped_acquire gil;
            progress(phase.str(), done);
          };
        accel::CompileResult result =
            withoutGil([&] { return accel::compileGraph(fxJson, options, callback); }, exceptions);
        return py::make_tuple(py::bytes(result.output), result.report);
      },
      py::arg("fx_json"), py::arg("options_json") = "{}", py::arg("progress") = py::none(),
      "Compiles one FX JSON document. Returns the bundle and the report's JSON text. `progress` is called with each "
      "phase's name "
      "and the share of the work done before it. Raises GraphError for a wrong document or target, UnsupportedError "
      "for an op "
      "without a lowering when options forbid falling back, CompilerError for an error of the compiler's own.");
  module.def(
      "tuning_tasks",
      [exceptions](const std::string &fxJson, const std::string &optionsJson, unsigned maxCandidates) {
        accel::CompileOptions options = readOptions(optionsJson);
        return withoutGil([&] { return accel::listTuningTasks(fxJson, options, maxCandidates); }, exceptions);
      },
      py::arg("fx_json"), py::arg("options_json"), py::arg("max_candidates"),
      "What a tuner may try for a document's kernels, as JSON text (docs/tuning.md). Raises as `compile` does.");
}

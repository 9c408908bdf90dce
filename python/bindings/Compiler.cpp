// The extension module `_compiler`: FX JSON in, bundle out. Importing it loads LLVM, so that only a process that
// compiles does.
#include "compiler/Compiler.h"

#include <nlohmann/json.hpp>
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>

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
    else
      throw py::value_error("unknown compiler option: " + key);
  }
  return options;
}

} // namespace

PYBIND11_MODULE(_compiler, module) {
  module.doc() = "The graph compiler: FX JSON to a bundle.";
  static py::exception<void> graphError(module, "GraphError", PyExc_ValueError);
  static py::exception<void> unsupportedError(module, "UnsupportedError", PyExc_RuntimeError);
  static py::exception<void> compilerError(module, "CompilerError", PyExc_RuntimeError);

  module.def(
      "compile",
      [](const std::string &fxJson, const std::string &optionsJson, const py::object &progress) {
        accel::CompileOptions options = readOptions(optionsJson);
        accel::ProgressCallback callback;
        if (!progress.is_none())
          callback = [&](llvm::StringRef phase, double done) {
            py::gil_scoped_acquire gil;
            progress(phase.str(), done);
          };
        accel::CompileResult result;
        std::optional<Failure> failure;
        {
          py::gil_scoped_release release;
          llvm::Expected<accel::CompileResult> compiled = accel::compileGraph(fxJson, options, callback);
          if (compiled)
            result = std::move(*compiled);
          else
            failure = failureOf(compiled.takeError());
        }
        if (failure) {
          py::handle type = failure->kind == Kind::Graph         ? graphError
                            : failure->kind == Kind::Unsupported ? unsupportedError
                                                                 : compilerError;
          PyErr_SetString(type.ptr(), failure->message.c_str());
          throw py::error_already_set();
        }
        return py::make_tuple(py::bytes(result.output), result.report);
      },
      py::arg("fx_json"), py::arg("options_json") = "{}", py::arg("progress") = py::none(),
      "Compiles one FX JSON document. Returns the bundle and the report's JSON text. `progress` is called with each "
      "phase's name "
      "and the share of the work done before it. Raises GraphError for a wrong document or target, UnsupportedError "
      "for an op "
      "without a lowering when options forbid falling back, CompilerError for an error of the compiler's own.");
}

// The extension module `_runtime`.

#include "python/bindings/Cache.h"
#include "python/bindings/RuntimeExecutable.h"

#include "runtime/BlockPool.h"
#include "runtime/Bundle.h"
#include "runtime/CpuFeatures.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

namespace py = pybind11;
using namespace accel;

namespace {

py::dict readSections(const py::bytes &bundle) {
  py::dict sections;
  for (const runtime::BundleSection &section : runtime::readBundle(std::string_view(bundle)))
    sections[py::str(section.name)] = py::bytes(section.payload.data(), section.payload.size());
  return sections;
}

py::bytes writeSections(const py::dict &sections) {
  std::vector<runtime::BundleSection> list;
  for (const auto &[name, payload] : sections)
    list.push_back({py::cast<std::string>(name), py::cast<std::string_view>(payload)});
  return py::bytes(runtime::writeBundle(list));
}

py::dict poolStats() {
  runtime::BlockPool::Counters counters = runtime::BlockPool::process().counters();
  py::dict stats;
  stats["hits"] = counters.hits;
  stats["misses"] = counters.misses;
  stats["idle_bytes"] = counters.idleBytes;
  stats["in_use_bytes"] = counters.inUseBytes;
  return stats;
}

} // namespace

PYBIND11_MODULE(_runtime, module) {
  module.doc() = "Runs compiled graphs.";
  const auto &bundleError = py::register_exception<runtime::BundleError>(module, "BundleError", PyExc_RuntimeError);
  bundleError.doc() = "A bundle that is damaged, of another version, or made for another machine.";

  PyObject *executable = python::createExecutableType(bundleError.ptr());
  if (!executable)
    throw py::error_already_set();
  module.attr("Executable") = py::reinterpret_steal<py::object>(executable);

  module.attr("BUNDLE_VERSION") = runtime::kBundleVersion;
  module.def("read_bundle", &readSections, py::arg("bundle"),
             "The sections of a bundle, by name. Raises BundleError if it is damaged.");
  module.def("write_bundle", &writeSections, py::arg("sections"),
             "The bundle with these sections, in the order of the dictionary.");
  module.def("pool_stats", &poolStats, "Of the memory pool: hits, misses, idle_bytes, in_use_bytes.");
  module.def(
      "set_pool_bytes", [](size_t bytes) { runtime::BlockPool::process().setLimit(bytes); }, py::arg("bytes"),
      "Sets how many bytes of the memory pool may lie idle.");
  module.def(
      "missing_cpu_features",
      [](const std::vector<std::string> &features) { return runtime::missingCpuFeatures(features); },
      py::arg("features"), "Those of the features (LLVM's names) that this machine lacks.");

  python::addCache(module);
}

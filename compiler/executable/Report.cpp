#include "compiler/executable/Report.h"

#include "dialects/accel/AccelDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "passes/fusion/Contractions.h"
#include "passes/schedule/KernelLoops.h"
#include "llvm/ADT/StringSet.h"
#include <nlohmann/json.hpp>

using namespace mlir;
using nlohmann::json;

namespace accel {
namespace {

/// `elementwise`, `reduction`, `with gather` where an op of the kernel reads at computed positions; `scan`, `scatter`.
std::string classOf(KernelOp kernel) {
  if (Operation *own = kernel.ownOp())
    return own->getName().stripDialect().str();
  bool gathers =
      kernel
          ->walk([](Operation *op) {
            return op->getName().getStringRef() == "tensor.extract" ? WalkResult::interrupt() : WalkResult::advance();
          })
          .wasInterrupted();
  if (attentionOf(kernel))
    return "attention";
  std::string kind = findContraction(kernel.getBody().front()) ? "contraction"
                     : kernel.getRows()                        ? "reduction"
                                                               : "elementwise";
  return gathers ? kind + " with gather" : kind;
}

/// Why a contraction has a kernel of ours.
std::string choiceOf(KernelOp kernel) {
  Operation *op = findContraction(kernel.getBody().front());
  auto choice = op ? op->getAttrOfType<StringAttr>("accel.choice") : StringAttr();
  return choice ? choice.str() : "";
}

std::string textOf(Attribute attr) {
  std::string text;
  llvm::raw_string_ostream(text) << attr;
  return text;
}

} // namespace

std::string buildReport(ModuleOp module, const ImportStatistics &statistics,
                        const std::map<std::string, double> &seconds) {
  auto func = *module.getOps<func::FuncOp>().begin();
  json report;
  report["graph"] = module.getName().value_or("graph").str();

  json library = json::array();
  std::set<std::string> libraryNodes;
  for (auto call : func.getOps<AtenCallOp>())
    if (call.getKind() == "library") {
      auto node = dyn_cast<NameLoc>(call.getLoc());
      auto target = node ? dyn_cast<NameLoc>(node.getChildLoc()) : NameLoc();
      auto file = target ? dyn_cast<FileLineColLoc>(target.getChildLoc()) : FileLineColLoc();
      std::string name = node ? node.getName().str() : "", kernel = call.getName().str();
      libraryNodes.insert(name);
      library.push_back({{"node", name},
                         {"target", target ? target.getName().str() : kernel},
                         {"reason", call.getReason().value_or("contraction").str() + " by " + kernel},
                         {"source", file ? file.getFilename().str() + ":" + std::to_string(file.getLine()) : ""}});
    }
  json fallbacks = json::array();
  for (const ImportStatistics::Call &call : statistics.fallbacks)
    fallbacks.push_back(
        {{"node", call.node}, {"target", call.target}, {"reason", call.reason}, {"source", call.source}});
  report["nodes"] = {{"native", statistics.native - libraryNodes.size()},
                     {"library", libraryNodes.size()},
                     {"fallback", fallbacks.size()}};
  report["fallbacks"] = fallbacks;
  report["library"] = library;

  llvm::StringMap<unsigned> launches;
  llvm::StringSet<> once;
  for (auto function : module.getOps<func::FuncOp>())
    for (auto launch : function.getOps<LaunchOp>()) {
      ++launches[launch.getKernel()];
      if (function.getSymName() == kConstantsFunction)
        once.insert(launch.getKernel());
    }
  json kernels = json::array();
  for (auto kernel : module.getOps<KernelOp>()) {
    json ops = json::array(), nodes = json::array();
    std::string source;
    for (Attribute origin : kernel->getAttrOfType<ArrayAttr>("accel.origins")) {
      auto parts = cast<ArrayAttr>(origin);
      nodes.push_back(cast<StringAttr>(parts[0]).str());
      ops.push_back(cast<StringAttr>(parts[1]).str());
      if (source.empty())
        source = cast<StringAttr>(parts[2]).str();
    }
    kernels.push_back({{"symbol", kernel.getSymName().str()},
                       {"label", kernel.getSymName().rsplit('_').first.str()},
                       {"class", classOf(kernel)},
                       {"launches", launches.lookup(kernel.getSymName())},
                       {"once", once.contains(kernel.getSymName())},
                       {"choice", choiceOf(kernel)},
                       {"ops", ops},
                       {"nodes", nodes},
                       {"source", source},
                       {"config", textOf(*kernel.getTileConfig())}});
  }
  auto before = module->getAttrOfType<IntegerAttr>("accel.kernels_before");
  int64_t constantBytes = 0, constantValues = 0;
  if (auto constants = module.lookupSymbol<func::FuncOp>(kConstantsFunction))
    for (Type type : constants.getResultTypes()) {
      auto tensor = cast<RankedTensorType>(type);
      constantBytes += tensor.getNumElements() * std::max(8u, tensor.getElementTypeBitWidth()) / 8;
      ++constantValues;
    }
  report["constants"] = {{"values", constantValues}, {"bytes", constantBytes}};
  report["kernels"] = {{"before", before ? before.getInt() : 0}, {"after", kernels.size()}, {"list", kernels}};

  json refusals = json::array();
  if (auto list = func->getAttrOfType<ArrayAttr>("accel.refusals"))
    for (Attribute entry : list) {
      auto parts = cast<ArrayAttr>(entry);
      refusals.push_back({{"producer", cast<StringAttr>(parts[0]).str()},
                          {"consumer", cast<StringAttr>(parts[1]).str()},
                          {"reason", cast<StringAttr>(parts[2]).str()}});
    }
  report["refusals"] = refusals;
  if (!seconds.empty())
    report["phases"] = seconds;
  return report.dump();
}

} // namespace accel

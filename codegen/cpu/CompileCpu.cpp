#include "codegen/cpu/CompileCpu.h"

#include "codegen/cpu/LinkObject.h"
#include "codegen/cpu/LowerToLLVM.h"
#include "codegen/cpu/OwnKernelEmitter.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "passes/schedule/Registers.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/X86TargetParser.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include <atomic>
#include <thread>

using namespace mlir;

namespace accel {
namespace {

void initializeTarget() {
  static const bool once = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    return true;
  }();
  (void)once;
}

llvm::Expected<std::unique_ptr<llvm::TargetMachine>> makeMachine(TargetAttr target) {
  initializeTarget();
  llvm::Triple triple(llvm::sys::getProcessTriple());
  std::string message;
  const llvm::Target *found = llvm::TargetRegistry::lookupTarget(triple, message);
  if (!found)
    return llvm::createStringError("no code generator for " + triple.str() + ": " + message);
  llvm::TargetOptions options;
  std::unique_ptr<llvm::TargetMachine> machine(found->createTargetMachine(triple, target.getCpu(), target.getFeatures(),
                                                                          options, llvm::Reloc::PIC_, std::nullopt,
                                                                          llvm::CodeGenOptLevel::Default));
  if (!machine)
    return llvm::createStringError("no code generator for " + triple.str());
  return machine;
}

void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  // Kernels are vectors already: what is left is scalar clean-up.
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(module, modules);
}

llvm::Expected<std::string> emit(llvm::Module &module, llvm::TargetMachine &machine, llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> buffer;
  llvm::raw_svector_ostream stream(buffer);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type))
    return llvm::createStringError("the code generator can't emit this kind of file");
  passes.run(module);
  return std::string(buffer.begin(), buffer.end());
}

} // namespace

std::string hostCpuName() { return llvm::sys::getHostCPUName().str(); }

std::string hostCpuFeatures() {
  std::vector<std::string> list;
  for (const auto &feature : llvm::sys::getHostCPUFeatures())
    list.push_back((feature.second ? "+" : "-") + feature.first().str());
  llvm::sort(list);
  return llvm::join(list, ",");
}

std::optional<std::string> featuresOfCpu(StringRef cpu) {
  if (llvm::X86::parseArchX86(cpu) == llvm::X86::CK_None)
    return std::nullopt;
  llvm::SmallVector<StringRef> names;
  llvm::X86::getFeaturesForCPU(cpu, names);
  // The table leaves out what others imply: avx512f beside avx512vl, avx beside avx2.
  llvm::StringMap<bool> all;
  for (StringRef name : names) {
    all[name] = true;
    llvm::X86::updateImpliedFeatures(name, true, all);
  }
  std::vector<std::string> list;
  for (const auto &feature : all)
    if (feature.second)
      list.push_back("+" + feature.first().str());
  llvm::sort(list);
  return llvm::join(list, ",");
}

namespace {

/// A share of the kernels on its way through LLVM.
struct Part {
  OwningOpRef<ModuleOp> lowered;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module;
  std::string ir, assembly, object, error;
};

/// Kernels in a part: few enough that a usual model's parts keep some cores busy, and enough to be worth a thread. The
/// parts depend on the kernels alone, so that the same graph gives the same bundle everywhere.
constexpr size_t kKernelsInPart = 6;

/// LLVM's work on one part. Parts share nothing, so each has a thread of its own.
llvm::Error compilePart(Part &part, TargetAttr target, bool dumps) {
  auto machine = makeMachine(target);
  if (!machine)
    return machine.takeError();
  part.module->setTargetTriple((*machine)->getTargetTriple());
  part.module->setDataLayout((*machine)->createDataLayout());
  std::string bits = std::to_string(nativeVectorBits(target.getFeatures()));
  for (llvm::Function &function : *part.module) {
    // Whole registers in vectors and in calls of libmvec, also where the processor's default is narrower.
    function.addFnAttr("prefer-vector-width", bits);
    function.addFnAttr("min-legal-vector-width", bits);
    if (function.isDeclaration())
      function.setDoesNotThrow();
  }
  optimize(*part.module, **machine);
  if (dumps) {
    llvm::raw_string_ostream(part.ir) << *part.module;
    std::unique_ptr<llvm::Module> copy = llvm::CloneModule(*part.module);
    if (llvm::Error error = emit(*copy, **machine, llvm::CodeGenFileType::AssemblyFile).moveInto(part.assembly))
      return error;
  }
  return emit(*part.module, **machine, llvm::CodeGenFileType::ObjectFile).moveInto(part.object);
}

} // namespace

llvm::Expected<CpuCode> compileCpu(ModuleOp module, const CpuDump &dump) {
  CpuCode code;
  SmallVector<KernelOp> kernels(module.getOps<KernelOp>());
  if (kernels.empty())
    return code;
  TargetAttr target = *kernels[0].getTarget();
  std::vector<Part> parts(llvm::divideCeil(kernels.size(), kKernelsInPart));
  // The next kernel to the next part: large kernels of one kind stand together.
  for (auto [k, kernel] : llvm::enumerate(kernels)) {
    OwningOpRef<ModuleOp> &lowered = parts[k % parts.size()].lowered;
    if (!lowered)
      lowered = ModuleOp::create(module.getLoc());
    OpBuilder builder = OpBuilder::atBlockEnd(lowered->getBody());
    KernelLaunchInfo &info = code.launchInfo[kernel.getSymName()];
    Operation *own = kernel.ownOp();
    if (failed(isa_and_nonnull<ScanOp>(own)      ? emitScan(kernel, builder, info)
               : isa_and_nonnull<ScatterOp>(own) ? emitScatter(kernel, builder, info)
                                                 : emitKernel(kernel, builder, info)))
      return llvm::createStringError("kernel '" + kernel.getSymName().str() + "' can't be emitted");
  }
  std::string text;
  for (Part &part : parts) {
    if (dump)
      llvm::raw_string_ostream(text) << *part.lowered;
    if (failed(lowerToLLVM(*part.lowered, nativeVectorBits(target.getFeatures()), hasFma(target.getFeatures()))))
      return llvm::createStringError("the kernels' vector code can't be lowered to LLVM IR");
    part.module = translateModuleToLLVMIR(*part.lowered, part.context);
    if (!part.module)
      return llvm::createStringError("the kernels can't be translated to LLVM IR");
  }
  if (dump)
    dump("vector.mlir", text);

  initializeTarget();
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i = next++; i < parts.size(); i = next++)
      if (llvm::Error error = compilePart(parts[i], target, bool(dump)))
        parts[i].error = llvm::toString(std::move(error));
  };
  std::vector<std::thread> threads(std::min<size_t>(parts.size(), std::max(1u, std::thread::hardware_concurrency())) -
                                   1);
  for (std::thread &thread : threads)
    thread = std::thread(work);
  work();
  for (std::thread &thread : threads)
    thread.join();

  std::vector<std::string> objects;
  std::string ir, assembly;
  for (Part &part : parts) {
    if (!part.error.empty())
      return llvm::createStringError(part.error);
    objects.push_back(std::move(part.object));
    ir += part.ir, assembly += part.assembly;
  }
  if (dump)
    dump("ll", ir), dump("s", assembly);
  llvm::Expected<std::string> linked = linkSharedObject(objects);
  if (!linked)
    return linked.takeError();
  code.object = std::move(*linked);
  return code;
}

} // namespace accel

#include "codegen/cpu/CompileCpu.h"

#include "codegen/cpu/LinkObject.h"
#include "codegen/cpu/LowerToLLVM.h"
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

llvm::Expected<CpuCode> compileCpu(ModuleOp module, const CpuDump &dump) {
  CpuCode code;
  OwningOpRef<ModuleOp> lowered = ModuleOp::create(module.getLoc());
  OpBuilder builder = OpBuilder::atBlockEnd(lowered->getBody());
  TargetAttr target;
  for (KernelOp kernel : module.getOps<KernelOp>()) {
    target = *kernel.getTarget();
    builder.setInsertionPointToEnd(lowered->getBody());
    if (failed(emitKernel(kernel, builder, code.launchInfo[kernel.getSymName()])))
      return llvm::createStringError("kernel '" + kernel.getSymName().str() + "' can't be emitted");
  }
  if (!target)
    return code;
  auto print = [&](StringRef kind, auto &&write) {
    if (!dump)
      return;
    std::string text;
    llvm::raw_string_ostream stream(text);
    write(stream);
    dump(kind, text);
  };
  print("vector.mlir", [&](llvm::raw_ostream &os) { lowered->print(os); });
  if (failed(lowerToLLVM(*lowered, nativeVectorBits(target.getFeatures()))))
    return llvm::createStringError("the kernels' vector code can't be lowered to LLVM IR");

  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> llvmModule = translateModuleToLLVMIR(*lowered, llvmContext);
  if (!llvmModule)
    return llvm::createStringError("the kernels can't be translated to LLVM IR");
  auto machine = makeMachine(target);
  if (!machine)
    return machine.takeError();
  llvmModule->setTargetTriple((*machine)->getTargetTriple());
  llvmModule->setDataLayout((*machine)->createDataLayout());
  std::string bits = std::to_string(nativeVectorBits(target.getFeatures()));
  for (llvm::Function &function : *llvmModule) {
    // Whole registers in vectors and in calls of libmvec, also where the processor's default is narrower.
    function.addFnAttr("prefer-vector-width", bits);
    function.addFnAttr("min-legal-vector-width", bits);
    if (function.isDeclaration())
      function.setDoesNotThrow();
  }
  optimize(*llvmModule, **machine);
  print("ll", [&](llvm::raw_ostream &os) { llvmModule->print(os, nullptr); });
  if (dump) {
    std::unique_ptr<llvm::Module> copy = llvm::CloneModule(*llvmModule);
    llvm::Expected<std::string> assembly = emit(*copy, **machine, llvm::CodeGenFileType::AssemblyFile);
    if (!assembly)
      return assembly.takeError();
    dump("s", *assembly);
  }
  llvm::Expected<std::string> object = emit(*llvmModule, **machine, llvm::CodeGenFileType::ObjectFile);
  if (!object)
    return object.takeError();
  llvm::Expected<std::string> linked = linkSharedObject(*object);
  if (!linked)
    return linked.takeError();
  code.object = std::move(*linked);
  return code;
}

} // namespace accel

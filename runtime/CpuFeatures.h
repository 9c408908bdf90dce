// What this machine's processor can do, by LLVM's names.

#ifndef ACCEL_RUNTIME_CPUFEATURES_H
#define ACCEL_RUNTIME_CPUFEATURES_H

#include <span>
#include <string>
#include <vector>

namespace accel::runtime {

/// Returns those of `features` (LLVM's names: "avx2", "+fma"; "-avx512f" asks for nothing) that the
/// processor or the operating system doesn't offer, in the order given. Features that only system
/// code uses, which no kernel of ours can contain ("xsave", "fsgsbase"), are not asked for; a name
/// that is unknown counts as missing.
std::vector<std::string> missingCpuFeatures(std::span<const std::string> features);

} // namespace accel::runtime

#endif // ACCEL_RUNTIME_CPUFEATURES_H

#include "runtime/CpuFeatures.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace accel::runtime {
namespace {

#if defined(__x86_64__)

enum class Register { Eax, Ebx, Ecx, Edx };

/// The register state that the operating system must save for a feature to be usable, as bits of
/// XCR0 (Intel SDM, volume 1, 13.3).
enum State : uint64_t { None = 0, Avx = 0x6, Avx512 = 0xe6, Amx = 0x60000 };

struct Feature {
  std::string_view name;
  uint32_t leaf, subleaf;
  Register reg;
  int bit;
  State state;
};

/// Source: Intel SDM, volume 2A, CPUID; AMD APM, volume 3, appendix E.
constexpr Feature kFeatures[] = {
    {"cx8", 1, 0, Register::Edx, 8, None},
    {"cmov", 1, 0, Register::Edx, 15, None},
    {"mmx", 1, 0, Register::Edx, 23, None},
    {"sse", 1, 0, Register::Edx, 25, None},
    {"sse2", 1, 0, Register::Edx, 26, None},
    {"sse3", 1, 0, Register::Ecx, 0, None},
    {"pclmul", 1, 0, Register::Ecx, 1, None},
    {"ssse3", 1, 0, Register::Ecx, 9, None},
    {"fma", 1, 0, Register::Ecx, 12, Avx},
    {"cx16", 1, 0, Register::Ecx, 13, None},
    {"sse4.1", 1, 0, Register::Ecx, 19, None},
    {"sse4.2", 1, 0, Register::Ecx, 20, None},
    {"crc32", 1, 0, Register::Ecx, 20, None},
    {"movbe", 1, 0, Register::Ecx, 22, None},
    {"popcnt", 1, 0, Register::Ecx, 23, None},
    {"aes", 1, 0, Register::Ecx, 25, None},
    {"avx", 1, 0, Register::Ecx, 28, Avx},
    {"f16c", 1, 0, Register::Ecx, 29, Avx},
    {"bmi", 7, 0, Register::Ebx, 3, None},
    {"avx2", 7, 0, Register::Ebx, 5, Avx},
    {"bmi2", 7, 0, Register::Ebx, 8, None},
    {"avx512f", 7, 0, Register::Ebx, 16, Avx512},
    {"evex512", 7, 0, Register::Ebx, 16, Avx512},
    {"avx512dq", 7, 0, Register::Ebx, 17, Avx512},
    {"adx", 7, 0, Register::Ebx, 19, None},
    {"avx512ifma", 7, 0, Register::Ebx, 21, Avx512},
    {"avx512cd", 7, 0, Register::Ebx, 28, Avx512},
    {"sha", 7, 0, Register::Ebx, 29, None},
    {"avx512bw", 7, 0, Register::Ebx, 30, Avx512},
    {"avx512vl", 7, 0, Register::Ebx, 31, Avx512},
    {"avx512vbmi", 7, 0, Register::Ecx, 1, Avx512},
    {"avx512vbmi2", 7, 0, Register::Ecx, 6, Avx512},
    {"gfni", 7, 0, Register::Ecx, 8, None},
    {"vaes", 7, 0, Register::Ecx, 9, Avx},
    {"vpclmulqdq", 7, 0, Register::Ecx, 10, Avx},
    {"avx512vnni", 7, 0, Register::Ecx, 11, Avx512},
    {"avx512bitalg", 7, 0, Register::Ecx, 12, Avx512},
    {"avx512vpopcntdq", 7, 0, Register::Ecx, 14, Avx512},
    {"avx512vp2intersect", 7, 0, Register::Edx, 8, Avx512},
    {"amx-bf16", 7, 0, Register::Edx, 22, Amx},
    {"avx512fp16", 7, 0, Register::Edx, 23, Avx512},
    {"amx-tile", 7, 0, Register::Edx, 24, Amx},
    {"amx-int8", 7, 0, Register::Edx, 25, Amx},
    {"sha512", 7, 1, Register::Eax, 0, Avx},
    {"sm3", 7, 1, Register::Eax, 1, Avx},
    {"sm4", 7, 1, Register::Eax, 2, Avx},
    {"raoint", 7, 1, Register::Eax, 3, None},
    {"avxvnni", 7, 1, Register::Eax, 4, Avx},
    {"avx512bf16", 7, 1, Register::Eax, 5, Avx512},
    {"cmpccxadd", 7, 1, Register::Eax, 7, None},
    {"amx-fp16", 7, 1, Register::Eax, 21, Amx},
    {"avxifma", 7, 1, Register::Eax, 23, Avx},
    {"avxvnniint8", 7, 1, Register::Edx, 4, Avx},
    {"avxneconvert", 7, 1, Register::Edx, 5, Avx},
    {"amx-complex", 7, 1, Register::Edx, 8, Amx},
    {"avxvnniint16", 7, 1, Register::Edx, 10, Avx},
    {"lzcnt", 0x80000001, 0, Register::Ecx, 5, None},
    {"sse4a", 0x80000001, 0, Register::Ecx, 6, None},
    {"xop", 0x80000001, 0, Register::Ecx, 11, Avx},
    {"fma4", 0x80000001, 0, Register::Ecx, 16, Avx},
    {"tbm", 0x80000001, 0, Register::Ecx, 21, None},
};

/// Reached through intrinsics of system code only, or by every 64-bit program.
constexpr std::string_view kNeverEmitted[] = {
    "64bit",   "cldemote", "clflushopt", "clwb",      "clzero",  "enqcmd",     "fsgsbase", "fxsr",     "hreset",
    "invpcid", "kl",       "lwp",        "movdir64b", "movdiri", "mwaitx",     "pconfig",  "pku",      "prefetchi",
    "prfchw",  "ptwrite",  "rdpid",      "rdpru",     "rdrnd",   "rdseed",     "rtm",      "sahf",     "serialize",
    "sgx",     "shstk",    "tsxldtrk",   "uintr",     "usermsr", "vzeroupper", "waitpkg",  "wbnoinvd", "widekl",
    "x87",     "xsave",    "xsavec",     "xsaveopt",  "xsaves"};

uint64_t enabledState() {
  unsigned eax, ebx, ecx, edx;
  constexpr unsigned kOsxsave = 1u << 27;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & kOsxsave))
    return 0;
  unsigned low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t(high) << 32) | low;
}

bool hasFeature(std::string_view name) {
  auto found = std::find_if(std::begin(kFeatures), std::end(kFeatures),
                            [&](const Feature &feature) { return feature.name == name; });
  if (found == std::end(kFeatures))
    return std::find(std::begin(kNeverEmitted), std::end(kNeverEmitted), name) != std::end(kNeverEmitted);
  std::array<unsigned, 4> regs{};
  if (!__get_cpuid_count(found->leaf, found->subleaf, &regs[0], &regs[1], &regs[2], &regs[3]))
    return false;
  bool isThere = (regs[static_cast<int>(found->reg)] >> found->bit) & 1;
  static const uint64_t state = enabledState();
  return isThere && (state & found->state) == found->state;
}

#else

/// The names in the "Features" line of /proc/cpuinfo where they differ from LLVM's.
constexpr std::pair<std::string_view, std::string_view> kNames[] = {
    {"neon", "asimd"},       {"fp-armv8", "fp"},  {"fullfp16", "asimdhp"}, {"dotprod", "asimddp"},
    {"crc", "crc32"},        {"lse", "atomics"},  {"rdm", "asimdrdm"},     {"rcpc", "lrcpc"},
    {"fp16fml", "asimdfhm"}, {"jsconv", "jscvt"}, {"complxnum", "fcma"},   {"sve2-bitperm", "svebitperm"}};

std::set<std::string> readFlags() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("Features", 0) != 0 && line.rfind("flags", 0) != 0)
      continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    return {std::istream_iterator<std::string>(words), {}};
  }
  return {};
}

bool hasFeature(std::string_view name) {
  static const std::set<std::string> flags = readFlags();
  for (const auto &[llvmName, kernelName] : kNames)
    if (llvmName == name)
      return flags.count(std::string(kernelName)) != 0;
  return flags.count(std::string(name)) != 0;
}

#endif

} // namespace

std::vector<std::string> missingCpuFeatures(std::span<const std::string> features) {
  std::vector<std::string> missing;
  for (const std::string &feature : features) {
    if (feature.starts_with('-'))
      continue;
    std::string name = feature.starts_with('+') ? feature.substr(1) : feature;
    if (!hasFeature(name))
      missing.push_back(name);
  }
  return missing;
}

} // namespace accel::runtime

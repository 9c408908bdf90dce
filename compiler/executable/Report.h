#ifndef ACCEL_COMPILER_EXECUTABLE_REPORT_H
#define ACCEL_COMPILER_EXECUTABLE_REPORT_H

#include "compiler/import/Importer.h"
#include <map>
#include <string>

namespace accel {
/// The report (docs/report.md) of a compiled module, as JSON text. `seconds` is by phase.
std::string buildReport(mlir::ModuleOp module, const ImportStatistics &statistics,
                        const std::map<std::string, double> &seconds);
} // namespace accel

#endif

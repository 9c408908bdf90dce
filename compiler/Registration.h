#ifndef ACCEL_COMPILER_REGISTRATION_H
#define ACCEL_COMPILER_REGISTRATION_H

namespace mlir {
class DialectRegistry;
}

namespace accel {
/// The dialects that appear between FX JSON and machine code, with what their passes need.
void registerDialects(mlir::DialectRegistry &registry);
} // namespace accel

#endif

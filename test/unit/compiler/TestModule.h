/// A context with all of the compiler's dialects, for tests that write their IR as text.
#ifndef ACCEL_TEST_UNIT_COMPILER_TESTMODULE_H
#define ACCEL_TEST_UNIT_COMPILER_TESTMODULE_H

#include "compiler/Registration.h"
#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>

namespace accel {

class TestModule : public testing::Test {
protected:
  TestModule() : context(registry(), mlir::MLIRContext::Threading::DISABLED) { context.loadAllAvailableDialects(); }

  mlir::OwningOpRef<mlir::ModuleOp> parse(llvm::StringRef text) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text.str();
    return module;
  }

  mlir::AffineExpr constant(int64_t value) { return mlir::getAffineConstantExpr(value, &context); }
  mlir::AffineExpr symbol(unsigned number) { return mlir::getAffineSymbolExpr(number, &context); }
  llvm::SmallVector<mlir::AffineExpr> constants(llvm::ArrayRef<int64_t> values) {
    llvm::SmallVector<mlir::AffineExpr> result;
    for (int64_t value : values)
      result.push_back(constant(value));
    return result;
  }

  mlir::MLIRContext context;

private:
  static mlir::DialectRegistry registry() {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    return registry;
  }
};

inline std::string text(mlir::AffineExpr expr) {
  std::string result;
  llvm::raw_string_ostream(result) << expr;
  return result;
}

inline std::string text(llvm::ArrayRef<mlir::AffineExpr> exprs) {
  std::string result;
  for (mlir::AffineExpr expr : exprs)
    result += (result.empty() ? "" : ", ") + text(expr);
  return result;
}

} // namespace accel

#endif

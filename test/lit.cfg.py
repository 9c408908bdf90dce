"""lit tests: FX JSON or MLIR in, the decision in the output checked by FileCheck."""

import os

import lit.formats

config.name = "accel"
config.test_format = lit.formats.ShTest()
config.suffixes = [".json", ".mlir"]
config.excludes = ["python", "unit", "Inputs"]
config.test_source_root = os.path.join(config.accel_source, "test")
config.test_exec_root = os.path.join(config.accel_build, "test")
path = [os.path.join(config.accel_build, "bin"), config.llvm_tools, config.environment.get("PATH", "")]
config.environment["PATH"] = os.pathsep.join(path)

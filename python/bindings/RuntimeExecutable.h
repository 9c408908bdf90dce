// The Python type `Executable`.

#ifndef ACCEL_PYTHON_BINDINGS_RUNTIMEEXECUTABLE_H
#define ACCEL_PYTHON_BINDINGS_RUNTIMEEXECUTABLE_H

#include <torch/csrc/python_headers.h>

namespace accel::python {

/// Returns a new reference to the type `Executable(bundle: bytes, boxed=False, name="")`, or null with a
/// Python error set. `bundleError` is what it raises for a bundle that can't be used; the type
/// keeps it.
///
/// Calling an instance takes one list or tuple of tensors and integers and returns a list of
/// tensors, integers and None. A boxed one clears the list it is given, so that tensors can be
/// freed as soon as the plan is done with them.
PyObject *createExecutableType(PyObject *bundleError);

} // namespace accel::python

#endif // ACCEL_PYTHON_BINDINGS_RUNTIMEEXECUTABLE_H

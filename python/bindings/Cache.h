// The persistent cache in the module `_runtime`.

#ifndef ACCEL_PYTHON_BINDINGS_CACHE_H
#define ACCEL_PYTHON_BINDINGS_CACHE_H

#include <pybind11/pybind11.h>

namespace accel::python {

/// Adds CacheKey, CacheStore, CacheLock, CacheResult and CacheError to the module.
void addCache(pybind11::module_ &module);

} // namespace accel::python

#endif // ACCEL_PYTHON_BINDINGS_CACHE_H

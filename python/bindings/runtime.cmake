# The extension module `_runtime`: the one place where the runtime meets Python. It is small, and
# loaded in every process that uses accel; the compiler is a module of its own.
find_library(ACCEL_TORCH_PYTHON torch_python PATHS "${TORCH_INSTALL_PREFIX}/lib" NO_DEFAULT_PATH
             REQUIRED)

Python_add_library(_runtime MODULE WITH_SOABI
  ${CMAKE_CURRENT_LIST_DIR}/Cache.cpp
  ${CMAKE_CURRENT_LIST_DIR}/Runtime.cpp
  ${CMAKE_CURRENT_LIST_DIR}/RuntimeExecutable.cpp
)
# pybind11 is the one in torch's include folder. All libraries of torch are in the process before
# this module is: `torch_accel` imports torch first.
target_link_libraries(_runtime PRIVATE accel_runtime accel_cache ${ACCEL_TORCH_PYTHON} torch_cpu c10)
set_target_properties(_runtime PROPERTIES
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/python/torch_accel
  CXX_VISIBILITY_PRESET hidden
)

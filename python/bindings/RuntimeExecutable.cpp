// Written against CPython's own interface: a call through pybind11 costs more than a small kernel.

#include "python/bindings/RuntimeExecutable.h"

#include "runtime/Executable.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>

#include <structmember.h>

#include <cstddef>
#include <memory>

namespace accel::python {
namespace {

using runtime::BundleError;
using runtime::Executable;
using Values = c10::SmallVector<c10::IValue, 16>;

struct PyExecutable {
  PyObject_HEAD vectorcallfunc call;
  PyObject *weakReferences;
  Executable *executable;
  bool isBoxed;
};

/// What `Executable.function` returns.
struct PyFunction {
  PyObject_HEAD vectorcallfunc call;
  PyObject *weakReferences;
  PyExecutable *owner;
  Values *constants;
};

/// Set once when the module is made and kept for the life of the process.
PyObject *bundleErrorType = nullptr;
PyTypeObject *functionType = nullptr;

PyExecutable *cast(PyObject *self) { return reinterpret_cast<PyExecutable *>(self); }

class GilRelease {
public:
  GilRelease() : state(PyEval_SaveThread()) {}
  ~GilRelease() { PyEval_RestoreThread(state); }
  GilRelease(const GilRelease &) = delete;
  GilRelease &operator=(const GilRelease &) = delete;

private:
  PyThreadState *state;
};

/// Converts a tensor, an integer, or what is one (`torch.SymInt` with a known value).
bool unpack(PyObject *object, size_t index, Values &values) {
  if (PyLong_CheckExact(object) || !THPVariable_Check(object)) {
    PyObject *integer = PyNumber_Index(object);
    if (!integer) {
      if (PyErr_ExceptionMatches(PyExc_TypeError))
        PyErr_Format(PyExc_TypeError, "input %zu must be a tensor or an integer, not %s", index,
                     Py_TYPE(object)->tp_name);
      return false;
    }
    int64_t value = PyLong_AsLongLong(integer);
    Py_DECREF(integer);
    if (value == -1 && PyErr_Occurred())
      return false;
    values.emplace_back(value);
    return true;
  }
  values.emplace_back(THPVariable_Unpack(object));
  return true;
}

PyObject *wrap(c10::IValue &value) {
  if (value.isTensor())
    return THPVariable_Wrap(std::move(value).toTensor());
  if (value.isInt())
    return PyLong_FromLongLong(value.toInt());
  return Py_NewRef(Py_None);
}

PyObject *wrapAll(Values &values) {
  PyObject *list = PyList_New(static_cast<Py_ssize_t>(values.size()));
  if (!list)
    return nullptr;
  for (size_t i = 0; i < values.size(); ++i) {
    PyObject *object = wrap(values[i]);
    if (!object) {
      Py_DECREF(list);
      return nullptr;
    }
    PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), object);
  }
  return list;
}

PyObject *runExecutable(PyExecutable *self, PyObject *arguments) {
  bool isList = PyList_Check(arguments);
  if (!isList && !PyTuple_Check(arguments))
    return PyErr_Format(PyExc_TypeError, "expected a list or a tuple of inputs, not %s", Py_TYPE(arguments)->tp_name);
  Values inputs, outputs;
  Py_ssize_t count = PySequence_Fast_GET_SIZE(arguments);
  inputs.reserve(static_cast<size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    // A SymInt runs Python code, which may change the list.
    if (i >= PySequence_Fast_GET_SIZE(arguments))
      return PyErr_Format(PyExc_RuntimeError, "the list of inputs changed during the call");
    PyObject *item = Py_NewRef(PySequence_Fast_GET_ITEM(arguments, i));
    bool ok = unpack(item, static_cast<size_t>(i), inputs);
    Py_DECREF(item);
    if (!ok)
      return nullptr;
  }
  if (isList && self->isBoxed && PyList_SetSlice(arguments, 0, PyList_GET_SIZE(arguments), nullptr) != 0)
    return nullptr;
  {
    GilRelease released;
    self->executable->run(inputs, outputs);
  }
  return wrapAll(outputs);
}

PyObject *callExecutable(PyObject *object, PyObject *const *args, size_t flags, PyObject *keywords) {
  HANDLE_TH_ERRORS
  bool isPlain = PyVectorcall_NARGS(flags) == 1 && (!keywords || PyTuple_GET_SIZE(keywords) == 0);
  if (!isPlain)
    return PyErr_Format(PyExc_TypeError, "an Executable takes one list or tuple of inputs");
  PyObject *result = nullptr;
  try {
    result = runExecutable(cast(object), args[0]);
  } catch (const BundleError &error) {
    PyErr_SetString(bundleErrorType, error.what());
  }
  return result;
  END_HANDLE_TH_ERRORS
}

PyObject *runFunction(PyFunction *self, PyObject *const *args, size_t count) {
  Values inputs, outputs;
  inputs.reserve(count + self->constants->size());
  for (size_t i = 0; i < count; ++i)
    if (!unpack(args[i], i, inputs))
      return nullptr;
  inputs.append(self->constants->begin(), self->constants->end());
  {
    GilRelease released;
    c10::AutoGradMode withoutGradients(false);
    self->owner->executable->run(inputs, outputs);
  }
  return wrapAll(outputs);
}

PyObject *callFunction(PyObject *object, PyObject *const *args, size_t flags, PyObject *keywords) {
  HANDLE_TH_ERRORS
  if (keywords && PyTuple_GET_SIZE(keywords) != 0)
    return PyErr_Format(PyExc_TypeError, "a compiled graph takes no keyword arguments");
  PyObject *result = nullptr;
  try {
    result = runFunction(reinterpret_cast<PyFunction *>(object), args, static_cast<size_t>(PyVectorcall_NARGS(flags)));
  } catch (const BundleError &error) {
    PyErr_SetString(bundleErrorType, error.what());
  }
  return result;
  END_HANDLE_TH_ERRORS
}

PyObject *makeFunction(PyObject *object, PyObject *list) {
  HANDLE_TH_ERRORS
  if (!PyList_Check(list))
    return PyErr_Format(PyExc_TypeError, "expected a list of constants, not %s", Py_TYPE(list)->tp_name);
  auto constants = std::make_unique<Values>();
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    PyObject *item = PyList_GET_ITEM(list, i);
    if (!THPVariable_Check(item))
      return PyErr_Format(PyExc_TypeError, "constant %zd must be a tensor, not %s", i, Py_TYPE(item)->tp_name);
    constants->emplace_back(THPVariable_Unpack(item));
  }
  PyObject *made = functionType->tp_alloc(functionType, 0);
  if (!made)
    return nullptr;
  auto *self = reinterpret_cast<PyFunction *>(made);
  self->call = &callFunction;
  self->owner = cast(Py_NewRef(object));
  self->constants = constants.release();
  return made;
  END_HANDLE_TH_ERRORS
}

void deleteFunction(PyObject *object) {
  auto *self = reinterpret_cast<PyFunction *>(object);
  PyTypeObject *type = Py_TYPE(object);
  if (self->weakReferences)
    PyObject_ClearWeakRefs(object);
  delete self->constants;
  Py_XDECREF(self->owner);
  type->tp_free(object);
  Py_DECREF(type);
}

PyObject *newExecutable(PyTypeObject *type, PyObject *args, PyObject *keywords) {
  HANDLE_TH_ERRORS
  static const char *names[] = {"bundle", "boxed", "name", nullptr};
  Py_buffer bytes;
  int isBoxed = 0;
  const char *name = "";
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "y*|ps:Executable", const_cast<char **>(names), &bytes, &isBoxed,
                                   &name))
    return nullptr;
  std::unique_ptr<Py_buffer, decltype(&PyBuffer_Release)> release(&bytes, &PyBuffer_Release);
  std::unique_ptr<Executable> executable;
  try {
    GilRelease released;
    executable = std::make_unique<Executable>(
        std::string_view(static_cast<const char *>(bytes.buf), static_cast<size_t>(bytes.len)), name);
  } catch (const BundleError &error) {
    PyErr_SetString(bundleErrorType, error.what());
    return nullptr;
  }
  PyObject *object = type->tp_alloc(type, 0);
  if (!object)
    return nullptr;
  PyExecutable *self = cast(object);
  self->call = &callExecutable;
  self->executable = executable.release();
  self->isBoxed = isBoxed != 0;
  return object;
  END_HANDLE_TH_ERRORS
}

void deleteExecutable(PyObject *object) {
  PyExecutable *self = cast(object);
  PyTypeObject *type = Py_TYPE(object);
  if (self->weakReferences)
    PyObject_ClearWeakRefs(object);
  delete self->executable;
  type->tp_free(object);
  Py_DECREF(type);
}

PyObject *represent(PyObject *object) {
  return PyUnicode_FromFormat("<Executable %s>", cast(object)->executable->name().c_str());
}

PyObject *toPython(const std::string &text) {
  return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
}

PyObject *getName(PyObject *object, void *) { return toPython(cast(object)->executable->name()); }

PyObject *getPlan(PyObject *object, void *) { return toPython(cast(object)->executable->planText()); }

PyObject *getReport(PyObject *object, void *) { return toPython(cast(object)->executable->report()); }

PyObject *getBoxed(PyObject *object, void *) { return PyBool_FromLong(cast(object)->isBoxed); }

PyObject *getStats(PyObject *object, PyObject *) {
  Executable::Stats stats = cast(object)->executable->stats();
  auto number = [](uint64_t value) { return static_cast<unsigned long long>(value); };
  return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K}", "calls", number(stats.calls), "launches",
                       number(stats.counters.launches), "aten_calls", number(stats.counters.atenCalls), "fallbacks",
                       number(stats.counters.fallbacks), "restrided", number(stats.counters.restrided), "instances",
                       number(stats.instances), "constant_runs", number(stats.constantRuns), "constant_bytes",
                       number(stats.constantBytes));
}

PyMethodDef methods[] = {
    {"stats", &getStats, METH_NOARGS,
     "Counts over all calls so far: calls, launches, aten_calls, fallbacks, restrided, instances."},
    {"function", &makeFunction, METH_O,
     "function(constants: list) -> a callable that takes the inputs themselves, not a list of them,\n"
     "adds the constants and runs with gradients off. It shares this executable's state."},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef properties[] = {
    {"name", &getName, nullptr, "The graph's name.", nullptr},
    {"plan", &getPlan, nullptr, "The plan, as JSON text.", nullptr},
    {"report", &getReport, nullptr, "What `explain` shows, as JSON text; empty if absent.", nullptr},
    {"boxed", &getBoxed, nullptr, "Whether a call clears the list it is given.", nullptr},
    {"_boxed_call", &getBoxed, nullptr, "AOTAutograd's name for `boxed`.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(PyExecutable, call), READONLY, nullptr},
                         {"__weaklistoffset__", T_PYSSIZET, offsetof(PyExecutable, weakReferences), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};

PyMemberDef functionMembers[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(PyFunction, call), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(PyFunction, weakReferences), READONLY, nullptr},
    {"executable", T_OBJECT, offsetof(PyFunction, owner), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

template <typename Function> void *slot(Function function) { return reinterpret_cast<void *>(function); }

} // namespace

namespace {

bool createFunctionType() {
  static PyType_Slot slots[] = {{Py_tp_dealloc, slot(&deleteFunction)},
                                {Py_tp_call, slot(&PyVectorcall_Call)},
                                {Py_tp_members, functionMembers},
                                {0, nullptr}};
  static PyType_Spec spec = {"torch_accel._runtime.Function", sizeof(PyFunction), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                             slots};
  functionType = reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&spec));
  return functionType != nullptr;
}

} // namespace

PyObject *createExecutableType(PyObject *bundleError) {
  if (!createFunctionType())
    return nullptr;
  bundleErrorType = Py_NewRef(bundleError);
  static const char *documentation =
      "Executable(bundle: bytes, boxed: bool = False, name: str = '')\n\n"
      "A compiled graph. Calling it with a list or tuple of tensors and integers runs it and\n"
      "returns a list. With `boxed` the given list is emptied, so that its tensors can be freed\n"
      "as soon as they are no longer needed. `name` takes the place of the bundle's own. Raises BundleError if the "
      "bundle can't be used here.";
  static PyType_Slot slots[] = {{Py_tp_new, slot(&newExecutable)},
                                {Py_tp_dealloc, slot(&deleteExecutable)},
                                {Py_tp_call, slot(&PyVectorcall_Call)},
                                {Py_tp_repr, slot(&represent)},
                                {Py_tp_methods, methods},
                                {Py_tp_getset, properties},
                                {Py_tp_members, members},
                                {Py_tp_doc, const_cast<char *>(documentation)},
                                {0, nullptr}};
  static PyType_Spec spec = {"torch_accel._runtime.Executable", sizeof(PyExecutable), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, slots};
  return PyType_FromSpec(&spec);
}

} // namespace accel::python

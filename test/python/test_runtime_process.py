"""Processes that only run: from a saved bundle, without LLVM, in threads, in a profiler, after a fork, on bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

import torch_accel
from fx_document import capture

pytestmark = pytest.mark.compiler

PACKAGE_FOLDER = str(Path(torch_accel.__file__).parent.parent)


def python(code: str, *arguments: object, **environment: str) -> str:
    """Runs code in a fresh process; its output. The code's process must end well."""
    run = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": PACKAGE_FOLDER} | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, f"exit status {run.returncode}\n{run.stdout}\n{run.stderr}"
    return run.stdout


def bundle_of(function, *inputs, dynamic=None) -> bytes:
    """The bundle of a function that is one graph."""
    from torch_accel import _compiler

    (captured,), _ = capture(function, *inputs, dynamic=dynamic, through_json=False)
    assert not captured.document.constants
    return _compiler.compile(captured.document.text)[0]


def block(x, weight, bias):
    return torch.softmax(functional.layer_norm(x @ weight, (24,), bias), -1) + torch.tanh(x[:, :24])


def block_inputs():
    return torch.randn(40, 32), torch.randn(32, 24), torch.rand(24)


# ---- a bundle in another process

RUN_BUNDLE = """
import sys, torch
from torch_accel import _runtime
inputs = torch.load(sys.argv[2])
run = _runtime.Executable(open(sys.argv[1], "rb").read())
torch.save(run(inputs), sys.argv[3])
maps = open("/proc/self/maps").read()
assert "_runtime" in maps, "the runtime is not where it is looked for"
print([name for name in ("libLLVM", "libMLIR", "_compiler") if name in maps], "torch_accel._compiler" in sys.modules)
"""


def test_bundle_runs_in_a_process_without_llvm(tmp_path):
    inputs = block_inputs()
    (tmp_path / "bundle").write_bytes(bundle_of(block, *inputs))
    torch.save(list(inputs), tmp_path / "inputs")
    output = python(RUN_BUNDLE, tmp_path / "bundle", tmp_path / "inputs", tmp_path / "outputs")
    assert output == "[] False\n"
    (result,) = torch.load(tmp_path / "outputs")
    torch.testing.assert_close(result, block(*inputs))


def test_the_process_that_compiles_has_llvm():
    """So that the absence above means something."""
    code = "import torch\nfrom torch_accel import _compiler\nprint('libLLVM' in open('/proc/self/maps').read())"
    assert python(code) == "True\n"


def test_symbolic_bundle_serves_all_sizes(tmp_path):
    from torch_accel import _runtime

    run = _runtime.Executable(bundle_of(lambda x: torch.softmax(x, -1), torch.randn(4, 20), dynamic=True))
    for size in ((3, 5), (17, 1000), (2, 2)):
        x = torch.randn(*size)
        (result,) = run([*size, x])
        torch.testing.assert_close(result, torch.softmax(x, -1))
    assert run.stats()["calls"] == 3


def test_compiling_twice_gives_the_same_bundle():
    inputs = block_inputs()
    (captured,), _ = capture(block, *inputs, through_json=False)
    code = (
        "import sys, hashlib\nfrom torch_accel import _compiler, _runtime\n"
        "sections = _runtime.read_bundle(_compiler.compile(sys.argv[1])[0])\n"
        "print({k: hashlib.sha256(v).hexdigest() for k, v in sections.items() if k != 'report'})"
    )
    first, second = (python(code, captured.document.text, PYTHONHASHSEED=seed) for seed in ("1", "2"))
    assert first == second
    assert "'code'" in first


# ---- bundles that can't be used


@pytest.fixture(scope="module")
def bundle():
    torch._dynamo.reset()
    return bundle_of(lambda x: torch.exp(x) + 1, torch.randn(30, 7))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda b: b[:-1], "checksum|truncated|size"),
        (lambda b: b[: len(b) // 2], "checksum|truncated|size"),
        (lambda b: b"", "magic|truncated|size|short"),
        (lambda b: b"X" + b[1:], "magic"),
        (lambda b: b[:8] + b"\x63" + b[9:], "version"),
        (lambda b: b + b"\0", "checksum|size"),
        (lambda b: b[:200] + bytes([b[200] ^ 1]) + b[201:], "checksum"),
        (lambda b: b[:-1] + bytes([b[-1] ^ 128]), "checksum"),
    ],
    ids=[
        "one byte short",
        "half",
        "nothing",
        "magic",
        "version",
        "one byte more",
        "a bit of the plan",
        "a bit of code",
    ],
)
def test_damaged_bundle(bundle, damage, message):
    from torch_accel import _runtime

    with pytest.raises(_runtime.BundleError, match=f"(?i){message}"):
        _runtime.Executable(damage(bundle))


def with_plan(bundle, change):
    """The bundle with a changed plan, and a checksum that fits."""
    from torch_accel import _runtime

    sections = _runtime.read_bundle(bundle)
    plan = json.loads(sections["plan"])
    change(plan)
    return _runtime.write_bundle({**sections, "plan": json.dumps(plan).encode()})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: p.update(version=2), "version"),
        (lambda p: p["target"].update(features=["flux-capacitor"]), "flux-capacitor"),
        (lambda p: p["target"].update(name="abacus"), "abacus"),
        (lambda p: p["kernels"][0].update(symbol="nothing"), "nothing"),
        (lambda p: p["steps"][0].update(args=[99]), "99"),
        (lambda p: p["steps"].append({"op": "jump"}), "jump"),
        (lambda p: p["outputs"].append({"value": 99}), "99"),
    ],
    ids=["version", "missing feature", "target", "symbol", "argument", "step", "output"],
)
def test_bundle_with_a_plan_that_cannot_be_run(bundle, change, message):
    from torch_accel import _runtime

    with pytest.raises(_runtime.BundleError, match=message):
        _runtime.Executable(with_plan(bundle, change))


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        ([torch.randn(30, 8)], RuntimeError, r"has sizes \[30, 8\], expected \[30, 7\]"),
        ([torch.randn(30, 7, dtype=torch.float64)], RuntimeError, "has dtype Double, expected Float"),
        ([torch.randn(30, 7).to_sparse()], RuntimeError, "must be a dense tensor"),
        (["text"], TypeError, "input 0 must be a tensor or an integer, not str"),
        ([], RuntimeError, "1 input"),
    ],
    ids=["sizes", "dtype", "sparse", "text", "none"],
)
def test_wrong_inputs(bundle, inputs, error, message):
    from torch_accel import _runtime

    run = _runtime.Executable(bundle)
    with pytest.raises(error, match=message):
        run(inputs)
    x = torch.randn(30, 7)
    torch.testing.assert_close(run([x])[0], torch.exp(x) + 1)


def test_input_with_other_strides(bundle):
    from torch_accel import _runtime

    run = _runtime.Executable(bundle)
    x = torch.randn(7, 30).t()
    torch.testing.assert_close(run([x])[0], torch.exp(x) + 1)
    assert run.stats()["restrided"] == 1


# ---- threads


def test_one_executable_in_many_threads():
    inputs = [torch.randn(50 + k, 300) for k in range(8)]
    run = torch.compile(lambda x: torch.softmax(x * 2, -1) + x.sum(-1, keepdim=True), backend="accel", dynamic=True)
    run(inputs[0])
    wrong, start = [], threading.Barrier(len(inputs))

    def work(x):
        expected = torch.softmax(x * 2, -1) + x.sum(-1, keepdim=True)
        start.wait()
        for _ in range(30):
            if not torch.allclose(run(x), expected, rtol=1e-4, atol=1e-4):
                wrong.append(tuple(x.shape))

    threads = [threading.Thread(target=work, args=(x,)) for x in inputs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_compiling_in_several_threads():
    from concurrent.futures import ThreadPoolExecutor

    from torch_accel import _compiler, _runtime

    functions = [
        lambda x: torch.tanh(x).sum(-1),
        lambda x: torch.softmax(x, -1),
        lambda x: functional.layer_norm(x, (40,)),
        lambda x: torch.erf(x.t()) + 1,
    ]
    x = torch.randn(12, 40)
    documents = [capture(f, x, through_json=False)[0][0].document.text for f in functions]
    with ThreadPoolExecutor(4) as pool:
        bundles = list(pool.map(lambda d: _compiler.compile(d)[0], documents))
    for function, compiled in zip(functions, bundles, strict=True):
        torch.testing.assert_close(_runtime.Executable(compiled)([x])[0], function(x))


SET_THREADS = """
import os, torch, torch_accel
f = torch.compile(lambda x: torch.exp(torch.sin(x)), backend="accel")
x = torch.randn(1 << 20)
def threads():
    return len(os.listdir("/proc/self/task"))
torch.set_num_threads(1)
expected = f(x)
torch.testing.assert_close(expected[:100], torch.exp(torch.sin(x[:100])))
before, started = threads(), []
for number in (1, 2, 4, 1):
    torch.set_num_threads(number)
    result = f(x)
    started.append(threads() - before)
    assert torch.equal(result, expected)
print(started[:3])
"""


def test_number_of_threads_is_pytorchs():
    """Threads beside the caller's: one fewer than asked for. The values don't depend on it."""
    assert python(SET_THREADS) == "[0, 1, 3]\n"


# ---- profiler


def test_profiler_shows_kernels_and_graph():
    model = nn.Sequential(nn.Linear(16, 32), nn.LayerNorm(32), nn.GELU()).eval()
    run = torch.compile(model, backend="accel")
    x = torch.randn(8, 16)
    with torch.no_grad():
        run(x)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            run(x)
    names = [event.name for event in profile.events() if event.name.startswith("accel::")]
    assert any("graph_" in name for name in names), names
    assert any("layer_norm" in name and "gelu" in name for name in names), names
    (report,) = torch_accel.reports()
    assert len(names) >= 1 + sum(kernel["launches"] for kernel in report.kernels if not kernel["once"])


# ---- bad input


def test_index_out_of_range_is_an_error_and_the_process_lives():
    table = torch.randn(10, 4)
    run = torch.compile(lambda ids: functional.embedding(ids, table) * 2, backend="accel")
    good = torch.tensor([[1, 9], [0, 3]])
    torch.testing.assert_close(run(good), table[good] * 2)
    for bad in (10, -1, 2**40, -(2**40)):
        with pytest.raises(IndexError, match="index out of range in self"):
            run(torch.tensor([[1, 2], [3, bad]]))
    torch.testing.assert_close(run(good), table[good] * 2)


def test_integer_division_by_zero():
    run = torch.compile(lambda a, b: torch.div(a, b, rounding_mode="floor") + a % b, backend="accel")
    a, b = torch.arange(-8, 9), torch.full((17,), 3)
    torch.testing.assert_close(run(a, b), torch.div(a, b, rounding_mode="floor") + a % b)
    b[5] = 0
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        run(a, b)
    b[5] = 7
    torch.testing.assert_close(run(a, b), torch.div(a, b, rounding_mode="floor") + a % b)


def test_error_in_a_fallen_back_op_is_pytorchs():
    run = torch.compile(lambda x: torch.linalg.cholesky(x * 1) + 1, backend="accel")
    x = torch.eye(3)
    torch.testing.assert_close(run(x), torch.linalg.cholesky(x) + 1)
    with pytest.raises(torch.linalg.LinAlgError, match="not positive-definite"):
        run(-x)
    torch.testing.assert_close(run(x), torch.linalg.cholesky(x) + 1)


# ---- fork

FORK = """
import os, sys, torch, torch_accel
f = torch.compile(lambda x: torch.softmax(torch.tanh(x), -1), backend="accel")
x = torch.randn(600, 2000)
expected = f(x)
torch.testing.assert_close(expected, torch.softmax(torch.tanh(x), -1))
child = os.fork()
if child == 0:
    # Not by torch.equal: PyTorch's own threads don't survive a fork.
    ok = all((f(x).numpy() == expected.numpy()).all() for _ in range(3))
    os._exit(0 if ok else 3)
status = os.waitpid(child, 0)[1]
assert torch.equal(f(x), expected)
print(os.waitstatus_to_exitcode(status))
"""


def test_kernels_run_in_a_forked_child():
    """After the parent has used its threads."""
    assert python(FORK, OMP_NUM_THREADS="2") == "0\n"


DATA_LOADER = """
import torch, torch_accel
class Data(torch.utils.data.Dataset):
    f = staticmethod(torch.compile(lambda x: torch.exp(x) + 1, backend="accel"))
    def __len__(self): return 8
    def __getitem__(self, k): return self.f(torch.full((70000,), float(k)))
if __name__ == "__main__":
    data = Data()
    data[0]
    rows = torch.cat([b[:, 0] for b in torch.utils.data.DataLoader(data, batch_size=2, num_workers=2)])
    torch.testing.assert_close(rows, torch.exp(torch.arange(8.0)) + 1)
    print("done")
"""


def test_compiled_function_in_data_loader_workers():
    assert python(DATA_LOADER, OMP_NUM_THREADS="2") == "done\n"


# ---- what a call costs besides the graph's work


def compiled_graph(function, *inputs):
    """What `accel` hands to Dynamo for the function's only graph, and the compiled function."""
    made = []

    def backend(gm, example_inputs):
        made.append(torch_accel.backend.accel(gm, example_inputs))
        return made[-1]

    compiled = torch.compile(function, backend=backend, fullgraph=True)
    compiled(*inputs)
    (graph,) = made
    return graph, compiled


def is_bare(graph) -> bool:
    from torch_accel import _runtime

    return isinstance(getattr(graph, "executable", None), _runtime.Executable)


def test_an_inference_graph_is_called_without_wrappers():
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU()).eval()
    x = torch.randn(3, 8)
    with torch.no_grad():
        graph, compiled = compiled_graph(lambda x: model(x) * torch.tensor([2.0]), x)
        assert is_bare(graph)
        expected = model(x) * 2
        before = graph.executable.stats()["calls"]
        torch.testing.assert_close(compiled(x), expected)
        assert graph.executable.stats()["calls"] == before + 1
    with torch.inference_mode():
        torch.testing.assert_close(compiled(x), expected)


def test_gradient_mode_survives_a_call():
    graph, compiled = compiled_graph(lambda x: x + 1, torch.randn(3))
    assert is_bare(graph)
    assert torch.is_grad_enabled()
    assert not compiled(torch.randn(3)).requires_grad
    with pytest.raises(TypeError, match="must be a tensor or an integer, not str"):
        graph("text")
    with pytest.raises(TypeError, match="no keyword arguments"):
        graph(x=torch.randn(3))
    with pytest.raises(RuntimeError, match="inputs"):
        graph(torch.randn(3), torch.randn(3))
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("function", [lambda x: x.add_(1), lambda x: x.t()], ids=["mutation", "view of an input"])
def test_graphs_with_mutation_or_aliases_keep_their_wrappers(function):
    graph, _ = compiled_graph(function, torch.randn(3, 3))
    assert not is_bare(graph)


def test_a_training_graph_keeps_its_wrappers():
    graph, _ = compiled_graph(lambda x: x.sin(), torch.randn(3, requires_grad=True))
    assert not is_bare(graph)


def test_a_graph_with_a_tensor_subclass_keeps_its_wrappers():
    from torch.testing._internal.two_tensor import TwoTensor

    graph, compiled = compiled_graph(lambda x: x + 1, TwoTensor(torch.zeros(2), torch.ones(2)))
    assert not is_bare(graph)
    result = compiled(TwoTensor(torch.zeros(2), torch.ones(2)))
    torch.testing.assert_close((result.a, result.b), (torch.ones(2), torch.full((2,), 2.0)))


PAGE_FAULTS = """
import resource, torch, torch_accel
from torch.nn import functional
x = torch.randn(2048, 4096)  # 32 MiB
functions = {
    "pointwise": lambda x: torch.relu(x * 2 + 1),
    "softmax": lambda x: torch.softmax(x, -1),
    "norm": lambda x: functional.layer_norm(x, (4096,)),
    "two": lambda x: (torch.sigmoid(x), x.sum(1)),
}
for name, function in functions.items():
    compiled = torch.compile(function, backend="accel")
    for _ in range(4):
        compiled(x)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(8):
        compiled(x)
    print(name, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def test_large_results_reuse_memory_that_is_mapped_already():
    # Each call's result has 8192 pages.
    faults = dict(line.split() for line in python(PAGE_FAULTS).splitlines())
    assert set(faults) == {"pointwise", "softmax", "norm", "two"}
    assert all(int(count) < 80 for count in faults.values()), faults

"""What a tuner may try: each kernel by itself, and schedules that must all give what the chosen one gives."""

from __future__ import annotations

import json

import pytest
import torch
import torch.nn.functional as F

from fx_document import DTYPES, capture

pytestmark = pytest.mark.compiler

OPTIONS = {"target": "cpu", "contractions": "own"}
CANDIDATES = 40


def tasks_of(function, *args, dynamic=None):
    from torch_accel import _compiler

    captured, _ = capture(function, *args, dynamic=dynamic)
    return [
        task
        for c in captured
        for task in json.loads(_compiler.tuning_tasks(c.document.text, json.dumps(OPTIONS), CANDIDATES))
    ]


def inputs_of(task):
    """Random tensors; integers are zeros, which are indices of everything."""
    inputs = []
    for i in task["inputs"]:
        if isinstance(i, int):
            inputs.append(i)
            continue
        dtype = DTYPES[i["dtype"]]
        count = 1 + sum((n - 1) * s for n, s in zip(i["sizes"], i["strides"], strict=True))
        flat = torch.randn(count).to(dtype) if dtype.is_floating_point else torch.zeros(count, dtype=dtype)
        inputs.append(flat.as_strided(i["sizes"], i["strides"]))
    return inputs


def run(task, config, inputs):
    from torch_accel import _compiler, _runtime

    options = OPTIONS | {"compile_from": "kernels", "tile_configs": {"kernel": config}}
    return _runtime.Executable(_compiler.compile(task["module"], json.dumps(options))[0])(list(inputs))


def check_candidates(tasks):
    for task in tasks:
        assert len(set(task["configs"])) == len(task["configs"]) > 1, task["kernel"]
        inputs = inputs_of(task)
        wanted = run(task, task["configs"][0], inputs)
        for config in task["configs"][1:]:
            # Sums may be added up in another order.
            torch.testing.assert_close(run(task, config, inputs), wanted, rtol=1e-5, atol=1e-5, msg=config)


def block(x, w, v):
    h = F.layer_norm(F.gelu(F.linear(x, w)), [w.shape[0]])
    return F.softmax(F.linear(h, v), -1), h.sum(0), h.t().contiguous()


FUNCTIONS = {
    "layers": (block, [(37, 40), (70, 40), (40, 70)]),
    "attention": (F.scaled_dot_product_attention, [(1, 2, 37, 16)] * 3),
    "depthwise": (lambda x, w: F.conv2d(x, w, padding=1, groups=24), [(1, 24, 13, 13), (24, 1, 3, 3)]),
    "convolution": (lambda x, w: F.conv2d(x, w, padding=1).relu(), [(1, 16, 13, 13), (24, 16, 3, 3)]),
    "scan": (lambda x: x.cumsum(1), [(5, 37)]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_candidates_give_what_the_chosen_schedule_gives(name):
    function, shapes = FUNCTIONS[name]
    tasks = tasks_of(function, *[torch.randn(*shape) for shape in shapes])
    assert tasks
    check_candidates(tasks)


def test_symbolic_sizes_have_the_values_seen_while_tracing():
    tasks = tasks_of(block, torch.randn(37, 40), torch.randn(70, 40), torch.randn(40, 70), dynamic=True)
    sizes = [i["sizes"] for task in tasks for i in task["inputs"] if not isinstance(i, int)]
    assert [37, 40] in sizes
    assert any(37 in [i for i in task["inputs"] if isinstance(i, int)] for task in tasks)
    check_candidates(tasks)


def test_equal_kernels_are_one_task_whatever_their_names():
    def twice(x, y):
        return x.exp() + 1, y.exp() + 1

    def once(z):
        renamed = z.exp()
        return renamed + 1

    x, y = torch.randn(6, 50), torch.randn(6, 50)
    (both,), (one,) = tasks_of(twice, x, y), tasks_of(once, x)
    assert both["launches"] == 2
    assert one["launches"] == 1
    assert both["module"] == one["module"]
    assert both["configs"] == one["configs"]


def test_inputs_of_the_graph_are_cold():
    def function(x, w):
        return F.linear(F.softmax(x, -1), w)

    softmax, product = tasks_of(function, torch.randn(30, 64), torch.randn(48, 64))
    assert [i["cold"] for i in softmax["inputs"]] == [True]
    assert [i["cold"] for i in product["inputs"]] == [False, True]


def test_a_schedule_that_is_none_is_refused():
    from torch_accel import _compiler

    (task,) = tasks_of(lambda x: x.exp(), torch.randn(6, 50))
    too_many_loops = "#accel.tile_config<vector_loop = 9, vector = 8, block = 8, rows = 1, grain = 1>"
    for text in ("nonsense", "7 : i64", too_many_loops):
        with pytest.raises(_compiler.CompilerError, match=r"schedule|vector_loop"):
            run(task, text, inputs_of(task))

"""What depends on weights alone is computed once, and again when a weight changes."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import nn

import torch_accel


@pytest.fixture
def layer():
    torch.manual_seed(0)
    return nn.Linear(48, 64).eval()


def compiled(model, **options):
    torch_accel.reset_reports()
    return torch.compile(model, backend="accel", options=options or None)


def same(run, model, x):
    with torch.no_grad():
        torch.testing.assert_close(run(x), model(x), rtol=1e-5, atol=1e-5)


CHANGES = {
    "in place": lambda m: m.weight.mul_(2),
    "copied": lambda m: m.weight.copy_(torch.ones_like(m.weight)),
    "one element": lambda m: m.weight[3].__setitem__(5, 100.0),
    "bias": lambda m: m.bias.add_(1),
    "another parameter": lambda m: setattr(m, "weight", nn.Parameter(torch.randn_like(m.weight))),
    "another storage": lambda m: setattr(m.weight, "data", torch.randn_like(m.weight)),
    "loaded": lambda m: m.load_state_dict({k: torch.full_like(v, 0.5) for k, v in m.state_dict().items()}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_weight_counts_in_the_next_call(layer, change):
    run, x = compiled(layer), torch.randn(5, 48)
    same(run, layer, x)
    same(run, layer, x)
    with torch.no_grad():
        before = layer(x)
        CHANGES[change](layer)
        assert not torch.equal(layer(x), before)
    same(run, layer, x)
    same(run, layer, x)


def test_a_weight_freed_and_allocated_again_is_another(layer):
    run, x = compiled(layer), torch.randn(5, 48)
    for k in range(20):
        layer.weight = None
        layer.weight = nn.Parameter(torch.full((64, 48), float(k)))
        same(run, layer, x)


def test_training_steps_between_evaluations(layer):
    run, x = compiled(layer), torch.randn(5, 48)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(3):
        same(run, layer, x)
        layer(x).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    same(run, layer, x)


def test_two_layers_of_one_weight():
    first, second = nn.Linear(32, 32), nn.Linear(32, 32)
    second.weight = first.weight
    model, x = nn.Sequential(first, nn.ReLU(), second).eval(), torch.randn(3, 32)
    run = compiled(model)
    same(run, model, x)
    with torch.no_grad():
        first.weight.mul_(3)
    same(run, model, x)


def test_report_shows_the_memory_and_the_option_turns_it_off(layer):
    x = torch.randn(5, 48)
    same(compiled(layer), layer, x)
    (report,) = torch_accel.reports()
    # 64 columns are whole panels for any width up to 64.
    assert report.constants == {"values": 1, "bytes": 48 * 64 * 4}
    torch._dynamo.reset()
    same(compiled(layer, constant_weights="off"), layer, x)
    (report,) = torch_accel.reports()
    assert report.constants == {"values": 0, "bytes": 0}


def test_training_graphs_have_none(layer):
    compiled(layer)(torch.randn(5, 48, requires_grad=True)).sum().backward()
    assert all(report.constants["values"] == 0 for report in torch_accel.reports())


def test_inference_mode(layer):
    run, x = compiled(layer), torch.randn(5, 48)
    with torch.inference_mode():
        torch.testing.assert_close(run(x), layer(x), rtol=1e-5, atol=1e-5)
    same(run, layer, x)


def test_weights_made_in_inference_mode_are_no_constants():
    # Nothing counts the writes to them.
    with torch.inference_mode():
        model = nn.Linear(48, 64).eval()
        run, x = compiled(model), torch.randn(5, 48)
        torch.testing.assert_close(run(x), model(x), rtol=1e-5, atol=1e-5)
        model.weight.mul_(2)
        torch.testing.assert_close(run(x), model(x), rtol=1e-5, atol=1e-5)


def test_a_result_made_of_weights_alone_is_the_callers(layer):
    def both(x):
        doubled = layer.weight * 2
        return layer(x), doubled

    run, x = compiled(both), torch.randn(5, 48)
    with torch.no_grad():
        _, first = run(x)
        first.zero_()
        got, second = run(x)
        torch.testing.assert_close(second, layer.weight * 2)
        torch.testing.assert_close(got, layer(x), rtol=1e-5, atol=1e-5)


def test_buffers_that_the_graph_writes_to_are_no_constants():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("scale", torch.ones(48))
            self.layer = nn.Linear(48, 64)

        def forward(self, x):
            self.scale.add_(1)
            return self.layer(x * (self.scale * 2))

    torch.manual_seed(0)
    model, x = Counting().eval(), torch.randn(5, 48)
    run = compiled(model)
    with torch.no_grad():
        for k in range(3):
            torch.testing.assert_close(run(x), model.layer(x * (2.0 + k) * 2), rtol=1e-5, atol=1e-5)


def test_threads_see_the_weight_before_or_after_a_write(layer):
    run, x = compiled(layer), torch.randn(5, 48)
    layer.requires_grad_(False)
    layer.bias.zero_()
    layer.weight.fill_(1)
    run(x)
    total, wrong, stop = x.sum(1, keepdim=True).expand(5, 64), [], threading.Event()

    def call():
        while not stop.is_set():
            got = run(x)
            # A write is no atomic step: an element is of the old weight, of the new one, or between.
            low, high = torch.minimum(total, 2 * total), torch.maximum(total, 2 * total)
            bound = 48 * x.abs().max()
            if not ((got >= low - bound) & (got <= high + bound)).all():
                wrong.append(got)

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    for k in range(50):
        layer.weight.fill_(1 + k % 2)
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong
    torch.testing.assert_close(run(x), layer(x), rtol=1e-5, atol=1e-5)

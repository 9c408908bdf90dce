"""Training: losses, gradients, optimisers, running statistics, dropout, and who shares memory with whom."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils._pytree import tree_flatten
from torch.utils.checkpoint import checkpoint

import torch_accel
from ops.compare import assert_layout, assert_same

pytestmark = pytest.mark.compiler

TOLERANCE = 1e-4  # of a gradient, relative to its largest value


def compiled(function, **keywords):
    return torch.compile(function, backend="accel", fullgraph=True, **keywords)


def assert_close(got, want, name):
    """Equal layout; differences stay below the tolerance times the largest value, or are what rounding makes of 0."""
    assert_layout(got, want, name)
    scale = want.abs().max().item() if want.numel() else 0.0
    error = (got - want).abs().max().item() if want.numel() else 0.0
    assert error <= TOLERANCE * scale + 2e-6, f"{name}: differs by {error:.1e}, largest value {scale:.1e}"


def assert_equal(result, expected, name="result"):
    got, want = tree_flatten(result)[0], tree_flatten(expected)[0]
    assert len(got) == len(want), name
    for k, (g, w) in enumerate(zip(got, want, strict=True)):
        if isinstance(w, torch.Tensor):
            g, w = g.detach(), w.detach()
        assert_same(g, w, f"{name}[{k}]")


def gradients(module):
    return {name: p.grad for name, p in module.named_parameters()}


def assert_gradients(module, reference):
    got, want = gradients(module), gradients(reference)
    for name, gradient in want.items():
        assert (got[name] is None) == (gradient is None), name
        if gradient is not None:
            assert_close(got[name], gradient, name)


def shares_memory(a, b):
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


# ---- whole training steps


class BertWithLoss(nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        from transformers import BertConfig, BertForSequenceClassification

        config = BertConfig(
            vocab_size=500,
            hidden_size=96,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=200,
            num_labels=3,
            hidden_dropout_prob=dropout,
            attention_probs_dropout_prob=dropout,
        )
        self.model = BertForSequenceClassification(config)

    def forward(self, ids, mask, labels):
        return functional.cross_entropy(self.model(input_ids=ids, attention_mask=mask).logits, labels)


def bert_batch(batch=4, length=21):
    mask = torch.arange(length) < torch.randint(5, length + 1, (batch, 1))
    return torch.randint(0, 500, (batch, length)), mask.long(), torch.randint(0, 3, (batch,))


@pytest.mark.model
def test_bert_with_sgd():
    """Two steps: loss, gradients and parameters are eager's; what fell back is counted and listed."""
    reference = BertWithLoss().train()
    model = copy.deepcopy(reference)
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.05, momentum=0.9) for m in (model, reference)]
    run = compiled(model)
    for step in range(2):
        batch = bert_batch()
        for optimizer in optimizers:
            optimizer.zero_grad(set_to_none=True)
        loss, expected = run(*batch), reference(*batch)
        loss.backward()
        expected.backward()
        assert_close(loss.detach(), expected.detach(), f"loss of step {step}")
        assert_gradients(model, reference)
        for optimizer in optimizers:
            optimizer.step()
    for (name, p), q in zip(model.named_parameters(), reference.parameters(), strict=True):
        assert_close(p.detach(), q.detach(), name)

    reports = torch_accel.reports()
    assert [r.part for r in reports] == ["forward", "backward"]
    for report in reports:
        assert not report.whole_graph_reason
        assert len(report.fallbacks) == report.nodes["fallback"]
        assert all(f["target"].startswith("aten.") and f["reason"] for f in report.fallbacks)
        listed = sorted({f"{f['target']}: {f['reason']}" for f in report.fallbacks})
        print(f"{report.part}: {report.nodes}", *listed, sep="\n  ")
        share = 1 - report.nodes["fallback"] / sum(report.nodes.values())
        assert share >= 0.9, f"{report.part}: {share:.1%} native or library; fell back: {listed}"


@pytest.mark.model
def test_bert_serves_changing_sizes():
    reference = BertWithLoss().train()
    model = copy.deepcopy(reference)
    run = compiled(model, dynamic=True)
    for size in ((4, 21), (2, 40), (6, 9)):
        batch = bert_batch(*size)
        for m in (model, reference):
            m.zero_grad(set_to_none=True)
        loss, expected = run(*batch), reference(*batch)
        loss.backward()
        expected.backward()
        assert_close(loss.detach(), expected.detach(), f"loss at {size}")
        assert_gradients(model, reference)
    assert [r.part for r in torch_accel.reports()] == ["forward", "backward"]


class Mlp(nn.Module):
    def __init__(self, middle=None):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(12, 40), middle or nn.LayerNorm(40), nn.GELU(), nn.Linear(40, 5))

    def forward(self, x):
        return self.layers(x)


def test_mlp_with_adamw():
    reference = Mlp()
    model = copy.deepcopy(reference)
    run = compiled(model)
    optimizers = [torch.optim.AdamW(m.parameters(), lr=1e-2) for m in (model, reference)]
    x, y = torch.randn(64, 12), torch.randint(0, 5, (64,))
    losses = []
    for _ in range(20):
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss, expected = functional.cross_entropy(run(x), y), functional.cross_entropy(reference(x), y)
        loss.backward()
        expected.backward()
        torch.testing.assert_close(loss, expected, rtol=1e-3, atol=1e-4)
        for optimizer in optimizers:
            optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]
    assert len(torch_accel.reports()) == 2


def test_compiled_optimizer_step():
    """The whole step of AdamW as one graph of in-place updates."""
    reference = Mlp()
    model = copy.deepcopy(reference)
    optimizers = [torch.optim.AdamW(m.parameters(), lr=1e-2) for m in (model, reference)]
    x, y = torch.randn(16, 12), torch.randint(0, 5, (16,))
    step = torch.compile(optimizers[0].step, backend="accel")
    for _ in range(3):
        for m in (model, reference):
            m.zero_grad()
            functional.cross_entropy(m(x), y).backward()
        step()
        optimizers[1].step()
        for p, q in zip(model.parameters(), reference.parameters(), strict=True):
            assert_close(p.detach(), q.detach(), "parameter")


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy(reduction, smoothing):
    y = torch.tensor([0, 2, -100, 4, 1])

    def loss(x):
        return functional.cross_entropy(x, y, reduction=reduction, label_smoothing=smoothing).sum()

    x = torch.randn(5, 6, requires_grad=True)
    run = compiled(loss)
    assert_equal(run(x), loss(x))
    assert_equal(torch.autograd.grad(run(x), x), torch.autograd.grad(loss(x), x))


# ---- batch norm and dropout


@pytest.mark.parametrize("kind", ["1d", "2d", "no affine", "cumulative"])
def test_batch_norm_updates_its_statistics(kind):
    norm = {
        "1d": lambda: nn.BatchNorm1d(40),
        "2d": lambda: nn.BatchNorm2d(6),
        "no affine": lambda: nn.BatchNorm1d(40, affine=False),
        "cumulative": lambda: nn.BatchNorm1d(40, momentum=None),
    }[kind]()
    reference = (Mlp(norm) if kind != "2d" else nn.Sequential(norm, nn.ReLU())).train()
    model = copy.deepcopy(reference)
    # Without momentum the factor depends on a counter, whose value Dynamo reads: a graph break of PyTorch's.
    run = torch.compile(model, backend="accel", fullgraph=kind != "cumulative")
    for _ in range(3):
        x = torch.randn(4, 6, 5, 5) if kind == "2d" else torch.randn(9, 12)
        x = x * 2 + 3
        weights = torch.randn_like(reference(x[:2]))[:1] if kind == "2d" else torch.randn(5)
        for m in (model, reference):
            m.load_state_dict(reference.state_dict())
            m.zero_grad()
        result, expected = run(x), reference(x)
        assert_close(result.detach(), expected.detach(), "output")
        (result * weights).sum().backward()
        (expected * weights).sum().backward()
        assert_gradients(model, reference)
        for (name, got), want in zip(model.named_buffers(), reference.buffers(), strict=True):
            assert_equal(got, want, name)
    model.eval(), reference.eval()
    with torch.no_grad():
        assert_close(run(x), reference(x), "in evaluation")


def test_dropout_statistics():
    x = torch.ones(400, 500)
    run = compiled(lambda x: functional.dropout(x, 0.3, training=True))
    result = run(x)
    kept = result != 0
    torch.testing.assert_close(result[kept], torch.full_like(result[kept], 1 / 0.7))
    assert abs(kept.float().mean().item() - 0.7) < 0.01
    assert abs(kept.float().mean(0).std().item() - (0.21 / 400) ** 0.5) < 0.005, "columns are independent"
    assert not torch.equal(kept, run(x) != 0), "each call draws anew"


def test_dropout_is_determined_by_the_seed():
    x = torch.randn(50, 60)
    run = compiled(lambda x: functional.dropout(x * 2, 0.5, training=True) + torch.rand_like(x))
    results = []
    for seed in (7, 8, 7):
        torch.manual_seed(seed)
        results.append(run(x))
    assert torch.equal(results[0], results[2])
    assert not torch.equal(results[0], results[1])


@pytest.mark.parametrize("p", [0.0, 0.4, 1.0])
def test_dropout_has_one_mask_in_forward_and_backward(p):
    x = torch.rand(70, 33) + 1
    x.requires_grad_()
    result = compiled(lambda x: functional.dropout(x, p, training=True) * 3)(x)
    result.sum().backward()
    factor = 0.0 if p == 1 else 3 / (1 - p)
    torch.testing.assert_close(x.grad, (result.detach() != 0) * factor)


@pytest.mark.model
def test_bert_with_dropout_trains():
    model = BertWithLoss(dropout=0.1).train()
    run = compiled(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    batch = bert_batch()
    losses = []
    for _ in range(12):
        optimizer.zero_grad()
        loss = run(*batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0], losses


# ---- mutated inputs


def mutates(function, *inputs):
    """Compares results and what became of the inputs; three calls."""
    run = compiled(function)
    ours, theirs = [[t.clone() for t in inputs] for _ in range(2)]
    for call in range(3):
        assert_equal(run(*ours), function(*theirs), f"result of call {call}")
        assert_equal(ours, theirs, f"inputs after call {call}")
    return run


def copied(x, y):
    x.copy_(y * 2)
    return x + 1


def swapped(x, y):
    kept = x.clone()
    x.copy_(y)
    y.copy_(kept)
    return x - y


def through_a_view(x, y):
    x[1:].add_(y[1:])
    x.t()[0].mul_(2)
    return x.sum(0)


def only_a_part(x, y):
    x[0, 1] = 5.0
    x[:, 2] = y[:, 0]


def read_before_and_after(x, y):
    before = x.sum()
    x.mul_(y)
    after = x.sum()
    x.add_(1)
    return before, after, x.sum()


def twice(x, y):
    x.add_(1)
    x.add_(y)
    return x * 2


def reduced_into_itself(x, y):
    x.sub_(x.mean(0))
    y.copy_(x.t().reshape(y.shape))


def filled(x, y):
    x.zero_()
    y.fill_(3)


MUTATIONS = [
    copied,
    swapped,
    through_a_view,
    only_a_part,
    read_before_and_after,
    twice,
    reduced_into_itself,
    filled,
]


@pytest.mark.parametrize("function", MUTATIONS, ids=lambda f: f.__name__)
def test_mutation(function):
    mutates(function, torch.randn(5, 40), torch.randn(5, 40))


def test_mutated_view_of_a_larger_tensor():
    def function(x):
        return x.mul_(2).sum()

    run = compiled(function)
    base, kept = torch.randn(6, 10), None
    kept = base.clone()
    assert_equal(run(base[1:4, 2:7]), function(kept[1:4, 2:7]))
    assert_equal(base, kept)


def test_mutation_moves_the_version_counter():
    x = torch.randn(4, requires_grad=True)
    buffer = torch.randn(4)
    saved = x * buffer  # autograd keeps the buffer
    compiled(lambda b: b.add_(1))(buffer)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        saved.sum().backward()


def test_mutation_of_a_transposed_input():
    x = torch.randn(7, 5).t()
    y = x.clone(memory_format=torch.preserve_format)
    compiled(lambda x: x.exp_())(x)
    assert_equal(x, y.exp_())


def test_two_inputs_that_are_the_same_tensor():
    def function(x, y):
        x.add_(1)
        return x + y

    a, b = torch.randn(3), None
    b = a.clone()
    assert_equal(compiled(function)(a, a), function(b, b))
    assert_equal(a, b)


def test_inputs_that_overlap():
    def function(x, y):
        x.mul_(2)
        return y + 1

    a = torch.randn(10)
    b = a.clone()
    assert_equal(compiled(function)(a[:6], a[4:]), function(b[:6], b[4:]))
    assert_equal(a, b)


# ---- outputs and the memory they share


def test_an_input_returned_is_that_input():
    x = torch.randn(3, 4)
    result, other = compiled(lambda x: (x, x + 1))(x)
    assert shares_memory(result, x)
    assert not shares_memory(other, x)
    result.zero_()
    assert not x.any()


@pytest.mark.parametrize(
    "function",
    [lambda x: x.t(), lambda x: x[1:, ::2], lambda x: x.view(-1), lambda x: x.unsqueeze(0).expand(2, 4, 6)],
    ids=["transpose", "slice", "view", "expand"],
)
def test_a_view_of_an_input_shares_its_memory(function):
    x = torch.randn(4, 6)
    result, _ = compiled(lambda x: (function(x), x + 1))(x)
    expected = function(x)
    assert shares_memory(result, x)
    assert result.storage_offset() == expected.storage_offset()
    assert_equal(result, expected)
    x.add_(1)
    assert_equal(result, expected)


FRESH = {
    "clone": lambda x: x.clone(),
    "times one": lambda x: x * 1,
    "plus zero": lambda x: x + 0,
    "to the same dtype and back": lambda x: x.to(torch.float64).to(torch.float32),
    "contiguous copy of a transpose": lambda x: x.t().contiguous(),
    "clone of a view": lambda x: x.view(-1).clone(),
    "two transposes and a clone": lambda x: x.t().t().clone(),
    "repeat once": lambda x: x.repeat(1, 1),
    "cat of one": lambda x: torch.cat([x]),
    "clamp that does nothing": lambda x: x.clamp(-1e30, 1e30),
    "where": lambda x: torch.where(torch.ones_like(x, dtype=torch.bool), x, x),
    "index of everything": lambda x: x[torch.arange(4)],
    "to with a copy": lambda x: x.to(torch.float32, copy=True),
}


@pytest.mark.parametrize("name", FRESH)
def test_a_result_that_eager_makes_anew_is_new(name):
    x = torch.randn(4, 6)
    result = compiled(FRESH[name])(x)
    assert_equal(result, FRESH[name](x))
    assert not shares_memory(result, x)
    kept = result.clone()
    x.zero_()
    assert_equal(result, kept)


def test_results_of_two_calls_do_not_share_memory():
    run = compiled(lambda x: torch.softmax(x, -1) + 1)
    x = torch.randn(300, 400)
    first = run(x)
    kept = first.clone()
    second = run(x * 3)
    assert not shares_memory(first, second)
    assert_equal(first, kept)


def test_the_same_output_twice_is_one_tensor():
    def function(x):
        y = x * 2
        return y, y, y.t()

    a, b, c = compiled(function)(torch.randn(3, 4))
    assert a is b
    assert shares_memory(a, c)


def test_views_of_a_result_share_its_memory():
    def function(x):
        y = x * 2
        return y, y[1:], y.view(-1)

    results = compiled(function)(torch.randn(3, 4))
    results[0].fill_(7)
    assert all(bool((r == 7).all()) for r in results)


def test_a_copy_returned_twice_is_one_new_tensor():
    x = torch.randn(3, 4)

    def function(x):
        y = x.clone()
        return y, y

    a, b = compiled(function)(x)
    assert a is b
    assert not shares_memory(a, x)


def test_equal_but_separate_results_stay_separate():
    a, b = compiled(lambda x: (x * 2, x * 2))(torch.randn(3, 4))
    assert not shares_memory(a, b)


def test_a_view_as_the_only_result():
    x = torch.randn(3, 4)
    result = compiled(lambda x: (x * 2).t())(x)
    assert_equal(result, (x * 2).t())


def test_constants_are_not_shared_with_results():
    constant = torch.tensor([1.0, 2.0])
    run = compiled(lambda x: (constant.clone(), x + constant))
    first, _ = run(torch.ones(2))
    first.zero_()
    assert_equal(run(torch.ones(2))[0], torch.tensor([1.0, 2.0]))


# ---- autograd


def test_double_use():
    def function(x):
        y = torch.tanh(x)
        return y * y + torch.exp(y) + x * y

    x = torch.randn(7, 9, requires_grad=True)
    (got,) = torch.autograd.grad(compiled(function)(x).sum(), x)
    (want,) = torch.autograd.grad(function(x).sum(), x)
    assert_equal(got, want)


def test_retained_graph():
    x = torch.randn(5, 6, requires_grad=True)
    loss = compiled(lambda x: torch.softmax(x, -1).pow(2).sum())(x)
    (first,) = torch.autograd.grad(loss, x, retain_graph=True)
    kept = first.clone()
    (second,) = torch.autograd.grad(loss, x)
    assert_equal(second, kept)
    assert_equal(first, kept)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        torch.autograd.grad(loss, x)


def test_gradient_accumulation():
    reference = Mlp()
    model = copy.deepcopy(reference)
    run = compiled(model)
    for _ in range(3):
        x, y = torch.randn(8, 12), torch.randint(0, 5, (8,))
        (functional.cross_entropy(run(x), y) / 3).backward()
        (functional.cross_entropy(reference(x), y) / 3).backward()
    assert_gradients(model, reference)


def test_two_calls_before_one_backward():
    """What the first call saved is not overwritten by the second."""
    run = compiled(lambda x: torch.sigmoid(torch.layer_norm(x, [40])).pow(2))
    x, y = (torch.randn(6, 40, requires_grad=True) for _ in range(2))
    (run(x).sum() + run(y * 2).sum()).backward()
    got = [x.grad.clone(), y.grad.clone()]
    x.grad = y.grad = None
    f = lambda x: torch.sigmoid(torch.layer_norm(x, [40])).pow(2)  # noqa: E731
    (f(x).sum() + f(y * 2).sum()).backward()
    assert_equal(got, [x.grad, y.grad])


@pytest.mark.parametrize("reentrant", [False])
def test_checkpoint(reentrant):
    reference = nn.ModuleList([Mlp(), nn.Sequential(nn.Linear(5, 12), nn.Tanh())])
    model = copy.deepcopy(reference)

    def forward(modules, x):
        for module in modules:
            x = checkpoint(module, x, use_reentrant=reentrant)
        return x.pow(2).sum()

    x = torch.randn(8, 12)
    loss = compiled(lambda x: forward(model, x))(x)
    loss.backward()
    expected = forward(reference, x)
    expected.backward()
    assert_close(loss.detach(), expected.detach(), "loss")
    assert_gradients(model, reference)


def test_checkpoint_with_dropout_recomputes_the_same_mask():
    x = (torch.rand(50, 40) + 1).requires_grad_()
    weight = torch.ones(40, requires_grad=True)

    def block(x):
        return functional.dropout(torch.relu(x * weight), 0.5, training=True) * 3

    result = compiled(lambda x: checkpoint(block, x, use_reentrant=False))(x)
    result.sum().backward()
    torch.testing.assert_close(x.grad, (result.detach() != 0) * 6.0)


def test_output_without_gradient():
    def function(x):
        return x * 2, x.detach() + 1, x.argmax()

    x = torch.randn(9, requires_grad=True)
    results = compiled(function)(x)
    assert [r.requires_grad for r in results] == [True, False, False]
    results[0].sum().backward()
    assert_equal(x.grad, torch.full((9,), 2.0))


def test_gradient_with_other_strides():
    x = torch.randn(6, 8, requires_grad=True)
    result = compiled(lambda x: torch.tanh(x) * 2)(x)
    gradient = torch.randn(8, 6).t()
    result.backward(gradient)
    assert_equal(x.grad, (2 * gradient * (1 - torch.tanh(x) ** 2)).contiguous())


def test_expanded_gradient():
    x = torch.randn(6, 8, requires_grad=True)
    compiled(lambda x: torch.exp(x))(x).sum().backward()
    assert_equal(x.grad, torch.exp(x))


def test_part_of_the_parameters_frozen():
    reference = Mlp()
    reference.layers[0].requires_grad_(False)
    model = copy.deepcopy(reference)
    x = torch.randn(8, 12)
    compiled(model)(x).pow(2).sum().backward()
    reference(x).pow(2).sum().backward()
    assert_gradients(model, reference)


@pytest.mark.parametrize("dtype", [torch.bfloat16], ids=str)
def test_autocast_training(dtype):
    reference = Mlp()
    model = copy.deepcopy(reference)
    run = compiled(model)
    x, y = torch.randn(32, 12), torch.randint(0, 5, (32,))
    for function in (run, reference):
        with torch.autocast("cpu", dtype=dtype):
            loss = functional.cross_entropy(function(x), y)
        loss.backward()
    for (name, got), want in zip(gradients(model).items(), gradients(reference).values(), strict=True):
        assert_layout(got, want, name)
        assert (got - want).abs().max() <= 0.03 * want.abs().max() + 1e-4, name


def test_gradient_clipping_and_inf_norm():
    reference = Mlp()
    model = copy.deepcopy(reference)
    x = torch.randn(8, 12)
    compiled(model)(x).pow(2).sum().backward()
    reference(x).pow(2).sum().backward()
    clip = torch.compile(torch.nn.utils.clip_grad_norm_, backend="accel")
    norm = clip(list(model.parameters()), 0.5)
    assert_close(norm, torch.nn.utils.clip_grad_norm_(reference.parameters(), 0.5), "norm")
    assert_gradients(model, reference)


def test_custom_autograd_function():
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return gradient * 3 * x**2

    x = torch.randn(10, requires_grad=True)
    compiled(lambda x: Cube.apply(x) * 2)(x).sum().backward()
    assert_equal(x.grad, 6 * x**2)

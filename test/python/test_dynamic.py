"""Symbolic sizes: one compilation serves every size, and each gives eager's values."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils._pytree import tree_flatten

import torch_accel
from ops.compare import assert_native, assert_same

pytestmark = pytest.mark.compiler


def compiled_graphs() -> list[str]:
    return [report.name for report in torch_accel.reports()]


def assert_equal(result, expected, name):
    got, want = tree_flatten(result)[0], tree_flatten(expected)[0]
    assert len(got) == len(want), name
    for k, (g, w) in enumerate(zip(got, want, strict=True)):
        assert_same(g, w, f"{name}[{k}]")


def serve(function, inputs, dynamic=True, native=True):
    """Calls one compiled function with each tuple of inputs: one compilation, eager's results."""
    run = torch.compile(function, backend="accel", dynamic=dynamic, fullgraph=True)
    with torch.no_grad():
        for arguments in inputs:
            name = str([tuple(a.shape) if isinstance(a, torch.Tensor) else a for a in arguments])
            assert_equal(run(*arguments), function(*arguments), name)
    assert len(compiled_graphs()) == 1, f"compiled {compiled_graphs()}"
    if native:
        assert_native()


SIZES = [(4, 20), (3, 33), (9, 128), (2, 7), (17, 1025)]


def test_softmax():
    serve(lambda x: torch.softmax(x, -1), [(torch.randn(*s),) for s in SIZES])


def test_log_softmax_over_the_first_dimension():
    serve(lambda x: torch.log_softmax(x, 0), [(torch.randn(*s),) for s in SIZES])


def test_layer_norm_over_a_static_width():
    model = nn.LayerNorm(48).eval()
    serve(model, [(torch.randn(b, t, 48),) for b, t in SIZES[:4]])


def test_layer_norm_over_a_symbolic_width():
    def norm(x, weight, bias):
        return functional.layer_norm(x, (x.shape[-1],), weight, bias)

    serve(norm, [(torch.randn(b, t), torch.randn(t), torch.randn(t)) for b, t in SIZES])


def test_rms_norm():
    serve(lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6), [(torch.randn(*s),) for s in SIZES])


def test_mlp():
    model = nn.Sequential(nn.Linear(24, 50), nn.GELU(), nn.LayerNorm(50), nn.Linear(50, 6), nn.Softmax(-1)).eval()
    serve(model, [(torch.randn(*s, 24),) for s in ((4, 3), (2, 9), (31, 5), (5, 64))])


def small_bert(**keywords):
    from transformers import BertConfig

    return BertConfig(
        vocab_size=500, hidden_size=96, num_hidden_layers=2, num_attention_heads=4, intermediate_size=200, **keywords
    )


BERT_SIZES = [(2, 23), (3, 40), (5, 64), (4, 7)]


@pytest.mark.model
@pytest.mark.parametrize("mask", [False, True], ids=["plain", "mask"])
def test_bert(mask):
    from transformers import BertModel

    model = BertModel(small_bert()).eval()

    def inputs(batch, length):
        ids = torch.randint(0, 500, (batch, length))
        if not mask:
            return (ids,)
        kept = torch.arange(length) < torch.randint(1, length + 1, (batch, 1))
        return ids, kept.long()

    run = torch.compile(model, backend="accel", dynamic=True, fullgraph=True)
    with torch.no_grad():
        for size in BERT_SIZES:
            arguments = inputs(*size)
            torch.testing.assert_close(
                run(*arguments).last_hidden_state, model(*arguments).last_hidden_state, rtol=1e-4, atol=1e-4
            )
    assert len(compiled_graphs()) == 1
    nodes = torch_accel.reports()[0].nodes
    assert (nodes["native"] + nodes["library"]) / sum(nodes.values()) >= 0.97, torch_accel.reports()[0].fallbacks


@pytest.mark.model
def test_llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=500,
        hidden_size=96,
        intermediate_size=200,
        num_hidden_layers=2,
        num_attention_heads=6,
        num_key_value_heads=2,
    )
    model = LlamaForCausalLM(config).eval()
    run = torch.compile(model, backend="accel", dynamic=True, fullgraph=True)
    with torch.no_grad():
        for size in BERT_SIZES:
            ids = torch.randint(0, 500, size)
            result, expected = run(ids, use_cache=False).logits, model(ids, use_cache=False).logits
            torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-4)
    assert len(compiled_graphs()) == 1


def test_training_step():
    model = nn.Sequential(nn.Linear(24, 50), nn.GELU(), nn.LayerNorm(50), nn.Linear(50, 6))
    run = torch.compile(lambda x, y: functional.cross_entropy(model(x), y), backend="accel", dynamic=True)
    for batch in (4, 9, 32, 3):
        x, y = torch.randn(batch, 24, requires_grad=True), torch.randint(0, 6, (batch,))
        gradients = []
        for loss in (run(x, y), functional.cross_entropy(model(x), y)):
            gradients.append([loss.detach(), *torch.autograd.grad(loss, [x, *model.parameters()])])
        assert_equal(*gradients, name=f"batch {batch}")
    assert [r.part for r in torch_accel.reports()] == ["forward", "backward"]


# ---- which sizes are symbolic


def test_automatic_dynamic_after_the_second_size():
    run = torch.compile(lambda x: torch.softmax(x * 2, -1), backend="accel")
    counts = []
    for batch in (4, 9, 32, 17):
        x = torch.randn(batch, 40)
        assert_equal(run(x), torch.softmax(x * 2, -1), f"batch {batch}")
        counts.append(len(compiled_graphs()))
    assert counts == [1, 2, 2, 2]


def test_marked_dimension():
    run = torch.compile(lambda x: (x + 1).sum(-1), backend="accel")
    for batch in (4, 9, 32):
        x = torch.randn(batch, 40)
        torch._dynamo.mark_dynamic(x, 0)
        assert_equal(run(x), (x + 1).sum(-1), f"batch {batch}")
    assert len(compiled_graphs()) == 1


def test_sizes_zero_and_one_are_right_too():
    """Dynamo compiles these anew, so their number is not asked for here."""
    run = torch.compile(lambda x: (torch.softmax(x, -1), x.sum(0), x.t() * 2), backend="accel", dynamic=True)
    for size in ((4, 20), (1, 20), (4, 1), (0, 20), (4, 0), (1, 1), (5, 9)):
        x = torch.randn(*size)
        assert_equal(run(x), (torch.softmax(x, -1), x.sum(0), x.t() * 2), str(size))


def test_two_sizes_that_turn_out_equal():
    serve(lambda a, b: a @ b, [(torch.randn(m, k), torch.randn(k, n)) for m, k, n in ((3, 5, 7), (6, 6, 6), (8, 2, 8))])


def test_inputs_with_other_strides_of_the_same_kind():
    serve(lambda x: x.t() + 1, [(torch.randn(s[1], s[0]).t(),) for s in SIZES])


def test_part_of_a_larger_tensor():
    serve(lambda x: x * 2, [(torch.randn(s[0], s[1] + 3)[:, : s[1]],) for s in SIZES])


def test_broadcast_input():
    serve(lambda x, y: x * y + 1, [(torch.randn(*s), torch.randn(s[1])) for s in SIZES])


def test_integer_argument():
    serve(lambda x, n: x * n + torch.arange(x.shape[0]).unsqueeze(1), [(torch.randn(4, 3), n) for n in (3, 5, 11)])


def test_size_is_an_output():
    serve(lambda x: (x + 1, x.shape[0] * 2, x.shape[1]), [(torch.randn(*s),) for s in SIZES])


# ---- ops on symbolic sizes


FUNCTIONS = {
    "reshape to one dimension": lambda x: x.reshape(-1) * 2,
    "reshape in pairs": lambda x: x.reshape(x.shape[0], -1, 2).sum(-1),
    "reshape by heads": lambda x: x.view(x.shape[0], x.shape[1] // 2, 2).transpose(0, 1).reshape(x.shape[1] // 2, -1),
    "flatten after a transpose": lambda x: x.t().reshape(-1) + 1,
    "unflatten": lambda x: x.unflatten(1, (-1, 2)).amax(1),
    "cat": lambda x: torch.cat([x, x * 2], dim=1),
    "cat with a constant": lambda x: torch.cat([torch.zeros(x.shape[0], 3), x, torch.ones(x.shape[0], 1)], dim=1),
    "cat on the first dimension": lambda x: torch.cat([x[1:], x[:1]]),
    "stack": lambda x: torch.stack([x, x + 1, x - 1], dim=1),
    "slice": lambda x: x[1:, ::2] * 3,
    "slice by size": lambda x: x[: x.shape[0] - 1, x.shape[1] // 2 :] + 1,
    "slice from the end": lambda x: x[-2:, :-1] + 1,
    "halves": lambda x: torch.cat([-x[:, x.shape[1] // 2 :], x[:, : x.shape[1] // 2]], dim=-1),
    "select": lambda x: x[-1] + x[0],
    "arange": lambda x: x + torch.arange(x.shape[1]),
    "arange over rows": lambda x: x * torch.arange(x.shape[0], dtype=torch.float32).unsqueeze(-1),
    "causal mask": lambda x: torch.arange(x.shape[1]).unsqueeze(0) <= torch.arange(x.shape[0]).unsqueeze(1),
    "tril": lambda x: torch.tril(x),
    "expand": lambda x: x.unsqueeze(1).expand(x.shape[0], 3, x.shape[1]) + 1,
    "expand a row": lambda x: x[:1].expand(x.shape[0], -1) * x,
    "full": lambda x: torch.full((x.shape[1], x.shape[0]), 2.5) + x.t(),
    "zeros_like": lambda x: torch.zeros_like(x) + x.sum(),
    "a size as a number": lambda x: x / x.shape[1] + x.shape[0],
    "a size under a root": lambda x: x * x.shape[1] ** -0.5,
    "mean over both": lambda x: (x.mean(), x.mean(0), x.mean(1, keepdim=True)),
    "variance": lambda x: torch.var_mean(x, dim=1),
    "argmax": lambda x: (x.argmax(1), x.argmax(0), x.argmax()),
    "maximum of a row": lambda x: x - x.amax(-1, keepdim=True),
    "flip": lambda x: x.flip(1) + x.flip(0),
    "pad": lambda x: functional.pad(x, (1, 2, 0, 1), value=3.0),
    "split": lambda x: [p * 2 for p in x.split(x.shape[1] // 2, dim=1)],
    "repeat": lambda x: x.repeat(2, 3),
    "embedding": lambda x: functional.embedding((x.abs() * 10).long() % 7, torch.arange(21.0).view(7, 3)),
    "gather": lambda x: torch.gather(x, 1, (torch.arange(x.shape[1]) // 2).expand(x.shape[0], -1)),
    "where": lambda x: torch.where(x > 0, x, torch.tensor(0.5)),
    "two layouts": lambda x: (x + x.t().contiguous().t(), x.t() + 1),
    "matmul": lambda x: (x @ x.t() / 8, x.t() @ x / 8),
    "attention": lambda x: functional.scaled_dot_product_attention(*[x[None, None, :, :8]] * 3, is_causal=True),
    "views out": lambda x: (x.t(), x[1:], x.unsqueeze(0)),
    "contiguous copy": lambda x: x.t().contiguous(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name):
    # Even widths, so that the halves and pairs are whole.
    serve(FUNCTIONS[name], [(torch.randn(*s),) for s in ((4, 20), (3, 34), (9, 128), (130, 66))])


def test_mutated_input():
    run = torch.compile(lambda x: x.mul_(2).add_(1).sum(), backend="accel", dynamic=True)
    for size in SIZES:
        x = torch.randn(*size)
        y = x.clone()
        assert_equal(run(x), y.mul_(2).add_(1).sum(), str(size))
        assert_equal(x, y, str(size))
    assert len(compiled_graphs()) == 1

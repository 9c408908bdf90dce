"""Whole models, small and with random weights: one graph, eager's results, and next to nothing left to PyTorch."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import torch_accel
from ops.compare import assert_layout

pytestmark = [pytest.mark.compiler, pytest.mark.model]

TOLERANCE = 1e-4  # of the largest difference, relative to the largest value
SHARE = 0.97  # of the nodes that must be native or go to a library, where nothing else is said


class Field(nn.Module):
    """Calls a transformers model and returns one field of its output."""

    def __init__(self, model: nn.Module, name: str, **keywords):
        super().__init__()
        self.model, self.name, self.keywords = model, name, keywords

    def forward(self, *args):
        return getattr(self.model(*args, **self.keywords), self.name)


def tokens(batch: int, count: int, vocabulary: int = 500) -> torch.Tensor:
    return torch.randint(0, vocabulary, (batch, count))


def bert():
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=500, hidden_size=96, num_hidden_layers=2, num_attention_heads=4, intermediate_size=200
    )
    return Field(BertModel(config), "last_hidden_state"), (tokens(2, 23),)


def bert_with_mask():
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=500, hidden_size=96, num_hidden_layers=2, num_attention_heads=4, intermediate_size=200
    )
    mask = torch.ones(2, 23, dtype=torch.long)
    mask[1, 11:] = 0
    return Field(BertModel(config), "last_hidden_state"), (tokens(2, 23), mask)


def bert_pooled():
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        vocab_size=500, hidden_size=96, num_hidden_layers=2, num_attention_heads=4, intermediate_size=200
    )
    return Field(BertForSequenceClassification(config), "logits"), (tokens(3, 16),)


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=500, n_positions=64, n_embd=96, n_layer=2, n_head=4)
    return Field(GPT2LMHeadModel(config), "logits", use_cache=False), (tokens(2, 19),)


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=500,
        hidden_size=96,
        intermediate_size=200,
        num_hidden_layers=2,
        num_attention_heads=6,
        num_key_value_heads=2,
    )
    return Field(LlamaForCausalLM(config), "logits", use_cache=False), (tokens(2, 21),)


def vit():
    from transformers import ViTConfig, ViTModel

    config = ViTConfig(
        hidden_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=200,
        image_size=48,
        patch_size=16,
    )
    return Field(ViTModel(config), "last_hidden_state"), (torch.randn(2, 3, 48, 48),)


def resnet():
    from transformers import ResNetConfig, ResNetForImageClassification

    config = ResNetConfig(embedding_size=16, hidden_sizes=[32, 64], depths=[2, 2], num_labels=10)
    return Field(ResNetForImageClassification(config), "logits"), (torch.randn(2, 3, 48, 48),)


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(33, 70), nn.Linear(70, 70), nn.Linear(70, 5)])
        self.norm = nn.LayerNorm(70)

    def forward(self, x):
        x = functional.gelu(self.layers[0](x))
        x = x + torch.tanh(self.layers[1](self.norm(x)))
        return functional.log_softmax(self.layers[2](x), dim=-1)


def mlp():
    return Mlp(), (torch.randn(7, 33),)


# The least share of nodes that are native or the library's. ResNet's pooling falls back.
MODELS = {
    "bert": (bert, SHARE),
    "bert with mask": (bert_with_mask, SHARE),
    "bert with classifier": (bert_pooled, SHARE),
    "gpt2": (gpt2, SHARE),
    "llama": (llama, SHARE),
    "vit": (vit, SHARE),
    "resnet": (resnet, 0.9),
    "mlp": (mlp, 1.0),
}


@pytest.mark.parametrize("name", MODELS)
def test_inference(name):
    make, least = MODELS[name]
    model, arguments = make()
    model.eval()
    with torch.no_grad():
        expected = model(*arguments)
        compiled = torch.compile(model, backend="accel", fullgraph=True)
        result = compiled(*arguments)
        again = compiled(*arguments)
    assert_layout(result, expected, name)
    error = ((result - expected).abs().max() / expected.abs().max()).item()
    assert error < TOLERANCE, f"{name}: relative difference {error:.1e}"
    assert torch.equal(again, result), f"{name}: a second call gives other values"

    reports = torch_accel.reports()
    assert len(reports) == 1, f"{name}: {len(reports)} graphs"
    assert not reports[0].whole_graph_reason
    nodes = reports[0].nodes
    fallbacks = "".join(f"\n  {f['node']}: {f['target']}: {f['reason']}" for f in reports[0].fallbacks)
    print(f"{name}: {nodes}{fallbacks}")
    share = (nodes["native"] + nodes["library"]) / sum(nodes.values())
    assert share >= least, f"{name}: only {share:.1%} of the nodes are native or the library's; fell back:{fallbacks}"
    assert len(reports[0].fallbacks) == nodes["fallback"], "each node that fell back is listed"


def test_equal_layers_are_compiled_once():
    model, arguments = bert()
    with torch.no_grad():
        torch.compile(model.eval(), backend="accel")(*arguments)
    (report,) = torch_accel.reports()
    assert report.kernels_after < report.kernels_before
    assert len(report.kernels) == report.kernels_after
    assert sum(k["launches"] for k in report.kernels) == report.kernels_before


def test_inference_in_inference_mode():
    model, arguments = gpt2()
    model.eval()
    with torch.inference_mode():
        result = torch.compile(model, backend="accel")(*arguments)
        torch.testing.assert_close(result, model(*arguments), rtol=TOLERANCE, atol=TOLERANCE)
        assert result.is_inference()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_low_precision(dtype):
    """No further from the f32 model than twice what eager in that dtype is."""
    model, arguments = bert()
    model.eval()
    with torch.no_grad():
        truth = model(*arguments)
        model.to(dtype)
        expected = model(*arguments)
        result = torch.compile(model, backend="accel", fullgraph=True)(*arguments)
    assert_layout(result, expected, "bert")
    eager, ours = (expected.float() - truth).abs().max(), (result.float() - truth).abs().max()
    assert ours <= 2 * eager + 1e-6, f"differs by {ours:.1e} from f32, eager by {eager:.1e}"


def test_autocast():
    model, arguments = bert()
    model.eval()
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        expected = model(*arguments)
        result = torch.compile(model, backend="accel", fullgraph=True)(*arguments)
    assert_layout(result, expected, "bert")
    torch.testing.assert_close(result.float(), expected.float(), rtol=0.05, atol=0.05)

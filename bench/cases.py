"""What is measured: kernels, models made from configurations with random weights, and a training step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional


@dataclass
class Case:
    """A function and its arguments. `group` is kernel, overhead, model or train."""

    name: str
    group: str
    title: str
    make: Callable[[], tuple[Callable, tuple]]


CASES: dict[str, Case] = {}


def case(name: str, group: str, title: str):
    """Registers a function that returns (callable, arguments)."""

    def register(make):
        CASES[name] = Case(name, group, title, make)
        return make

    return register


def built(name: str) -> tuple[Callable, tuple]:
    """The case's callable and arguments, always with the same random numbers."""
    torch.manual_seed(0)
    return CASES[name].make()


def tokens(count: int, vocabulary: int = 30000, batch: int = 1) -> torch.Tensor:
    return torch.randint(0, vocabulary, (batch, count))


class Field(nn.Module):
    """Calls a transformers model and returns one field of its output."""

    def __init__(self, model: nn.Module, name: str, **keywords):
        super().__init__()
        self.model, self.name, self.keywords = model, name, keywords

    def forward(self, *args):
        return getattr(self.model(*args, **self.keywords), self.name)


def frozen(model: nn.Module) -> nn.Module:
    return model.eval().requires_grad_(False)


@case("softmax", "kernel", "softmax, [4096, 4096]")
def softmax():
    return lambda x: torch.softmax(x, -1), (torch.randn(4096, 4096),)


@case("layer_norm", "kernel", "layer norm, [8192, 1024]")
def layer_norm():
    return frozen(nn.LayerNorm(1024)), (torch.randn(8192, 1024),)


def twenty_ops(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    a = torch.relu(x * 1.5 + y)  # 3
    b = torch.sigmoid(a - 0.25) * x  # 6
    c = torch.maximum(a, b) + torch.abs(y) * 0.5  # 10
    d = torch.where(c > 1.0, c - y, c * 0.75)  # 14
    e = torch.tanh(d) + torch.neg(a) * 0.125  # 18
    return torch.clamp(e, -3.0, 3.0) * 2.0  # 20


@case("pointwise20", "kernel", "chain of 20 pointwise ops, 16 M floats")
def pointwise20():
    return twenty_ops, (torch.randn(1 << 24), torch.randn(1 << 24))


@case("add1", "overhead", "x + 1 on one element")
def add1():
    return lambda x: x + 1, (torch.randn(1),)


@case("mlp", "model", "MLP 512-2048-512, batch 32")
def mlp():
    return frozen(nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512))), (torch.randn(32, 512),)


@case("bert_base", "model", "BERT-base, batch 1, 128 tokens")
def bert_base():
    from transformers import BertConfig, BertModel

    return Field(frozen(BertModel(BertConfig())), "last_hidden_state"), (tokens(128),)


@case("gpt2", "model", "GPT-2 small, batch 1, 128 tokens")
def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    return Field(frozen(GPT2LMHeadModel(GPT2Config())), "logits", use_cache=False), (tokens(128),)


@case("llama", "model", "Llama-style decoder (8 layers of 768, 4 KV heads), batch 1, 128 tokens")
def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=768,
        intermediate_size=2048,
        num_hidden_layers=8,
        num_attention_heads=12,
        num_key_value_heads=4,
        vocab_size=32000,
    )
    return Field(frozen(LlamaForCausalLM(config)), "logits", use_cache=False), (tokens(128),)


@case("vit", "model", "ViT-base, batch 1, 224 x 224")
def vit():
    from transformers import ViTConfig, ViTModel

    return Field(frozen(ViTModel(ViTConfig())), "last_hidden_state"), (torch.randn(1, 3, 224, 224),)


@case("resnet50", "model", "ResNet-50, batch 1, 224 x 224")
def resnet50():
    from transformers import ResNetConfig, ResNetForImageClassification

    return Field(frozen(ResNetForImageClassification(ResNetConfig())), "logits"), (torch.randn(1, 3, 224, 224),)


@case("bert2_train", "train", "BERT with two layers, loss and gradients, batch 4, 64 tokens, no dropout")
def bert2_train():
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(num_hidden_layers=2, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model = BertForSequenceClassification(config).train()

    class Loss(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, ids, labels):
            return functional.cross_entropy(self.model(input_ids=ids).logits, labels)

    return Loss(), (tokens(64, batch=4), torch.randint(0, 2, (4,)))

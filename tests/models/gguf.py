"""A GGUF file with a model of random weights: it says nonsense, but it is loaded and run like any other."""

from __future__ import annotations

import random
import struct
from pathlib import Path

WIDTH, INNER, HEADS, CONTEXT = 32, 64, 2, 512
_ALIGNMENT = 32
_UINT32, _FLOAT32, _STRING, _ARRAY, _INT32 = 4, 6, 8, 9, 5
_UNKNOWN, _CONTROL, _BYTE, _NORMAL = 2, 3, 6, 1
_TEMPLATE = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}assistant:"


def write(path: Path) -> Path:
    """Write the file: version 3 of the format, one layer, an alphabet and all bytes as its words."""
    words = ["<unk>", "<s>", "</s>", *(f"<0x{each:02X}>" for each in range(256)), *map(chr, range(97, 123)), "▁"]
    kinds = [_UNKNOWN, _CONTROL, _CONTROL, *[_BYTE] * 256, *[_NORMAL] * 27]
    facts = [
        _fact("general.architecture", _STRING, "llama"),
        *(
            _fact(f"llama.{name}", _UINT32, value)
            for name, value in {
                "context_length": CONTEXT,
                "embedding_length": WIDTH,
                "block_count": 1,
                "feed_forward_length": INNER,
                "attention.head_count": HEADS,
                "attention.head_count_kv": HEADS,
                "rope.dimension_count": WIDTH // HEADS,
                "vocab_size": len(words),
            }.items()
        ),
        _fact("llama.attention.layer_norm_rms_epsilon", _FLOAT32, 1e-5),
        _fact("tokenizer.ggml.model", _STRING, "llama"),
        _facts("tokenizer.ggml.tokens", _STRING, words),
        _facts("tokenizer.ggml.scores", _FLOAT32, [0.0] * len(words)),
        _facts("tokenizer.ggml.token_type", _INT32, kinds),
        _fact("tokenizer.ggml.bos_token_id", _UINT32, 1),
        _fact("tokenizer.ggml.eos_token_id", _UINT32, 2),
        _fact("tokenizer.chat_template", _STRING, _TEMPLATE),
    ]
    shapes = {
        "token_embd.weight": (WIDTH, len(words)),
        "output.weight": (WIDTH, len(words)),
        "output_norm.weight": (WIDTH,),
        "blk.0.attn_norm.weight": (WIDTH,),
        "blk.0.ffn_norm.weight": (WIDTH,),
        **{f"blk.0.attn_{each}.weight": (WIDTH, WIDTH) for each in ("q", "k", "v", "output")},
        "blk.0.ffn_gate.weight": (WIDTH, INNER),
        "blk.0.ffn_up.weight": (WIDTH, INNER),
        "blk.0.ffn_down.weight": (INNER, WIDTH),
    }
    tensors, numbers = _tensors(shapes)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(shapes), len(facts)) + b"".join(facts) + tensors
    path.write_bytes(head + bytes(-len(head) % _ALIGNMENT) + numbers)
    return path


def _tensors(shapes: dict[str, tuple[int, ...]]) -> tuple[bytes, bytes]:
    chance = random.Random(1)
    told, numbers = b"", b""
    for name, shape in shapes.items():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        told += _text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, len(numbers))
        values = [1.0] * count if len(shape) == 1 else [chance.gauss(0, 0.3) for _ in range(count)]
        numbers += struct.pack(f"<{count}f", *values)
        numbers += bytes(-len(numbers) % _ALIGNMENT)
    return told, numbers


def _fact(name: str, kind: int, value: object) -> bytes:
    return _text(name) + struct.pack("<I", kind) + _value(kind, value)


def _facts(name: str, kind: int, values: list[object] | list[str] | list[float] | list[int]) -> bytes:
    body = b"".join(_value(kind, each) for each in values)
    return _text(name) + struct.pack("<IIQ", _ARRAY, kind, len(values)) + body


def _value(kind: int, value: object) -> bytes:
    if kind == _STRING:
        return _text(str(value))
    return struct.pack({_UINT32: "<I", _INT32: "<i", _FLOAT32: "<f"}[kind], value)


def _text(text: str) -> bytes:
    coded = text.encode()
    return struct.pack("<Q", len(coded)) + coded

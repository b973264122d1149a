"""Detects tracing, compiling and exporting."""

import torch


def is_traced() -> bool:
    """Whether a tracer, a compiler or an exporter is recording what runs.

    Code that reads values, or branches on them, does not belong in a recording.
    """
    if torch.jit.is_tracing():
        return True
    # torch 2.1 has it under the compiler's own name
    compiler = getattr(torch, 'compiler', None)
    is_compiling = getattr(compiler, 'is_compiling', None) or torch._dynamo.is_compiling
    return is_compiling()

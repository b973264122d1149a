"""Whether operations are being recorded rather than run."""

import torch


def is_traced() -> bool:
    """Whether a tracer, a compiler or an exporter is recording what runs.

    What looks at values, or picks a way by them, has no place in a recording.
    """
    if torch.jit.is_tracing():
        return True
    # torch 2.1 has it under the compiler's own name
    compiler = getattr(torch, 'compiler', None)
    is_compiling = getattr(compiler, 'is_compiling', None) or torch._dynamo.is_compiling
    return is_compiling()

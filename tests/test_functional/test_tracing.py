"""Where a branch may depend on the values of a tensor."""

from types import SimpleNamespace

import torch

from mmlinattn.functional.tracing import can_read_values


def test_values_can_be_read_outside_of_recordings(monkeypatch):
    seen = []

    def look(x):
        seen.append(can_read_values(x))
        return 2 * x

    x = torch.ones(2, 3)
    look(x)
    torch.func.vmap(look)(x)
    torch.jit.trace(look, x, check_trace=False)
    look(x.to('meta'))
    assert seen == [True, False, False, False]
    on_gpu = SimpleNamespace(is_meta=False, is_cuda=True)
    for captures in (True, False):
        monkeypatch.setattr(torch.cuda, 'is_current_stream_capturing', [captures].pop)
        assert can_read_values(on_gpu) is not captures

import torch
from equations import tokens

from mmlinattn.analysis import hc_proportion, token_similarity
from mmlinattn.analysis import similarity as module


def test_proportion_in_the_fourier_domain():
    x = tokens(2, 3, 7, 5)
    power = torch.fft.fft(x, dim=-2, norm='ortho').abs().square().sum(-1)
    high, dc = power[..., 1:].sum(-1), power[..., 0]
    torch.testing.assert_close(hc_proportion(x), (high / (high + dc)).sqrt())
    torch.testing.assert_close(hc_proportion(x, over_dc=True), (high / dc).sqrt())
    one = x[..., :1, :]  # its own mean
    assert not hc_proportion(one).any()
    assert hc_proportion(torch.cat((one, -one), -2), over_dc=True).isinf().all()


def test_similarity_pair_by_pair(monkeypatch):
    x = tokens(2, 9, 3)
    x[0, 4] = 0  # a zero token is like none
    rows, columns = torch.tril_indices(9, 9, -1)
    expected = torch.cosine_similarity(x[:, rows], x[:, columns], -1).abs().mean(1)
    torch.testing.assert_close(token_similarity(x), expected)
    monkeypatch.setattr(module, '_ENTRIES', 20)  # in pieces of two tokens
    torch.testing.assert_close(token_similarity(x), expected)

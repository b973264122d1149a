import pytest
import torch

from mmlinattn.analysis import attention_spectrum, frequency_gain

pytestmark = pytest.mark.modern


def circulant(column):
    """Row i is the column, shifted by i: A_ij = c_(i - j)."""
    num = len(column)
    index = torch.arange(num)
    return column[(index[:, None] - index) % num]


def test_circulant_by_hand():
    """c = (1/2, 1/4, 0, 1/4) has the transform (1, 1/2, 0, 1/2)."""
    attn = circulant(torch.tensor([0.5, 0.25, 0, 0.25], dtype=torch.float64))
    gains = torch.tensor([1, 0.5, 0, 0.5], dtype=torch.float64)
    torch.testing.assert_close(attention_spectrum(attn), gains.diag())
    torch.testing.assert_close(frequency_gain(attn), gains)


def test_any_matrix():
    attn = torch.rand(2, 3, 7, 7, dtype=torch.float64)
    index = torch.arange(7, dtype=torch.float64)
    basis = torch.exp(-2j * torch.pi / 7 * index[:, None] * index) / 7**0.5
    expected = (basis @ attn.cdouble() @ basis.conj().T).abs()
    torch.testing.assert_close(attention_spectrum(attn), expected)
    torch.testing.assert_close(frequency_gain(attn), expected.norm(dim=-1))
    of_columns = frequency_gain(attn, columns=True)
    torch.testing.assert_close(of_columns, expected.norm(dim=-2))


def test_rows_are_what_leaves():
    """All queries look at one key: of any wave a constant leaves, which is frequency 0;
    every wave enters."""
    attn = torch.eye(5)[:1].expand(5, 5)
    rows = torch.tensor([5**0.5, 0, 0, 0, 0])
    torch.testing.assert_close(frequency_gain(attn), rows, atol=1e-6, rtol=0)
    torch.testing.assert_close(frequency_gain(attn, columns=True), torch.ones(5))

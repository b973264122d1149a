"""Legend: B batch, (H, W) map, N = H * W tokens, C channels."""

import pytest
import torch

from mmlinattn.functional import elfatt_attention


def paper_head(q, k, v, matrix, omega, inside):
    """One head (B, N, d) of attention with a whole matrix; ``inside`` is 1 where a
    query sees a key, and has the number of keys as its sums."""
    weights = matrix(q, k)
    low = inside / inside.sum(-1, keepdim=True)
    return (low + (1 + omega) * (weights - low)) @ v


@pytest.mark.parametrize('with_omega', (False, True))
@pytest.mark.parametrize(
    'dims, heads',
    (((8, 4), (2, 2)), ((6, 6), (1, 3)), ((12, 0), (3, 0)), ((0, 12), (0, 3))),
)
def test_matches_the_paper_head_by_head(dims, heads, with_omega):
    """The map is 3 x 5, blocks are 2 x 2, and padded tokens are masked."""
    q, k, v = torch.randn(3, 2, 15, 12, dtype=torch.float64)
    omega = torch.linspace(-0.5, 2, sum(heads), dtype=torch.float64)
    block = (torch.arange(15) // 5 // 2) * 3 + torch.arange(15) % 5 // 2
    together = (block[:, None] == block).double()

    def efficient(q, k):
        return q.softmax(-1) @ k.softmax(-2).mT

    def local(q, k):
        return (q @ k.mT / q.size(-1) ** 0.5 + together.log()).softmax(-1)

    halves = ((efficient, torch.ones(15, 15).double()), (local, together))
    matrices = [half for half, n in zip(halves, heads) for _ in range(n)]
    sizes = [d // n for d, n in zip(dims, heads) for _ in range(n)]
    expected = torch.cat(
        [
            paper_head(*qkv, matrix, factor if with_omega else 0, inside)
            for *qkv, (matrix, inside), factor in zip(
                *(x.split(sizes, -1) for x in (q, k, v)), matrices, omega
            )
        ],
        -1,
    )
    options = dict(mask_padding=True, omega=omega if with_omega else None)
    result = elfatt_attention(q, k, v, (3, 5), 4, dims, heads, **options)
    torch.testing.assert_close(result, expected)

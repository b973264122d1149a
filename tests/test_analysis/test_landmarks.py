import pytest
import torch

from mmlinattn.analysis import landmark_weights, nystroem_diagonal, watch
from mmlinattn.functional import gaussian_kernel
from mmlinattn.models import LinearSOFTPlusPlus, SOFTPlusPlus

ARCH = dict(embed_dims=[8, 16, 24, 32], depths=[1, 1, 1, 1], num_heads=[1, 2, 3, 4])


def diagonals(model, x, measure=nystroem_diagonal):
    """By attention, its weights of tokens for themselves, and the call."""
    measured = {}

    def look(call):
        if hasattr(call.module, 'sampler'):
            measured[call.name] = measure(call), call

    with torch.no_grad(), watch(model, look):
        model(x)
    return measured


@pytest.mark.parametrize('sampler', ('conv', 'pool'))
def test_diagonal_by_its_equation(sampler):
    model = LinearSOFTPlusPlus(ARCH, sampler=sampler).double().eval()
    measured = diagonals(model, torch.randn(2, 3, 64, 96, dtype=torch.float64))
    assert len(measured) == 3  # the last stage has softmax attention
    for diagonal, call in measured.values():
        q = call.module.split_heads(call.q) / call.module.head_dims**0.25
        landmarks = call.module.sampler(q, call.hw_shape)
        a, p = gaussian_kernel(landmarks), gaussian_kernel(landmarks, q)
        m = a.size(-1)
        a = a + call.module.ridge * m * torch.eye(m, dtype=a.dtype)
        kernel = p.mT @ torch.linalg.inv(a) @ p
        torch.testing.assert_close(diagonal, kernel.diagonal(dim1=-2, dim2=-1))
        assert diagonal.max() <= 1


def test_tokens_that_are_landmarks_are_known():
    model = LinearSOFTPlusPlus(ARCH, sampler='pool', num_landmarks=64).eval()
    # as many landmarks as tokens: 8 x 8 in the first stage
    diagonal, _ = diagonals(model, torch.randn(1, 3, 32, 32))['stages.0.blocks.0.attn']
    assert diagonal.min() > 0.9


def test_other_attentions_are_refused():
    with pytest.raises(ValueError, match='stages.0.blocks.0.attn is no attention of'):
        diagonals(SOFTPlusPlus(ARCH), torch.randn(1, 3, 64, 64))


@pytest.mark.parametrize('kind', (SOFTPlusPlus, LinearSOFTPlusPlus))
def test_weights_of_landmarks_by_their_equation(kind):
    """Those of means are the landmarks' of a model that has means."""
    images = torch.randn(2, 3, 64, 96, dtype=torch.float64)
    model = kind(ARCH).double().eval()
    for weights, call in diagonals(model, images, landmark_weights).values():
        q = call.module.split_heads(call.q) / call.module.head_dims**0.25
        kernel = gaussian_kernel(call.module.sampler(q, call.hw_shape), q)
        expected = kernel / kernel.sum(-1, keepdim=True)
        torch.testing.assert_close(weights, expected)
    pooled = kind(ARCH, sampler='pool').double().eval()
    for weights, call in diagonals(pooled, images, landmark_weights).values():
        torch.testing.assert_close(weights, landmark_weights(call, averages=True))


def test_attentions_without_landmarks_are_refused():
    model = LinearSOFTPlusPlus(ARCH)
    refused = pytest.raises(ValueError, match='it is SoftmaxAttention, not')
    with refused, watch(model, landmark_weights):
        model(torch.randn(1, 3, 64, 64))

"""Weights, images and recorded outputs of the official SOFT code, in miniature.

``soft_keys.json`` has names and shapes of official state dicts: of ``soft_tiny``
(``soft_norm_tiny`` has the same ones) and of the miniature below. ``soft_outputs.npz``
has the official outputs of the miniature with :func:`weights` and :func:`image`: maps
of the four stages, the last one after the final norm and without class token, and
logits. Both were recorded on a CPU, torch 2.1.2, by running this file on a checkout
of github.com/fudan-zvg/SOFT at d3febc3:

    python soft_fixture.py CHECKOUT

The official code runs unchanged, except for parts that a CPU lacks: its CUDA extension
(its own torch kernel is chosen), ``Tensor.cuda``, and the wrapper of its Newton
iteration that only takes CUDA tensors. ``SoftmaxFreeNormAttentionKernel`` calls
``super`` by a name that does not exist; here it does. The official step size is one
for the whole batch, ours is one per matrix, which differs where 20 steps don't
converge: the weights keep the kernel matrices well-conditioned.
"""

import sys
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))

import recording

ARCH = dict(embed_dims=[8, 16, 24, 32], depths=[1, 1, 2, 1], num_heads=[1, 2, 3, 4])
NUM_CLASSES = 5
VARIANTS = ('soft', 'softpp')
IMAGES = ('noise', 'smooth')


def scale(key, shape, value):
    if key.endswith('num_batches_tracked'):
        return np.int64(100)
    if key.endswith('running_var'):
        return np.exp(0.1 * value)
    if not key.endswith('weight') or not shape:
        return 0.1 * value
    if len(shape) > 1:
        return value / np.sqrt(np.prod(shape[1:]))
    value = 1 + 0.1 * value
    if '.Qnorm_act.' in key:
        # spreads the landmarks: off-diagonal kernel values get small
        value = value * (2.5 if key.startswith('block3') else 1.5)
    return value


def weights(seed=0):
    """Official state dict of the miniature, the same for both variants."""
    return recording.seeded_weights(
        recording.read_shapes('soft')['miniature'], seed, scale
    )


def image(kind, shape=(90, 150)):
    """One normalized image, (1, 3, H, W): 'noise', or 'smooth' with a flat half."""
    if kind == 'noise':
        return recording.noise(1, 3, *shape)
    y, x = np.mgrid[: shape[0], : shape[1]] / 100.0
    waves = [np.sin(5 * x + 3 * y + phase) for phase in (0.0, 1.0, 2.0)]
    value = np.where(x < shape[1] / 200.0, 0.5, waves)[None]
    return torch.from_numpy(value).float()


def outputs(prefix=''):
    """Recorded tensors by variant, kind of image and name."""
    return recording.read_outputs('soft', prefix)


def import_official(checkout):
    """The official modules of layers and models, able to run on a CPU."""
    recording.stub('SOFT._C')
    recording.stub_timm()
    sys.path.insert(0, str(checkout))
    from models import softmax_free_transformer as layers
    from models import softmax_free_vision_transformer as models
    from SOFT.kernel.inverse import newton_inv

    torch.Tensor.cuda = lambda tensor: tensor
    layers.newton_inverse_kernel = newton_inv
    layers.SoftmaxFreeSymNormAttentionKernel = layers.SoftmaxFreeNormAttentionKernel
    return models


@torch.no_grad()
def run(model, x):
    """Stages and logits of an official model."""
    maps = []
    for name in ('patch_embed2', 'patch_embed3', 'patch_embed4'):
        getattr(model, name).register_forward_pre_hook(
            lambda module, args: maps.append(args[0])
        )
    sizes = []
    model.patch_embed4.register_forward_hook(
        lambda module, args, out: sizes.append(out[1])
    )
    tokens = []
    model.norm.register_forward_hook(lambda module, args, out: tokens.append(out))
    logits = model(x)
    last = tokens[0][:, 1:].transpose(1, 2).unflatten(-1, sizes[0])
    return {**{f'stage{i}': m for i, m in enumerate(maps + [last])}, 'logits': logits}


def main(checkout):
    models = import_official(checkout)
    miniatures = {
        variant: make(
            **ARCH,
            patch_size=4,
            num_classes=NUM_CLASSES,
            qkv_bias=True,
            norm_layer=lambda dims: torch.nn.LayerNorm(dims, eps=1e-6),
            kernel_method='torch',
        ).eval()
        for variant, make in zip(
            VARIANTS,
            (
                models.SoftmaxFreeVisionTransformer,
                models.SoftmaxFreeNormVisionTransformer,
            ),
        )
    }
    tiny = models.soft_tiny(kernel_method='torch')
    recording.write_shapes('soft', dict(soft_tiny=tiny, miniature=miniatures['soft']))
    for variant, model in miniatures.items():
        model.load_state_dict(weights())
        for kind in IMAGES:
            recorded = run(model, image(kind)).items()
            recording.write_outputs(
                'soft', {f'{variant}_{kind}_{k}': x for k, x in recorded}
            )


if __name__ == '__main__':
    main(sys.argv[1])

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

import numpy as np
import recording
import torch

ARCH = dict(embed_dims=[8, 16, 24, 32], depths=[1, 1, 2, 1], num_heads=[1, 2, 3, 4])
NUM_CLASSES = 5


def scale(key, shape, value):
    if len(shape) > 1 and not key.endswith('weight'):
        return 0.1 * value
    value = recording.usual(key, shape, value)
    if '.Qnorm_act.' in key and key.endswith('weight') and len(shape) == 1:
        # spreads the landmarks: off-diagonal kernel values get small
        value = value * (2.5 if key.startswith('block3') else 1.5)
    return value


RECORDING = recording.Recording('soft', scale)


def weights():
    """Official state dict of the miniature, the same for both variants."""
    return RECORDING.weights('miniature', seed=0)


def image(kind, shape=(90, 150)):
    """One normalized image, (1, 3, H, W): 'noise', or 'smooth' with a flat half."""
    if kind == 'noise':
        return recording.noise(1, 3, *shape)
    y, x = np.mgrid[: shape[0], : shape[1]] / 100.0
    waves = [np.sin(5 * x + 3 * y + phase) for phase in (0.0, 1.0, 2.0)]
    value = np.where(x < shape[1] / 200.0, 0.5, waves)[None]
    return torch.from_numpy(value).float()


def outputs(variant, kind):
    """Recorded tensors of a variant, 'soft' or 'softpp', and a kind of image."""
    return RECORDING.outputs(f'{variant}_{kind}', mark='_')


def import_official(checkout):
    """The official modules of models, able to run on a CPU."""
    recording.stand_in('SOFT._C')
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
    maps, tokens = [], []
    for i in (2, 3, 4):
        getattr(model, f'patch_embed{i}').register_forward_pre_hook(
            lambda module, args: maps.append(args[0])
        )
    for module in (model.patch_embed4, model.norm):
        module.register_forward_hook(lambda module, args, out: tokens.append(out))
    logits = model(x)
    (_, size, *_), last = tokens
    maps.append(last[:, 1:].transpose(1, 2).unflatten(-1, size))
    return {**{f'stage{i}': x for i, x in enumerate(maps)}, 'logits': logits}


def main(checkout):
    models = import_official(checkout)
    options = dict(
        ARCH,
        patch_size=4,
        num_classes=NUM_CLASSES,
        qkv_bias=True,
        norm_layer=lambda dims: torch.nn.LayerNorm(dims, eps=1e-6),
        kernel_method='torch',
    )
    soft = models.SoftmaxFreeVisionTransformer(**options)
    softpp = models.SoftmaxFreeNormVisionTransformer(**options)
    tiny = models.soft_tiny(kernel_method='torch')
    RECORDING.write_shapes(dict(soft_tiny=tiny, miniature=soft))
    for variant, model in dict(soft=soft, softpp=softpp).items():
        model.eval().load_state_dict(weights())
        for kind in ('noise', 'smooth'):
            RECORDING.write_outputs(
                f'{variant}_{kind}', run(model, image(kind)), mark='_'
            )


if __name__ == '__main__':
    main(sys.argv[1])

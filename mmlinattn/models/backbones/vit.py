"""Vision Transformer."""

from typing import Optional, Union

from typing_extensions import Unpack

from mmlinattn.registry import MODELS

from .isotropic import IsotropicOptions, IsotropicTransformer


@MODELS.register_module()
class VisionTransformer(IsotropicTransformer):
    """Vision Transformer as trained by DeiT (*Training data-efficient image
    transformers & distillation through attention*, arXiv 2012.12877).

    Args:
        arch (str | dict): 'deit-small', 'deit-base', or a dict with
            ``embed_dims``, ``num_layers`` and ``num_heads``.
        num_layers (int, optional): A depth instead of the architecture's.
        attention (dict): Config of the attention.
        **kwargs: See :class:`~.isotropic.IsotropicTransformer`.
    """

    arch_zoo = {
        'deit-small': dict(embed_dims=384, num_layers=12, num_heads=6),
        'deit-base': dict(embed_dims=768, num_layers=12, num_heads=12),
    }

    def __init__(
        self,
        arch: Union[str, dict] = 'deit-small',
        num_layers: Optional[int] = None,
        attention: dict = dict(type='SoftmaxAttention'),
        **kwargs: Unpack[IsotropicOptions],
    ) -> None:
        arch = self.resolve_arch(arch)
        if num_layers is not None:
            arch['num_layers'] = num_layers
        super().__init__(arch, attention, **kwargs)

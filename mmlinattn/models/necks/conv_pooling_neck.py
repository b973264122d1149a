"""The neck of classifiers whose last norm is a BatchNorm."""

from collections.abc import Sequence
from typing import Optional, Union

from torch import Tensor, nn

from mmlinattn.parts import build_activation, register

from ..layers.embeddings import conv_norm_act
from ..layers.initialization import BaseModule


@register
class ConvPoolingNeck(BaseModule):
    """A 1 x 1 convolution, BatchNorm and SiLU of the last map, and the mean of it, as
    in RAVLT and MAViT; in EfficientViT, a hidden layer too.

    Args:
        in_channels (int): Channels of the map.
        out_channels (int, optional): Channels of the mean; None leaves out convolution
            and activation, as in H-ViT^3.
        norm_cfg (dict): Norm layer.
        act_cfg (dict): Activation layer.
        bias (bool): Bias of the convolution.
        hidden_channels (int, optional): Adds a linear layer without bias, from the mean
            to these channels, a LayerNorm with the epsilon of ``norm_cfg``, and an
            activation. Default: none.
        init_cfg (dict | list[dict], optional): Initial values, as in MMEngine.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: Optional[int] = 1024,
        norm_cfg: Optional[dict] = dict(type='BN'),
        act_cfg: Optional[dict] = dict(type='SiLU'),
        init_cfg: Union[dict, list, None] = dict(
            type='TruncNormal', layer=['Conv2d', 'Linear'], std=0.02, bias=0.0
        ),
        bias: bool = True,
        hidden_channels: Optional[int] = None,
    ) -> None:
        super().__init__(init_cfg)
        self.out_channels = out_channels or in_channels
        self.layer = conv_norm_act(
            in_channels, self.out_channels, norm_cfg, act_cfg, kernel_size=1, bias=bias
        )
        if out_channels is None:
            self.layer[0] = self.layer[2] = nn.Identity()
        self.hidden: nn.Module = nn.Identity()
        if hidden_channels is not None:
            self.hidden = nn.Sequential(
                nn.Linear(self.out_channels, hidden_channels, bias=False),
                nn.LayerNorm(hidden_channels, eps=(norm_cfg or {}).get('eps', 1e-5)),
                build_activation(act_cfg) if act_cfg else nn.Identity(),
            )
            self.out_channels = hidden_channels

    def forward(self, x: Sequence[Tensor]) -> tuple[Tensor]:
        """Pool the last map (B, C, H, W) of a backbone to (B, C') in a tuple."""
        return (self.hidden(self.layer(x[-1]).mean((2, 3))),)

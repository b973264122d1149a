"""The neck of RAVLT's classifiers."""

from mmengine.model import BaseModule

from mmlinattn.registry import MODELS

from ..layers.embeddings import conv_norm_act


@MODELS.register_module()
class ConvPoolingNeck(BaseModule):
    """A 1 x 1 convolution, BatchNorm and SiLU of the last map, and the mean of it.

    Args:
        in_channels (int): Channels of the map.
        out_channels (int): Channels of the mean.
        norm_cfg (dict): Norm layer.
        act_cfg (dict): Activation layer.
        init_cfg (dict | list[dict], optional): Initialization of MMEngine.
    """

    def __init__(
        self,
        in_channels,
        out_channels=1024,
        norm_cfg=dict(type='BN'),
        act_cfg=dict(type='SiLU'),
        init_cfg=dict(type='TruncNormal', layer='Conv2d', std=0.02, bias=0.0),
    ):
        super().__init__(init_cfg)
        self.layer = conv_norm_act(
            in_channels, out_channels, norm_cfg, act_cfg, kernel_size=1
        )

    def forward(self, x):
        """Maps of a backbone, the last one (B, C, H, W), to (B, C') in a tuple."""
        return (self.layer(x[-1]).mean((2, 3)),)

"""Four detectors of torchvision with a backbone of ours."""

import timm
import torch
from torchvision.models import detection
from torchvision.ops.feature_pyramid_network import (
    FeaturePyramidNetwork,
    LastLevelMaxPool,
    LastLevelP6P7,
)

import mmlinattn.timm  # noqa: F401


class Backbone(torch.nn.Module):
    """A backbone by its name in timm, and a feature pyramid of five maps.

    Strides are 4 to 64, or 8 to 128 for detectors of one stage.
    """

    out_channels = 256

    def __init__(self, name, one_stage=False, **options):
        super().__init__()
        indices = (1, 2, 3) if one_stage else (0, 1, 2, 3)
        options.update(features_only=True, out_indices=indices)
        self.body = timm.create_model(name, **options)
        channels = self.body.feature_info.channels()
        extra = LastLevelP6P7(256, 256) if one_stage else LastLevelMaxPool()
        self.fpn = FeaturePyramidNetwork(channels, 256, extra)

    def forward(self, x):
        return self.fpn({str(i): x for i, x in enumerate(self.body(x))})


def main(name='softpp_tiny_linear'):
    torch.manual_seed(0)
    photo, box = torch.rand(3, 100, 150), torch.tensor([[20.0, 30, 80, 90]])
    mask = torch.zeros(1, 100, 150, dtype=torch.uint8)
    mask[:, 30:90, 20:80] = 1
    target = dict(boxes=box, labels=torch.tensor([1]), masks=mask)
    for kind in ('FasterRCNN', 'MaskRCNN', 'RetinaNet', 'FCOS'):
        backbone = Backbone(name, one_stage=kind in ('RetinaNet', 'FCOS'))
        # classes of the data and the background
        build = getattr(detection, kind)
        detector = build(backbone, num_classes=3 + 1, min_size=128)
        losses = detector([photo, photo], [target, target])
        sum(losses.values()).backward()
        predictions = detector.eval()([photo])[0]
        print(kind, *sorted(losses), *sorted(predictions))


if __name__ == '__main__':
    main()

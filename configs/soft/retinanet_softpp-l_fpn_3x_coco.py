"""RetinaNet with SOFT++-Large on COCO, 3x (36 epochs, multi-scale).

Paper: 98M parameters.

    python tools/train.py configs/soft/retinanet_softpp-l_fpn_3x_coco.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = './retinanet_softpp-t_fpn_3x_coco.py'

model = dict(backbone=dict(arch='large'), neck=dict(in_channels=[128, 256, 512, 1024]))

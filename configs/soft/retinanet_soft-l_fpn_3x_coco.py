"""RetinaNet with SOFT-Large (normalized) on COCO, 3x (36 epochs, multi-scale). Paper: 74M parameters.
python tools/train.py configs/soft/retinanet_soft-l_fpn_3x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/retinanet_soft-t.py', '../_base_/settings/coco-detection_3x.py']
model = dict(backbone=dict(arch='large'))

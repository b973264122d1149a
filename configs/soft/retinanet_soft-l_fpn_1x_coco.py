"""RetinaNet with SOFT-Large (normalized) on COCO, 1x (12 epochs).
arXiv preprint of SOFT++: box AP 45.3, 74M parameters.
    python tools/train.py configs/soft/retinanet_soft-l_fpn_1x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/retinanet_soft-t.py', '../_base_/settings/coco-detection_1x.py']
model = dict(backbone=dict(arch='large'))

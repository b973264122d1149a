"""RetinaNet with SOFT-Small (normalized) on COCO, 1x (12 epochs).
arXiv preprint of SOFT++: box AP 42.8, 34M parameters.
    python tools/train.py configs/soft/retinanet_soft-s_fpn_1x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/retinanet_soft-t.py', '../_base_/settings/coco-detection_1x.py']
model = dict(backbone=dict(arch='small'))

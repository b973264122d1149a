"""RetinaNet with SOFT-Medium (normalized) on COCO, 1x (12 epochs).
arXiv preprint of SOFT++: box AP 44.3, 55M parameters.
    python tools/train.py configs/soft/retinanet_soft-m_fpn_1x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/retinanet_soft-m.py', '../_base_/settings/coco-detection_1x.py']

"""RetinaNet with SOFT++-Medium on COCO, 3x (36 epochs, multi-scale). Paper: 59M parameters.
python tools/train.py configs/soft/retinanet_softpp-m_fpn_3x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/retinanet_softpp-s.py', '../_base_/settings/coco-detection_3x.py']
model = dict(backbone=dict(arch='medium'))

"""RetinaNet with Swin-T on COCO, 3x (36 epochs, multi-scale).
python tools/train.py configs/attention_zoo/retinanet_swin-t-local_fpn_3x_coco.py
"""

_base_ = ['../_base_/models/retinanet_swin-t.py', '../_base_/settings/coco-detection_swin-3x.py']
model = dict(backbone=dict(attention='local'))

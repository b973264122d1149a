"""RetinaNet with Swin-T on COCO, 1x (12 epochs).
python tools/train.py configs/attention_zoo/retinanet_swin-t-local_fpn_1x_coco.py
"""

_base_ = ['../_base_/models/retinanet_swin-t.py', '../_base_/settings/coco-detection_swin-1x.py']
model = dict(backbone=dict(attention='local'))

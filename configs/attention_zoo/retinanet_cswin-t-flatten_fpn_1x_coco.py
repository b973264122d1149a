"""RetinaNet with FLatten-CSWin-T on COCO, 1x (12 epochs).
python tools/train.py configs/attention_zoo/retinanet_cswin-t-flatten_fpn_1x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/retinanet_cswin-t.py', '../_base_/settings/coco-detection_swin-1x.py']
model = dict(backbone=dict(attention='flatten'))

"""RetinaNet with FLatten-CSWin-T on COCO, 1x (12 epochs).
python tools/train.py configs/attention_zoo/retinanet_cswin-t-flatten_fpn_1x_coco.py
"""

_base_ = ['../_base_/models/retinanet_cswin-t-flatten.py', '../_base_/settings/coco-detection_swin-1x.py']

"""RetinaNet with FLatten-CSWin-T on COCO, 3x (36 epochs, multi-scale).
python tools/train.py configs/attention_zoo/retinanet_cswin-t-flatten_fpn_3x_coco.py
"""

_base_ = ['../_base_/models/retinanet_cswin-t-flatten.py', '../_base_/settings/coco-detection_swin-3x.py']

"""RetinaNet with FLatten-Swin-T on COCO, 3x (36 epochs, multi-scale).
python tools/train.py configs/attention_zoo/retinanet_swin-t-flatten_fpn_3x_coco.py
"""

_base_ = ['../_base_/models/retinanet_swin-t-flatten.py', '../_base_/settings/coco-detection_swin-3x.py']

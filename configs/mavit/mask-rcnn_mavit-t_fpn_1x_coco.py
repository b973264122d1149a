"""Mask R-CNN with MAViT-T on COCO, 1x (12 epochs, mixed precision).
python tools/train.py configs/mavit/mask-rcnn_mavit-t_fpn_1x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_mavit-t.py', '../_base_/settings/coco-instance_ravlt-1x.py']

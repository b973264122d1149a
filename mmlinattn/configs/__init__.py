"""Configs in MMEngine's new style, one of each family.

They say what their namesakes in the folder configs say. A config of one's own inherits
from them by import:

    from mmengine.config import read_base

    with read_base():
        from mmlinattn.configs.soft.mask_rcnn_softpp_t_fpn_1x_coco import *
"""

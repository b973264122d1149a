"""Mask2Former of MMDetection, for instances, with 100 queries. Still to be given: backbone and
panoptic_head.in_channels."""

pretrained = None
__theirs = __import__('mmlinattn.configs').configs.library_config(
    'mmdet::mask2former/mask2former_r50_8xb2-lsj-50e_coco.py'
)
model = __theirs.model
model.backbone = dict()

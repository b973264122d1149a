"""DINO of MMDetection, on four scales. Still to be given: backbone and neck.in_channels."""

pretrained = None
__theirs = __import__('mmlinattn.configs').configs.library_config('mmdet::dino/dino-4scale_r50_8xb2-12e_coco.py')
model = __theirs.model
model.backbone = dict(out_indices=(1, 2, 3))

"""EfficientViT-B1 on ImageNet-1k, 320 epochs at 224 x 224.
Authors' README: top-1 79.390, 9.1M parameters, 0.52 GFLOPs.
    python tools/train.py configs/efficientvit/efficientvit-b1_in1k.py
"""

_base_ = ['../_base_/models/classifier_efficientvit-b1.py', '../_base_/settings/in1k-224_efficientvit-320e.py']
# the authors test B1 on the middle 95% of a side
test_pipeline = _base_.test_pipeline
test_pipeline[1].update(scale=236)
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader

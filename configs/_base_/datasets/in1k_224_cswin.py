"""ImageNet-1k at 224 x 224; tested on the center of images whose shorter side is 248, a crop of 0.9, as CSWin is."""

_base_ = './in1k_224.py'

test_pipeline = _base_.test_pipeline
test_pipeline[1].update(scale=248)
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader

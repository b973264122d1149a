"""EfficientViT-B3's training: stronger RandAugment; the rest as in in1k-224_efficientvit-320e.py."""

_base_ = './in1k-224_efficientvit-320e.py'

train_pipeline = _base_.train_pipeline
train_pipeline[3].update(num_policies=2, magnitude_level=6)
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))

"""The same training at 384 x 384: see in1k-224_efficientvit-l-320e.py."""

_base_ = './in1k-224_efficientvit-l-320e.py'

train_pipeline = _base_.train_pipeline
train_pipeline[1].update(scale=384)
test_pipeline = _base_.test_pipeline
test_pipeline[1].update(scale=384)
test_pipeline[2].update(crop_size=384)
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader

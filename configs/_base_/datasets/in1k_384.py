"""ImageNet-1k at 384 x 384, augmented as at 224 x 224; the whole shorter side is tested. Batch: 8 GPUs x 32."""

_base_ = './in1k_224.py'

train_pipeline = _base_.train_pipeline
train_pipeline[1].update(scale=384)
test_pipeline = _base_.test_pipeline
test_pipeline[1].update(scale=384)
test_pipeline[2].update(crop_size=384)
train_dataloader = dict(batch_size=32, dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(batch_size=32, dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader

"""ImageNet-1k at 224 x 224 with RandAugment and random erasing, as DeiT and Swin train. Batch: 8 GPUs x 128."""

_base_ = 'mmpretrain::_base_/datasets/imagenet_bs64_swin_224.py'

train_dataloader = dict(
    batch_size=128, pin_memory=True, persistent_workers=True, collate_fn=dict(type='default_collate')
)
val_dataloader = train_dataloader
test_dataloader = train_dataloader

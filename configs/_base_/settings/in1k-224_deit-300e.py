_base_ = ['../datasets/in1k_224.py', '../schedules/in1k_300e_deit.py', '../cls_runtime.py']
train_dataloader = dict(sampler=dict(type='RepeatAugSampler'))

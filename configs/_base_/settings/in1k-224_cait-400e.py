_base_ = ['../datasets/in1k_224.py', '../schedules/in1k_400e_cait.py', '../cls_runtime.py']
train_dataloader = dict(sampler=dict(type='RepeatAugSampler'))

_base_ = ['../datasets/in1k_224.py', '../schedules/in1k_finetune_60e.py', '../cls_runtime.py']
train_dataloader = dict(batch_size=64, sampler=dict(type='RepeatAugSampler'))
# the whole classifier starts from load_from, its backbone alone from pretrained: without either the log says so
default_hooks = dict(pretrained=dict(warn=True))

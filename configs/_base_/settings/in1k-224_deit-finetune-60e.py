_base_ = ['../datasets/in1k_224.py', '../schedules/in1k_finetune_60e.py', '../cls_runtime.py']
train_dataloader = dict(batch_size=64, sampler=dict(type='RepeatAugSampler'))
# fine-tuning goes on with the classifier's head, and the log says so if there is nothing to start from
default_hooks = dict(pretrained=dict(warn=True, head=True))

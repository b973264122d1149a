_base_ = ['../datasets/in1k_224_cswin.py', '../schedules/in1k_300e_cswin.py', '../cls_runtime.py']
train_dataloader = dict(batch_size=256)

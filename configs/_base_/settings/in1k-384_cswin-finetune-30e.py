_base_ = ['../datasets/in1k_384.py', '../schedules/in1k_finetune_30e_cswin.py', '../cls_runtime.py']
# fine-tuning goes on with the classifier's head, and the log says so if there is nothing to start from
default_hooks = dict(pretrained=dict(warn=True, head=True))

_base_ = ['../datasets/in1k_384.py', '../schedules/in1k_finetune_30e_cswin.py', '../cls_runtime.py']
# the whole classifier starts from load_from, its backbone alone from pretrained: without either the log says so
default_hooks = dict(pretrained=dict(warn=True))

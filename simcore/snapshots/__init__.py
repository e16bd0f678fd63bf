"""Memory snapshots of PyTorch (`torch.cuda.memory._dump_snapshot`): what allocators hold and did."""

"""The written form of a set of ranks, read back."""


def ranks_of_text(text: str) -> list[int]:
    """The ranks that a text stands for, as its form is documented: a-b+stride*count."""
    ranks = []
    for part in text.split(","):
        block, _, repeats = part.partition("+")
        first, _, last = block.partition("-")
        stride, _, count = repeats.partition("*")
        for step in range(int(count or 1)):
            offset = step * int(stride or 0)
            ranks += range(int(first) + offset, int(last or first) + offset + 1)
    return ranks

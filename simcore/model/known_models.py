"""The models that are known by name, with the sizes that their authors published."""

from __future__ import annotations

from simcore.model.sizes import Mla, Model, Moe


def _megatron(name: str, layers: int, hidden: int, heads: int) -> Model:
    """Returns a GPT of the Megatron-LM papers (arXiv 2104.04473 table 1, 2205.05198 table 3)."""
    return Model(
        name, layers, hidden, heads, heads, hidden // heads, 4 * hidden, False, 51200, 2048,
        dropout=True, bias="all", norm_bias=True, positions=2048,
    )  # fmt: skip


def _llama3(name: str, layers: int, hidden: int, heads: int, ffn: int) -> Model:
    """Returns a Llama 3 (arXiv 2407.21783, table 3): 8 key-value heads, trained on 8,192 tokens."""
    return Model(name, layers, hidden, heads, 8, 128, ffn, True, 128256, 8192, tied_embeddings=False)


def _mixtral(name: str, layers: int, hidden: int, heads: int, ffn: int, vocab: int, seq: int) -> Model:
    """Returns a Mixtral (arXiv 2401.04088; config.json of its authors): 8 experts, 2 a token."""
    moe = Moe(8, 2, ffn)
    return Model(name, layers, hidden, heads, 8, 128, ffn, True, vocab, seq, tied_embeddings=False, moe=moe)


MODELS: dict[str, Model] = {
    model.name: model
    for model in (
        # arXiv 2005.14165, table 2.1, with GPT-2's vocabulary of 50,257.
        Model(
            "gpt-3-175b", 96, 12288, 96, 96, 128, 49152, False, 50257, 2048,
            dropout=True, bias="all", norm_bias=True, positions=2048,
        ),
        _megatron("megatron-22b", 48, 6144, 64),
        _megatron("megatron-145b", 80, 12288, 96),
        _megatron("megatron-530b", 105, 20480, 128),
        _megatron("megatron-1t", 128, 25600, 160),
        _llama3("llama-3-8b", 32, 4096, 32, 14336),
        _llama3("llama-3-70b", 80, 8192, 64, 28672),
        _llama3("llama-3-405b", 126, 16384, 128, 53248),
        _mixtral("mixtral-8x7b", 32, 4096, 32, 14336, 32000, 4096),
        _mixtral("mixtral-8x22b", 56, 6144, 48, 16384, 32768, 4096),
        # arXiv 2412.19437, section 4.2: 61 layers, the first 3 dense, a token's experts on 4 of 8 nodes;
        # without its multi-token prediction.
        Model(
            "deepseek-v3", 61, 7168, 128, 128, 128, 18432, True, 129280, 4096, tied_embeddings=False,
            moe=Moe(256, 8, 2048, 1, 3, groups=8, groups_per_token=4), mla=Mla(1536, 512, 128, 64, 128),
        ),
        # arXiv 2505.09388, table 2, and its config.json: every layer has 128 experts, none is shared.
        Model(
            "qwen3-235b-a22b", 94, 4096, 64, 4, 128, 12288, True, 151936, 4096, tied_embeddings=False,
            qk_norm=True, moe=Moe(128, 8, 1536),
        ),
    )
}  # fmt: skip


def named_model(name: str) -> Model | None:
    """Returns the model of that name, whatever its case and marks: `GPT-3 175B`, `gpt3-175b`; None if
    none.
    """
    plain_name = _plain(name)
    return next((model for key, model in MODELS.items() if _plain(key) == plain_name), None)


def _plain(name: str) -> str:
    return "".join(char for char in name.lower() if char.isalnum())

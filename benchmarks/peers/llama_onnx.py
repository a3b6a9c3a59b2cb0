"""A Llama of random weights as two folders: HF's, and what transformers.js reads. Run by the peers' Python.

    python benchmarks/peers/llama_onnx.py HF_FOLDER ONNX_FOLDER CONFIG_AS_JSON

The builder of onnxruntime-genai takes every matrix with as many rows as the vocabulary for the head, so no layer may
have as many; and it leaves the size of a head a symbol, which transformers.js takes for 0: here it becomes a number.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

_SEED = 0
_FILES = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json")


def main() -> None:
    source, target = Path(sys.argv[1]), Path(sys.argv[2])
    config = LlamaConfig(**json.loads(sys.argv[3]))
    torch.manual_seed(_SEED)
    LlamaForCausalLM(config).float().save_pretrained(source)
    words = Tokenizer(models.WordLevel({f"w{token}": token for token in range(config.vocab_size)}, unk_token="w0"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=words, unk_token="w0", bos_token="w1", eos_token="w2").save_pretrained(
        source
    )
    with TemporaryDirectory() as folder:
        builder = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", source, "-o", folder, "-p", "fp32"]
        subprocess.run([*builder, "-e", "cpu", "-c", folder], check=True, stdout=sys.stderr)
        made = onnx.load(Path(folder) / "model.onnx")
    for value in (*made.graph.input, *made.graph.output):
        for size in value.type.tensor_type.shape.dim:
            if size.dim_param == "kv_cache_dim":
                size.dim_value = config.head_dim
    (target / "onnx").mkdir(parents=True)
    onnx.save(made, target / "onnx" / "model.onnx")
    for name in _FILES:
        if (source / name).exists():
            shutil.copy(source / name, target / name)


if __name__ == "__main__":
    main()

"""Attribute paths from trees of module calls. Trees are texts: a line is a module and, behind `=`, its path."""

import re
from pathlib import Path

import msgspec
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import inferometer
from inferometer.names import module_names
from inferometer.names.module_paths import ModulePath, module_of_range, module_paths

FAMILIES = {
    "transformers, Llama": """
        LlamaForCausalLM_0 = LlamaForCausalLM
          LlamaModel_0 = model
            Embedding_0 = model.embed_tokens
            LlamaRotaryEmbedding_0 = model.rotary_emb
            LlamaDecoderLayer_0 = model.layers.0
              LlamaRMSNorm_0 = model.layers.0.input_layernorm
              LlamaAttention_0 = model.layers.0.self_attn
                Linear_0 = model.layers.0.self_attn.q_proj
                Linear_1 = model.layers.0.self_attn.k_proj
                Linear_2 = model.layers.0.self_attn.v_proj
                Linear_3 = model.layers.0.self_attn.o_proj
              LlamaRMSNorm_1 = model.layers.0.post_attention_layernorm
              LlamaMLP_0 = model.layers.0.mlp
                Linear_4 = model.layers.0.mlp.gate_proj
                SiLU_0 = model.layers.0.mlp.act_fn
                Linear_5 = model.layers.0.mlp.up_proj
                Linear_6 = model.layers.0.mlp.down_proj
            LlamaDecoderLayer_1 = model.layers.1
            LlamaRMSNorm_2 = model.norm
          Linear_7 = lm_head
        """,
    "transformers, norms of queries and keys": """
        Qwen3Attention_0 = Qwen3Attention_0
          Linear_0 = Qwen3Attention_0.q_proj
          Qwen3RMSNorm_0 = Qwen3Attention_0.q_norm
          Linear_1 = Qwen3Attention_0.k_proj
          Qwen3RMSNorm_1 = Qwen3Attention_0.k_norm
          Linear_2 = Qwen3Attention_0.v_proj
          Linear_3 = Qwen3Attention_0.o_proj
        Glm4MoeAttention_0 = Glm4MoeAttention_0
          Linear_4 = Glm4MoeAttention_0.q_proj
          Linear_5 = Glm4MoeAttention_0.k_proj
          Linear_6 = Glm4MoeAttention_0.v_proj
          Glm4MoeRMSNorm_0 = Glm4MoeAttention_0.q_norm
          Glm4MoeRMSNorm_1 = Glm4MoeAttention_0.k_norm
          Linear_7 = Glm4MoeAttention_0.o_proj
        """,
    "transformers, Phi-3: fused projections, and two dropouts": """
        Phi3Model_0 = model
          Phi3DecoderLayer_0 = model.layers.0
            Phi3RMSNorm_0 = model.layers.0.input_layernorm
            Phi3Attention_0 = model.layers.0.self_attn
              Linear_0 = model.layers.0.self_attn.qkv_proj
              Linear_1 = model.layers.0.self_attn.o_proj
            Dropout_0 = model.layers.0.resid_attn_dropout
            Phi3RMSNorm_1 = model.layers.0.post_attention_layernorm
            Phi3MLP_0 = model.layers.0.mlp
              Linear_2 = model.layers.0.mlp.gate_up_proj
              SiLUActivation_0 = model.layers.0.mlp.activation_fn
              Linear_3 = model.layers.0.mlp.down_proj
            Dropout_1 = model.layers.0.resid_mlp_dropout
        """,
    "transformers, Gemma 3: four norms": """
        Gemma3TextModel_0 = model
          Gemma3TextScaledWordEmbedding_0 = model.embed_tokens
          Gemma3DecoderLayer_0 = model.layers.0
            Gemma3RMSNorm_0 = model.layers.0.input_layernorm
            Gemma3Attention_0 = model.layers.0.self_attn
            Gemma3RMSNorm_1 = model.layers.0.post_attention_layernorm
            Gemma3RMSNorm_2 = model.layers.0.pre_feedforward_layernorm
            Gemma3MLP_0 = model.layers.0.mlp
            Gemma3RMSNorm_3 = model.layers.0.post_feedforward_layernorm
        """,
    "transformers, OLMo 2: the same number of norms, other names": """
        Olmo2Model_0 = model
          Olmo2DecoderLayer_0 = model.layers.0
            Olmo2Attention_0 = model.layers.0.self_attn
            Olmo2RMSNorm_0 = model.layers.0.post_attention_layernorm
            Olmo2MLP_0 = model.layers.0.mlp
            Olmo2RMSNorm_1 = model.layers.0.post_feedforward_layernorm
        """,
    "transformers, Cohere: one norm, known by its place": """
        CohereModel_0 = model
          CohereDecoderLayer_0 = model.layers.0
            CohereLayerNorm_0 = model.layers.0.input_layernorm
            CohereAttention_0 = model.layers.0.self_attn
            CohereMLP_0 = model.layers.0.mlp
        """,
    "transformers, GPT-2": """
        GPT2LMHeadModel_0 = GPT2LMHeadModel
          GPT2Model_0 = transformer
            Embedding_0 = transformer.wte
            Embedding_1 = transformer.wpe
            Dropout_0 = transformer.drop
            GPT2Block_0 = transformer.h.0
              LayerNorm_0 = transformer.h.0.ln_1
              GPT2Attention_0 = transformer.h.0.attn
                Conv1D_0 = transformer.h.0.attn.c_attn
                Conv1D_1 = transformer.h.0.attn.c_proj
                Dropout_1 = transformer.h.0.attn.resid_dropout
              LayerNorm_1 = transformer.h.0.ln_2
              GPT2MLP_0 = transformer.h.0.mlp
                Conv1D_2 = transformer.h.0.mlp.c_fc
                NewGELUActivation_0 = transformer.h.0.mlp.act
                Conv1D_3 = transformer.h.0.mlp.c_proj
                Dropout_2 = transformer.h.0.mlp.dropout
            GPT2Block_1 = transformer.h.1
            LayerNorm_2 = transformer.ln_f
          Linear_0 = lm_head
        """,
    "transformers, GPT-NeoX": """
        GPTNeoXForCausalLM_0 = GPTNeoXForCausalLM
          GPTNeoXModel_0 = gpt_neox
            Embedding_0 = gpt_neox.embed_in
            GPTNeoXLayer_0 = gpt_neox.layers.0
              LayerNorm_0 = gpt_neox.layers.0.input_layernorm
              GPTNeoXAttention_0 = gpt_neox.layers.0.attention
                Linear_0 = gpt_neox.layers.0.attention.query_key_value
                Linear_1 = gpt_neox.layers.0.attention.dense
              LayerNorm_1 = gpt_neox.layers.0.post_attention_layernorm
              GPTNeoXMLP_0 = gpt_neox.layers.0.mlp
                Linear_2 = gpt_neox.layers.0.mlp.dense_h_to_4h
                GELUActivation_0 = gpt_neox.layers.0.mlp.act
                Linear_3 = gpt_neox.layers.0.mlp.dense_4h_to_h
            LayerNorm_2 = gpt_neox.final_layer_norm
        """,
    "transformers, DeepSeek-V3: latent attention, a dense layer, then experts": """
        DeepseekV3Model_0 = model
          Embedding_0 = model.embed_tokens
          DeepseekV3DecoderLayer_0 = model.layers.0
            DeepseekV3Attention_0 = model.layers.0.self_attn
              Linear_0 = model.layers.0.self_attn.q_a_proj
              DeepseekV3RMSNorm_0 = model.layers.0.self_attn.q_a_layernorm
              Linear_1 = model.layers.0.self_attn.q_b_proj
              Linear_2 = model.layers.0.self_attn.kv_a_proj_with_mqa
              DeepseekV3RMSNorm_1 = model.layers.0.self_attn.kv_a_layernorm
              Linear_3 = model.layers.0.self_attn.kv_b_proj
              Linear_4 = model.layers.0.self_attn.o_proj
            DeepseekV3MLP_0 = model.layers.0.mlp
          DeepseekV3DecoderLayer_1 = model.layers.1
            DeepseekV3MoE_0 = model.layers.1.mlp
              DeepseekV3TopkRouter_0 = model.layers.1.mlp.gate
              DeepseekV3Experts_0 = model.layers.1.mlp.experts
                SiLUActivation_0 = model.layers.1.mlp.experts.act_fn
              DeepseekV3MLP_1 = model.layers.1.mlp.shared_experts
                Linear_5 = model.layers.1.mlp.shared_experts.gate_proj
                SiLUActivation_1 = model.layers.1.mlp.shared_experts.act_fn
                Linear_6 = model.layers.1.mlp.shared_experts.up_proj
                Linear_7 = model.layers.1.mlp.shared_experts.down_proj
        """,
    "transformers, Qwen3-Next: a layer of linear attention, one of full": """
        Qwen3NextModel_0 = model
          Qwen3NextDecoderLayer_0 = model.layers.0
            Qwen3NextRMSNorm_0 = model.layers.0.input_layernorm
            Qwen3NextGatedDeltaNet_0 = model.layers.0.linear_attn
              Linear_0 = model.layers.0.linear_attn.in_proj_qkvz
              Linear_1 = model.layers.0.linear_attn.in_proj_ba
              Qwen3NextRMSNormGated_0 = model.layers.0.linear_attn.norm
              Linear_2 = model.layers.0.linear_attn.out_proj
            Qwen3NextRMSNorm_1 = model.layers.0.post_attention_layernorm
            Qwen3NextSparseMoeBlock_0 = model.layers.0.mlp
              Qwen3NextMLP_0 = model.layers.0.mlp.shared_expert
              Qwen3NextTopKRouter_0 = model.layers.0.mlp.gate
              Qwen3NextExperts_0 = model.layers.0.mlp.experts
              Linear_3 = model.layers.0.mlp.shared_expert_gate
          Qwen3NextDecoderLayer_1 = model.layers.1
            Qwen3NextRMSNorm_2 = model.layers.1.input_layernorm
            Qwen3NextAttention_0 = model.layers.1.self_attn
            Qwen3NextRMSNorm_3 = model.layers.1.post_attention_layernorm
        """,
    "transformers, a model that sees": """
        Qwen2_5_VLForConditionalGeneration_0 = Qwen2_5_VLForConditionalGeneration
          Qwen2_5_VLModel_0 = model
            Qwen2_5_VisionTransformerPretrainedModel_0 = model.visual
            Qwen2_5_VLTextModel_0 = model.language_model
              Qwen2_5_VLDecoderLayer_0 = model.language_model.layers.0
          Linear_0 = lm_head
        """,
    "SGLang, Qwen3: the inner model is called, one rotary embedding for all layers": """
        Qwen3Model_0 = model
          VocabParallelEmbedding_0 = model.embed_tokens
          Qwen3DecoderLayer_0 = model.layers.0
            RMSNorm_0 = model.layers.0.input_layernorm
            Qwen3Attention_0 = model.layers.0.self_attn
              QKVParallelLinear_0 = model.layers.0.self_attn.qkv_proj
              RMSNorm_1 = model.layers.0.self_attn.q_norm
              RMSNorm_2 = model.layers.0.self_attn.k_norm
              RotaryEmbedding_0 = model.layers.0.self_attn.rotary_emb
              RadixAttention_0 = model.layers.0.self_attn.attn
              RowParallelLinear_0 = model.layers.0.self_attn.o_proj
            RMSNorm_3 = model.layers.0.post_attention_layernorm
            Qwen2MLP_0 = model.layers.0.mlp
              MergedColumnParallelLinear_0 = model.layers.0.mlp.gate_up_proj
              SiluAndMul_0 = model.layers.0.mlp.act_fn
              RowParallelLinear_1 = model.layers.0.mlp.down_proj
          Qwen3DecoderLayer_1 = model.layers.1
            Qwen3Attention_1 = model.layers.1.self_attn
              RotaryEmbedding_0 = model.layers.1.self_attn.rotary_emb
          RMSNorm_4 = model.norm
        LogitsProcessor_0 = logits_processor
        """,
    "SGLang, a norm fused into an all-reduce: the other is known by its place": """
        LlamaModel_0 = model
          VocabParallelEmbedding_0 = model.embed_tokens
          LlamaDecoderLayer_0 = model.layers.0
            LlamaAttention_0 = model.layers.0.self_attn
            RMSNorm_0 = model.layers.0.post_attention_layernorm
            LlamaMLP_0 = model.layers.0.mlp
        """,
    "SGLang, DeepSeek: latent attention in a step of decode": """
        DeepseekV2Model_0 = model
          DeepseekV2DecoderLayer_0 = model.layers.0
            DeepseekV2AttentionMLA_0 = model.layers.0.self_attn
              ReplicatedLinear_0 = model.layers.0.self_attn.fused_qkv_a_proj_with_mqa
              RMSNorm_0 = model.layers.0.self_attn.q_a_layernorm
              RMSNorm_1 = model.layers.0.self_attn.kv_a_layernorm
              ColumnParallelLinear_0 = model.layers.0.self_attn.q_b_proj
              DeepseekScalingRotaryEmbedding_0 = model.layers.0.self_attn.rotary_emb
              RadixAttention_0 = model.layers.0.self_attn.attn_mqa
              RowParallelLinear_0 = model.layers.0.self_attn.o_proj
            DeepseekV2MoE_0 = model.layers.0.mlp
              DeepseekV2MLP_0 = model.layers.0.mlp.shared_experts
              MoEGate_0 = model.layers.0.mlp.gate
              TopK_0 = model.layers.0.mlp.topk
              FusedMoE_0 = model.layers.0.mlp.experts
        """,
    "SGLang, Qwen3-Next: two classes of layers in one stack; one is its own attention": """
        Qwen3NextModel_0 = model
          VocabParallelEmbedding_0 = model.embed_tokens
          Qwen3HybridLinearDecoderLayer_0 = model.layers.0
          Qwen3HybridLinearDecoderLayer_1 = model.layers.1
          Qwen3HybridAttentionDecoderLayer_0 = model.layers.2
            GemmaRMSNorm_0 = model.layers.2.input_layernorm
            QKVParallelLinear_0 = model.layers.2.qkv_proj
            GemmaRMSNorm_1 = model.layers.2.q_norm
            GemmaRMSNorm_2 = model.layers.2.k_norm
            RotaryEmbedding_0 = model.layers.2.rotary_emb
            RadixAttention_0 = model.layers.2.attn
            RowParallelLinear_0 = model.layers.2.o_proj
            GemmaRMSNorm_3 = model.layers.2.post_attention_layernorm
            Qwen2MoeMLP_0 = model.layers.2.mlp
          Qwen3HybridLinearDecoderLayer_2 = model.layers.3
          GemmaRMSNorm_4 = model.norm
        """,
    "vLLM, DeepSeek: attention in a wrapper, experts that call their own gate": """
        DeepseekV3ForCausalLM_0 = DeepseekV3ForCausalLM
          DeepseekV2Model_0 = model
            VocabParallelEmbedding_0 = model.embed_tokens
            DeepseekV2DecoderLayer_0 = model.layers.0
              DeepseekV2MLAAttention_0 = model.layers.0.self_attn
                MultiHeadLatentAttentionWrapper_0 = model.layers.0.self_attn.mla_attn
                  DeepSeekV2FusedQkvAProjLinear_0 = model.layers.0.self_attn.mla_attn.fused_qkv_a_proj
                  RMSNorm_0 = model.layers.0.self_attn.mla_attn.q_a_layernorm
                  ColumnParallelLinear_0 = model.layers.0.self_attn.mla_attn.q_b_proj
                  RMSNorm_1 = model.layers.0.self_attn.mla_attn.kv_a_layernorm
                  MLAAttention_0 = model.layers.0.self_attn.mla_attn.mla_attn
                  RowParallelLinear_0 = model.layers.0.self_attn.mla_attn.o_proj
              DeepseekV2MoE_0 = model.layers.0.mlp
                MoERunner_0 = model.layers.0.mlp.experts
                  GateLinear_0 = model.layers.0.mlp.experts.gate
        """,
    "vLLM, Mixtral": """
        MixtralModel_0 = model
          MixtralDecoderLayer_0 = model.layers.0
            MixtralMoE_0 = model.layers.0.block_sparse_moe
              GateLinear_0 = model.layers.0.block_sparse_moe.gate
              FusedMoE_0 = model.layers.0.block_sparse_moe.experts
        """,
    "a Sequential: numbers": """
        Net_0 = Net_0
          Sequential_0 = Net_0.Sequential_0
            Linear_0 = Net_0.Sequential_0.0
            ReLU_0 = Net_0.Sequential_0.1
            Linear_1 = Net_0.Sequential_0.2
        """,
    "torch.compile: a wrapper has no segment": """
        OptimizedModule_0 = LlamaForCausalLM
          LlamaForCausalLM_0 = LlamaForCausalLM
            LlamaModel_0 = model
              Embedding_0 = model.embed_tokens
              OptimizedModule_1 = model.layers.0
                LlamaDecoderLayer_0 = model.layers.0
                  LlamaAttention_0 = model.layers.0.self_attn
              OptimizedModule_2 = model.layers.1
                LlamaDecoderLayer_1 = model.layers.1
        """,
    "DDP": """
        DistributedDataParallel_0 = DistributedDataParallel
          LlamaForCausalLM_0 = module
            LlamaModel_0 = module.model
        """,
    "unknown classes keep what was recorded": """
        LlamaModel_0 = model
          LlamaDecoderLayer_0 = model.layers.0
            FooBar_0 = model.layers.0.FooBar_0
              Linear_0 = model.layers.0.FooBar_0.Linear_0
            LlamaAttention_0 = model.layers.0.self_attn
        Sampler = sampler
        """,
    "no order of such a parent has this many: nothing is guessed": """
        LlamaMLP_0 = LlamaMLP_0
          Linear_0 = LlamaMLP_0.Linear_0
          SiLU_0 = LlamaMLP_0.SiLU_0
          Linear_1 = LlamaMLP_0.Linear_1
        """,
    "a draft model next to its target": """
        LlamaForCausalLMEagle3_0 = LlamaForCausalLMEagle3_0
          LlamaModel_0 = LlamaForCausalLMEagle3_0.model
        LlamaForCausalLM_0 = LlamaForCausalLM
          LlamaModel_1 = model
            LlamaDecoderLayer_0 = model.layers.0
            LlamaDecoderLayer_1 = model.layers.1
        """,
    "one model called as a whole and by its part": """
        LlamaForCausalLM_0 = LlamaForCausalLM
          LlamaModel_0 = model
            LlamaDecoderLayer_0 = model.layers.0
        LlamaModel_0 = model
          LlamaDecoderLayer_0 = model.layers.0
        """,
}

WINDOWS = {
    "from the third layer on, and a next step: layers behind the embedding are the first": """
        LlamaModel_0 = model
          LlamaDecoderLayer_0 = model.layers.2
          LlamaDecoderLayer_1 = model.layers.3
          LlamaRMSNorm_0 = model.norm
          Embedding_0 = model.embed_tokens
          LlamaDecoderLayer_2 = model.layers.0
          LlamaDecoderLayer_3 = model.layers.1
        """,
    "embeddings from outside: layers behind the norm are the first": """
        LlamaModel_0 = model
          LlamaDecoderLayer_0 = model.layers.1
          LlamaRMSNorm_0 = model.norm
          LlamaDecoderLayer_1 = model.layers.0
        """,
    "from the midst of attention: what was called after the model had ended was first": """
        LlamaForCausalLM_0 = LlamaForCausalLM
          LlamaModel_0 = model
            LlamaDecoderLayer_0 = model.layers.1
              LlamaAttention_0 = model.layers.1.self_attn
                Linear_0 = model.layers.1.self_attn.v_proj
                Linear_1 = model.layers.1.self_attn.o_proj
              LlamaRMSNorm_0 = model.layers.1.post_attention_layernorm
          Linear_2 = lm_head
          LlamaModel_0
            LlamaDecoderLayer_1 = model.layers.0
              LlamaRMSNorm_1 = model.layers.0.input_layernorm
              LlamaAttention_1 = model.layers.0.self_attn
                Linear_3 = model.layers.0.self_attn.q_proj
                Linear_4 = model.layers.0.self_attn.k_proj
                Linear_5 = model.layers.0.self_attn.v_proj
                Linear_6 = model.layers.0.self_attn.o_proj
              LlamaRMSNorm_2 = model.layers.0.post_attention_layernorm
            LlamaDecoderLayer_0
              LlamaRMSNorm_3 = model.layers.1.input_layernorm
              LlamaAttention_0
                Linear_7 = model.layers.1.self_attn.q_proj
                Linear_8 = model.layers.1.self_attn.k_proj
        """,
    "what only a later step uses, in every layer, was not first": """
        Net_0 = Net_0
          DeepseekV2DecoderLayer_0 = Net_0.DeepseekV2DecoderLayer_0
            Linear_0 = Net_0.DeepseekV2DecoderLayer_0.Linear_0
          DeepseekV2DecoderLayer_1 = Net_0.DeepseekV2DecoderLayer_1
            Linear_1 = Net_0.DeepseekV2DecoderLayer_1.Linear_1
          DeepseekV2DecoderLayer_0
            Linear_2 = Net_0.DeepseekV2DecoderLayer_0.Linear_2
          DeepseekV2DecoderLayer_1
            Linear_3 = Net_0.DeepseekV2DecoderLayer_1.Linear_3
        """,
}

Nested = tuple[str, str, tuple["Nested", ...]]


def tree(text: str) -> tuple[list[int], list[str], list[str]]:
    """Parents, names and the paths behind `=`, from calls indented below each other; a module may be called again."""
    nodes: dict[tuple[int, str], int] = {}
    wanted: list[str] = []
    above: list[tuple[int, int]] = []
    for line in (line for line in text.splitlines() if line.strip()):
        indent = len(line) - len(line.lstrip())
        while above and above[-1][0] >= indent:
            above.pop()
        name, _, path = line.strip().partition(" = ")
        call = (above[-1][1] if above else -1, name)
        wanted += [path] if call not in nodes else []
        above.append((indent, nodes.setdefault(call, len(nodes))))
    return [parent for parent, _ in nodes], [name for _, name in nodes], wanted


def paths(text: str) -> list[str]:
    parents, recorded, _ = tree(text)
    return [module.path for module in module_paths(parents, recorded)]


def llama(layers: int) -> Nested:
    """A model as (class, path, children), its layers of two classes."""

    def layer(at: str, kind: str) -> Nested:
        heads = tuple(("Linear", f"{at}.self_attn.{name}_proj", ()) for name in "qkvo")
        mlp = tuple(("Linear", f"{at}.mlp.{name}_proj", ()) for name in ("gate", "up", "down"))
        norms = [("LlamaRMSNorm", f"{at}.{name}_layernorm", ()) for name in ("input", "post_attention")]
        attention, ffn = ("LlamaAttention", f"{at}.self_attn", heads), ("LlamaMLP", f"{at}.mlp", mlp)
        return kind, at, (norms[0], attention, norms[1], ffn)

    kinds = ("LlamaDecoderLayer", "LlamaSlidingDecoderLayer")
    stack = tuple(layer(f"model.layers.{index}", kinds[index % 3 == 2]) for index in range(layers))
    outer = ("Embedding", "model.embed_tokens", ()), ("LlamaRMSNorm", "model.norm", ())
    inner = ("LlamaModel", "model", (outer[0], *stack, outer[1]))
    return "LlamaForCausalLM", "LlamaForCausalLM", (inner, ("Linear", "lm_head", ()))


def calls(module: Nested, above: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The paths open at each call of a pass, each with its class behind a colon."""
    kind, path, children = module
    here = (*above, f"{path}:{kind}")
    return [here, *(call for child in children for call in calls(child, here))]


def record(window: list[tuple[str, ...]]) -> tuple[list[int], list[str], list[str]]:
    """What a profiler has of these calls: parents, and classes with numbers by first call; the paths are the truth."""
    nodes: dict[tuple[str, ...], int] = {}
    for opened in window:
        for depth in range(1, len(opened) + 1):
            nodes.setdefault(opened[:depth], len(nodes))
    counts: dict[str, int] = {}
    recorded = []
    for opened in nodes:
        kind = opened[-1].split(":")[1]
        recorded.append(f"{kind}_{counts.setdefault(kind, 0)}")
        counts[kind] += 1
    return [nodes.get(opened[:-1], -1) for opened in nodes], recorded, [opened[-1].split(":")[0] for opened in nodes]


@pytest.mark.parametrize("text", FAMILIES.values(), ids=FAMILIES)
def test_modules_have_the_paths_of_published_models(text):
    assert paths(text) == tree(text)[2]


@pytest.mark.parametrize("text", WINDOWS.values(), ids=WINDOWS)
def test_a_window_that_begins_inside_a_pass_is_put_in_order(text):
    assert paths(text) == tree(text)[2]


@pytest.mark.parametrize("model", [llama(layers=4), llama(layers=4)[2][0], llama(layers=1)], ids=lambda model: model[0])
def test_wherever_a_window_begins_one_whole_pass_behind_it_tells_all_paths(model):
    one_pass = calls(model)

    for start in range(len(one_pass)):
        parents, recorded, wanted = record(one_pass[start:] + one_pass)
        assert [module.path for module in module_paths(parents, recorded)] == wanted


def test_a_window_inside_one_pass_counts_the_layers_seen_and_says_so():
    one_pass = calls(llama(layers=4))
    start = next(place for place, opened in enumerate(one_pass) if opened[-1].startswith("model.layers.2"))

    modules = {module.path: module for module in module_paths(*record(one_pass[start:])[:2])}

    assert [name for name in modules if name.count(".") == 2] == ["model.layers.0", "model.layers.1"]
    assert not modules["model.layers.1.self_attn.q_proj"].is_index_known
    assert modules["model.layers.1.self_attn.q_proj"].is_known
    assert modules["model.norm"].is_index_known
    assert all(module.is_index_known for module in module_paths(*record(one_pass)[:2]))


def test_experts_are_counted_as_they_were_called():
    text = """
        MixtralSparseMoeBlock_0
          Linear_0
          MixtralBlockSparseTop2MLP_0
          MixtralBlockSparseTop2MLP_1
    """
    *_, gate, first, second = module_paths(*tree(text)[:2])

    assert (gate.path, gate.is_index_known) == ("MixtralSparseMoeBlock_0.gate", True)
    assert (first.path, second.path) == ("MixtralSparseMoeBlock_0.experts.0", "MixtralSparseMoeBlock_0.experts.1")
    assert first.pooled == "MixtralSparseMoeBlock_0.experts.*"
    assert not first.is_index_known


def test_pooling_keeps_roles_and_drops_indices():
    text = """
        Net_0 = Net_0
          LlamaModel_0 = Net_0.LlamaModel_*
            LlamaDecoderLayer_0 = Net_0.LlamaModel_*.layers.*
              FooBar_0 = Net_0.LlamaModel_*.layers.*.FooBar_*
              Odd_0 = Net_0.LlamaModel_*.layers.*.Odd_0
            LlamaDecoderLayer_1 = Net_0.LlamaModel_*.layers.*
              FooBar_1 = Net_0.LlamaModel_*.layers.*.FooBar_*
          LlamaModel_1 = Net_0.LlamaModel_*
          Sequential_0 = Net_0.Sequential_*
            Linear_0 = Net_0.Sequential_*.0
            ReLU_0 = Net_0.Sequential_*.1
          Sequential_1 = Net_0.Sequential_*
            Block_0 = Net_0.Sequential_*.*
            Block_1 = Net_0.Sequential_*.*
    """
    assert [module.pooled for module in module_paths(*tree(text)[:2])] == tree(text)[2]


def test_what_is_known_is_said():
    text = """
        LlamaForCausalLM_0
          LlamaModel_0
            FooBar_0
              LlamaAttention_0
                Linear_0
    """
    known = [module.is_known for module in module_paths(*tree(text)[:2])]

    assert known == [True, True, False, False, False]


def test_a_tree_without_end_makes_no_text_without_end():
    modules = module_paths([node - 1 for node in range(20_000)], [f"Foo_{node}" for node in range(20_000)])

    assert max(len(module.path) for module in modules) < 5_000


def test_a_class_with_an_endless_name_takes_no_time():
    name = "ForA" * 250_000 + "!"

    assert [module.is_known for module in module_paths([-1, 0], [f"{name}_0", f"{name}_1"])] == [False, False]


@pytest.mark.parametrize(
    ("parents", "recorded"),
    [([-1, 0], ["Foo_0"]), ([0], ["Foo_0"]), ([-1, 2, 0], ["Foo_0", "Foo_1", "Foo_2"]), ([-2], ["Foo_0"])],
)
def test_what_is_no_tree_is_refused(parents, recorded):
    with pytest.raises(ValueError, match=r"parent"):
        module_paths(parents, recorded)


CLASSES = st.sampled_from(
    [
        "LlamaForCausalLM LlamaModel LlamaDecoderLayer LlamaAttention LlamaMLP LlamaRMSNorm Linear Embedding SiLU",
        "Qwen3_5SparseMoeBlock Sequential OptimizedModule DistributedDataParallel ReplicatedLinear Foo Bar_Baz layers",
        "DeepseekV2AttentionMLA RMSNorm ColumnParallelLinear RadixAttention GPT2Block GPT2Model LogitsProcessor",
    ]
).flatmap(lambda names: st.sampled_from(names.split()))
CALLS = st.lists(st.tuples(st.integers(0, 1 << 30), CLASSES, st.integers(0, 3)), max_size=40)


@given(CALLS)
def test_any_tree_has_paths_that_tell_siblings_apart(drawn):
    nodes: dict[tuple[int, str], int] = {}
    for place, kind, number in drawn:
        nodes.setdefault((place % (len(nodes) + 1) - 1, f"{kind}_{number}"), len(nodes))

    modules = module_paths([parent for parent, _ in nodes], [name for _, name in nodes])

    siblings = [  # a wrapper has the path of the module in it, which may also be called by itself
        (parent, module.path)
        for (parent, name), module in zip(nodes, modules, strict=True)
        if not name.startswith(("OptimizedModule", "DistributedDataParallel"))
    ]
    assert len(modules) == len(nodes)
    assert all(module.path and module.pooled for module in modules)
    assert len(set(siblings)) == len(siblings)
    assert len({module.pooled for module in modules}) <= len({module.path for module in modules})


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (
            "{'Module': 'Qwen3ForCausalLM.model.layers.0.self_attn.qkv_proj', 'Inputs': [[32, 4096]]}",
            "model.layers.0.self_attn.qkv_proj",
        ),
        ("{'Module': 'model.model.layers.3.mlp', 'TrainableParams': {'weight': [2, 3]}}", "model.layers.3.mlp"),
        ("{'Module': 'model.lm_head'}", "lm_head"),
        ("{'Module': 'top.transformer.h.0'}", "transformer.h.0"),
        ("{'Module': 'model.layers.0.self_attn.qkv_proj', 'Inputs': []}", "model.layers.0.self_attn.qkv_proj"),
        ("{'Module': 'Qwen3ForCausalLM'}", "Qwen3ForCausalLM"),
        ("{'Module': 'model'}", "model"),
        ("{'Module': 'unknown', 'Inputs': [[1]]}", "unknown"),
        ("{'Module': ''}", None),
        ("{'Module': 'a", None),
        ("{'Module': __import__('os')}", None),
        ("{'module': 'model.layers.0'}", None),
        ("ProfilerStep#3", None),
        ("execute_context_1(32)_generation_4(4)", None),
        ("", None),
    ],
)
def test_layerwise_ranges_hold_the_path(text, path):
    assert module_of_range(text) == path


def test_every_rule_names_its_source_and_uses_declared_kinds():
    text = Path(module_names.__file__).with_name("module_names.json").read_text("utf-8")
    conventions = msgspec.json.decode(text)
    kinds = set(conventions["kinds"])

    used = {
        entry.partition("=")[0].removesuffix("?")
        for rule in conventions["rules"]
        for order in rule["orders"]
        for entry in order.split()
    }

    assert all(rule["source"] and rule["orders"] for rule in conventions["rules"])
    assert used == kinds
    assert set(conventions["plain"]) <= kinds
    for pattern in (*conventions["kinds"].values(), *(rule["parent"] for rule in conventions["rules"])):
        re.compile(pattern)


def recorded_modules(path: Path) -> list[ModulePath]:
    """The modules of a capture, nested by time."""
    frames = inferometer.open(path, {"frames"}).frames.filter(pl.col("module").is_not_null())
    spans = frames.select("process", "thread", "start_ns", "dur_ns", "module").collect()
    spans = spans.sort("process", "thread", "start_ns", "dur_ns", descending=[False, False, False, True])
    nodes: dict[tuple[int, str], int] = {}
    opened: list[tuple[object, int, int]] = []
    for process, thread, start_ns, dur_ns, module in spans.iter_rows():
        while opened and (opened[-1][0] != (process, thread) or opened[-1][1] <= start_ns):
            opened.pop()
        call = (opened[-1][2] if opened else -1, module)
        opened.append(((process, thread), start_ns + dur_ns, nodes.setdefault(call, len(nodes))))
    return module_paths([parent for parent, _ in nodes], [name for _, name in nodes])


def test_a_forward_of_transformers(shared_data):
    modules = recorded_modules(shared_data / "traces/kineto/h100_qwen1.5-0.5b.json.gz")

    roles = ["self_attn", *(f"self_attn.{name}_proj" for name in "qkvo"), "input_layernorm", "post_attention_layernorm"]
    roles += ["mlp", "mlp.gate_proj", "mlp.act_fn", "mlp.up_proj", "mlp.down_proj"]
    layers = {f"model.layers.{index}{role}" for index in range(24) for role in ("", *(f".{role}" for role in roles))}
    assert {module.path for module in modules} == layers | {
        "model",
        "model.embed_tokens",
        "model.rotary_emb",
        "model.norm",
    }
    assert all(module.is_known and module.is_index_known for module in modules)


def test_a_graph_capture_of_sglang(shared_data):
    modules = recorded_modules(shared_data / "traces/kineto/mi300_sglang_qwen3-8b_graph_capture_bs32.json.gz")

    attention = [f"self_attn.{name}" for name in ("qkv_proj", "q_norm", "k_norm", "rotary_emb", "attn", "o_proj")]
    mlp = [f"mlp.{name}" for name in ("gate_up_proj", "act_fn", "down_proj")]
    roles = ["self_attn", *attention, "mlp", *mlp, "input_layernorm", "post_attention_layernorm"]
    layers = {f"model.layers.{index}{role}" for index in range(36) for role in ("", *(f".{role}" for role in roles))}
    assert {module.path for module in modules} == layers | {
        "model",
        "model.embed_tokens",
        "model.norm",
        "logits_processor",
    }
    assert all(module.is_known and module.is_index_known for module in modules)
